"""Writing texts: the backbone's own language-model head, trained on the targets' tokens, measured on what it writes."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trial_runner.attachment.frozen_model import FrozenModel, Pass
from trial_runner.attachment.inputs import on_device
from trial_runner.backbones import Backbone, load_language_model
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.whole_model.swap import tied, ties_of
from trial_runner.errors import AttachError, BackboneError, RequestError
from trial_runner.example_losses import ExampleLosses
from trial_runner.objectives.decoding import Writer
from trial_runner.objectives.objective import Objective, ObjectiveFactory, ObjectiveMeasurement, TrainingBatch
from trial_runner.objectives.robust import refuse_robust_prefix
from trial_runner.tasks import (
    IGNORED,
    PROXY_LOSS,
    PreparedTextTask,
    TextBatch,
    WrittenSplit,
    compute_loss,
    compute_text,
    same_prediction,
    score_of,
)
from trial_runner.tasks.token_rows import by_length

_LOGITS_BYTES = 2**28
"""Of logits at a time, as their losses are computed of them: in 32 bits at least."""


class OutputHead:
    """The output layer of a language model: frozen, unless it is the input embedding too and that one is changed.

    Args:
        backbone: Whose head it is.

    Attributes:
        layer: The layer.
    """

    def __init__(self, backbone: Backbone) -> None:
        """Find the layer, and where its weight is in the base model."""
        model, base = backbone.whole, backbone.model
        layer = model.get_output_embeddings()  # type: ignore[operator]
        if not isinstance(layer, nn.Linear):
            raise BackboneError(f"a language model must end in a linear layer; got {type(layer).__name__}.")
        self.layer = layer
        self._model = model
        self._ties = ties_of(model, base)
        config: Any = model.config
        is_scaled = getattr(config, "scale_decoder_outputs", False)  # of T5, where the two are tied
        self._scale = backbone.shape.width**-0.5 if is_scaled else 1.0
        self._scale /= getattr(config, "logits_scaling", 1.0)  # of Granite
        self._softcap: float | None = getattr(config, "final_logit_softcapping", None)  # of Gemma 2

    def tied(self) -> AbstractContextManager[None]:
        """Let the head have the weight that its input embedding has at the moment, within the block."""
        return tied(self._ties)

    def losses(self, hidden: Tensor, labels: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
        """Cross-entropy of tokens, ``(N,)``; see `token_losses`.

        Args:
            hidden: Outputs of the base model at their places, ``(N, D)``.
            labels: The tokens, ``(N,)``.
            label_smoothing: Share of the probability that is spread over the vocabulary.
        """
        bias = getattr(self._model, "final_logits_bias", None)
        return token_losses(
            hidden * self._scale if self._scale != 1 else hidden,
            self.layer.weight,
            bias.flatten() if isinstance(bias, Tensor) else None,
            labels,
            label_smoothing=label_smoothing,
            softcap=self._softcap,
        )


def token_losses(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
) -> Tensor:
    """Cross-entropy of tokens, ``(N,)``, in at least float32; gradients recompute logits where they are many.

    With smoothing e it is ``(1 - e)`` times the negative log-probability of the token, and e times its mean over the
    whole vocabulary, as in the Trainer of transformers; newer versions of fairseq leave the token out of that mean.

    Args:
        hidden: ``(N, D)``.
        weight: ``(V, D)``.
        bias: ``(V,)``, or None.
        labels: ``(N,)``.
        label_smoothing: e, in [0, 1).
        softcap: c of ``c tanh(logits / c)``, which the logits become; None leaves them.
    """

    def some(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        logits = nn.functional.linear(hidden, weight)  # (N, V)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        logits = logits if bias is None else logits + bias
        logits = logits if softcap is None else softcap * torch.tanh(logits / softcap)
        return nn.functional.cross_entropy(logits, labels, reduction="none", label_smoothing=label_smoothing)

    widest = torch.promote_types(weight.dtype, torch.float32).itemsize
    size = max(1, _LOGITS_BYTES // (widest * weight.shape[0]))
    if len(labels) <= size:
        return some(hidden, weight, labels)
    parts = zip(torch.split(hidden, size), torch.split(labels, size), strict=True)
    losses = [
        checkpoint(some, rows, weight, tokens, use_reentrant=False, preserve_rng_state=False) for rows, tokens in parts
    ]
    return torch.cat(losses)


_GPU_TOKENS, _GPU_PLACES = 8, 256
_PLACES, _TOKENS = "places", "tokens"


class LanguageModelObjective(Objective):
    """See `trial_runner.objectives.objective.Objective`.

    The loss of a slot is the mean over the tokens of its targets. Nothing is trained beside the deltas.

    Before a trial's last step the score is the loss, negated, unless the task wants its metric at once: every trial
    is measured alike at a step, so that those that are compared at a rung are compared by the same thing.

    Args:
        frozen: The backbone, loaded with its head.

    Raises:
        RequestError: If it was loaded without.
    """

    def __init__(self, task: PreparedTextTask, frozen: FrozenModel) -> None:
        """Keep them."""
        if frozen.language_model is None:
            raise RequestError(f"a {task.task_kind} task needs a language model; got a backbone without its head.")
        self._task = task
        self._frozen = frozen
        self._head = OutputHead(frozen)
        self.metric = task.metric
        self.frozen_modules = (self._head.layer,)
        self._writer = Writer(frozen, task)
        is_gpu = frozen.device.is_gpu
        self._multiple_of = _GPU_TOKENS if is_gpu else 1
        self._fewest_places = _GPU_PLACES if is_gpu else 0

    def check(self, deltas: DeltaSet) -> None:
        """See `Objective`."""
        if next(deltas.parameters(), None) is None:
            raise AttachError(
                f"trials of {self._task.task_kind} must have deltas, because there is no task head to train; got none."
            )
        refuse_robust_prefix(deltas, self._task.task_kind)
        self._frozen.check_prompt(deltas, self._longest())

    def _longest(self) -> int:
        """Tokens of the longest row that is learned or written."""
        splits = self._task.splits.values()
        learned = max(int(split.lengths.max(initial=0)) for split in splits)
        read = max(int(split.sources.lengths.max(initial=0)) for split in splits)
        return max(learned, read + self._task.max_new_tokens)

    def head(self, *, seed: int) -> nn.Module:
        """See `Objective`."""
        return nn.Identity()

    def lengths(self, split: str) -> NDArray[Any]:
        """See `Objective`."""
        return self._task.splits[split].lengths

    def score(self, metrics: Mapping[str, float]) -> float:
        """See `Objective`."""
        return -metrics[PROXY_LOSS] if PROXY_LOSS in metrics else score_of(self.metric, metrics[self.metric])

    def batch(self, split: str, indices: NDArray[Any]) -> TrainingBatch:
        """See `Objective`; only places with labels are computed to the end."""
        texts = self._batch(self._task.splits[split], indices)
        units = (texts.labels != IGNORED).sum(axis=1)
        return TrainingBatch(tensors=self._tensors(texts), has_fixed_shapes=self._fewest_places > 0, units=units)

    def losses(self, together: Pass, batch: TrainingBatch) -> Tensor:
        """See `Objective`."""
        smoothing = self._task.label_smoothing
        losses, counted = self._token_losses(together, batch.tensors, label_smoothing=smoothing)
        totals = counted.flatten(1).sum(dim=1) if batch.totals is None else batch.totals  # (K,)
        return losses.flatten(1).sum(dim=1) / totals

    def _token_losses(
        self, together: Pass, tensors: Mapping[str, Tensor], *, label_smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """The loss of each token, and 1 where there is one to be learned, else 0; both ``(K, B, U)``.

        Args:
            tensors: Of ``K B`` examples, slot by slot.
        """
        inputs = {name: tensor for name, tensor in tensors.items() if name not in (_PLACES, _TOKENS)}
        places = tensors[_PLACES]
        with together.applied(), self._head.tied():
            hidden = self._frozen.hidden(inputs)  # (K B, T, D)
            found = hidden.flatten(0, 1).index_select(0, places)  # (N, D)
            each = self._head.losses(found, tensors[_TOKENS], label_smoothing=label_smoothing)  # (N,)
        everywhere = hidden.shape[0] * hidden.shape[1]
        size = together.slots, hidden.shape[0] // together.slots, hidden.shape[1]
        counted = (tensors[_TOKENS] != IGNORED).to(each.dtype)
        losses = each.new_zeros(everywhere).index_add(0, places, each).view(size)
        return losses, losses.new_zeros(everywhere).index_add(0, places, counted).view(size)

    def _tensors(self, batch: TextBatch, *, copies: int = 1) -> dict[str, Tensor]:
        """What the base model is called with and where which tokens should come out, every row ``copies`` times."""
        device = self._frozen.device.device
        labels = np.tile(batch.labels, (copies, 1)).ravel()  # (K B U,)
        known = np.flatnonzero(labels != IGNORED)
        tokens = np.full(self._place_count(len(known)), IGNORED, dtype=labels.dtype)
        tokens[: len(known)] = labels[known]
        named: dict[str, NDArray[Any]] = {"input_ids": batch.input_ids}
        if self._frozen.needs_mask(batch.attention_mask):
            named["attention_mask"] = batch.attention_mask
        if batch.decoder_input_ids is not None:
            named["decoder_input_ids"] = batch.decoder_input_ids
        wanted = {_PLACES: np.resize(known, len(tokens)), _TOKENS: tokens}
        inputs = {name: on_device(part, device).repeat(copies, 1) for name, part in named.items()}
        return inputs | {name: on_device(each, device) for name, each in wanted.items()}

    def _place_count(self, known: int) -> int:
        """How many places are computed for so many that have labels: the others count nothing.

        On a GPU there are few such numbers, so that most steps are of shapes that came before; at most an eighth is
        wasted, or a few hundred.
        """
        if not self._fewest_places:
            return known
        step = max(self._fewest_places, (1 << known.bit_length()) // 16)
        return -(-known // step) * step

    def measure(
        self, together: Pass, split: str, *, is_final: bool, most: int | None = None
    ) -> Sequence[ObjectiveMeasurement]:
        """See `Objective`."""
        task, some = self._task, self._task.splits[split].some(most)
        losses, examples = self._validated(together, some)
        measured = [{**compute_loss(task.metrics, loss), "validation_loss": loss} for loss in losses]
        if not is_final and self.metric not in measured[0]:
            measured = [{**each, PROXY_LOSS: each["validation_loss"]} for each in measured]
        elif is_final and self._is_written:
            for each, texts in zip(measured, self._written(together, some), strict=True):
                each |= compute_text(
                    task.metrics, texts, some.references, groups=some.groups, answer_after=task.answer_after
                )
                each |= same_prediction(texts)
        return [ObjectiveMeasurement(metrics=each, examples=own) for each, own in zip(measured, examples, strict=True)]

    def rehearse(self, together: Pass, split: str) -> None:
        """See `Objective`: the longest sources, whose answers are as long as they may be."""
        if not self._is_written:
            return
        rows = min(len(self._task.splits[split]), self._written_together(together.slots))
        with together.applied(), self._head.tied():
            self._writer.rehearse(rows * together.slots, self._longest_source(), self._frozen.device.device)

    def written_tokens(self, slots: int) -> int:
        """See `Objective`."""
        if not self._is_written:
            return 0
        rows = min(max(map(len, self._task.splits.values())), self._written_together(slots))
        return rows * slots * self._task.decoding.beams * (self._longest_source() + self._task.max_new_tokens)

    @property
    def _is_written(self) -> bool:
        """Whether a measurement after the last step needs texts."""
        return any(name not in compute_loss(self._task.metrics, 0.0) for name in self._task.metrics)

    def _longest_source(self) -> int:
        longest = max(int(split.sources.lengths.max(initial=1)) for split in self._task.splits.values())
        return -(-longest // self._multiple_of) * self._multiple_of

    def _written_together(self, slots: int) -> int:
        """Examples of each slot; texts are written a token at a time, so that is what a cache must hold of each."""
        return self._frozen.evaluated_together(slots * self._task.decoding.beams, tokens=1)

    def predictions(self, together: Pass, split: str) -> list[list[str]]:
        """What each slot writes for the examples of a split, in their order."""
        return self._written(together, self._task.splits[split])

    def _written(self, together: Pass, examples: WrittenSplit) -> list[list[str]]:
        texts = [[""] * len(examples) for _ in range(together.slots)]
        for rows in by_length(examples.sources.lengths, self._written_together(together.slots)):
            prompts = examples.prompts(rows, self._frozen.pad_token_id, multiple_of=self._multiple_of)
            with together.applied(), self._head.tied():
                written = self._writer.write(*prompts, copies=together.slots, device=self._frozen.device.device)
            for own, new in zip(texts, written, strict=True):
                for row, text in zip(rows, new, strict=True):
                    own[row] = text
        return texts

    @torch.no_grad()
    def _validated(self, together: Pass, examples: WrittenSplit) -> tuple[list[float], list[ExampleLosses]]:
        """Mean loss of a token of the targets of each slot, and what each example adds to it."""
        totals, tokens = np.zeros(together.slots), np.zeros(together.slots)
        of_examples = np.empty((together.slots, len(examples)))
        size = self._frozen.evaluated_together(together.slots, int(examples.lengths.max(initial=1)))
        for rows in by_length(examples.lengths, size):
            tensors = self._tensors(self._batch(examples, rows), copies=together.slots)
            losses, counted = self._token_losses(together, tensors)  # (K, B, U)
            totals += losses.flatten(1).sum(dim=1).double().cpu().numpy()
            tokens += counted.flatten(1).sum(dim=1).cpu().numpy()
            of_examples[:, rows] = losses.sum(dim=2).cpu().numpy()
        # an example counts as often as its tokens, and the mean over examples is that over tokens
        shares = of_examples * (len(examples) / tokens[:, None])
        return [float(total) for total in totals / tokens], [ExampleLosses.of(own) for own in shares]

    def _batch(self, examples: WrittenSplit, indices: NDArray[Any]) -> TextBatch:
        return examples.batch(
            indices,
            self._frozen.pad_token_id,
            start_token_id=self._writer.start_token_id,
            multiple_of=self._multiple_of,
        )


LANGUAGE_MODEL = ObjectiveFactory(load=load_language_model, make=LanguageModelObjective)
