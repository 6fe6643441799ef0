"""Text generation as an objective: token losses of the targets in training, metrics of generated texts in the end."""

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
from trial_runner.errors import AttachError, BackboneError, TrialRequestError
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

LOGITS_BYTES = 2**28
"""Maximum size of the logits computed at once, in bytes; logits have at least 32 bits."""


class OutputHead:
    """Output layer of a language model; frozen, unless it is tied to input embeddings that a delta changes.

    Args:
        backbone: Backbone with its language-model head.

    Attributes:
        layer: The layer.
    """

    def __init__(self, backbone: Backbone) -> None:
        """Find the layer, and its weight in the base model."""
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
        """Return a context in which the head has the current weight of its tied input embedding."""
        return tied(self._ties)

    def losses(self, hidden: Tensor, labels: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
        """Compute the cross-entropy of tokens, ``(N,)``; see `token_losses`.

        Args:
            hidden: Outputs of the base model at the positions of the labels, ``(N, D)``.
            labels: Target tokens, ``(N,)``.
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
    """Compute the cross-entropy of tokens, ``(N,)``, in at least float32; gradients recompute large logits.

    With smoothing e the loss is ``(1 - e)`` times the negative log-probability of the token, plus e times its mean over
    the vocabulary. The Trainer of transformers does the same; newer versions of fairseq exclude the token from that
    mean.

    Args:
        hidden: ``(N, D)``.
        weight: ``(V, D)``.
        bias: ``(V,)``, or None.
        labels: ``(N,)``.
        label_smoothing: e, in [0, 1).
        softcap: c of the capped logits ``c tanh(logits / c)``; None for no cap.
    """

    def chunk_losses(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        logits = nn.functional.linear(hidden, weight)  # (N, V)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        logits = logits if bias is None else logits + bias
        logits = logits if softcap is None else softcap * torch.tanh(logits / softcap)
        return nn.functional.cross_entropy(logits, labels, reduction="none", label_smoothing=label_smoothing)

    widest = torch.promote_types(weight.dtype, torch.float32).itemsize
    size = max(1, LOGITS_BYTES // (widest * weight.shape[0]))
    if len(labels) <= size:
        return chunk_losses(hidden, weight, labels)
    parts = zip(torch.split(hidden, size), torch.split(labels, size), strict=True)
    losses = [
        checkpoint(chunk_losses, rows, weight, tokens, use_reentrant=False, preserve_rng_state=False)
        for rows, tokens in parts
    ]
    return torch.cat(losses)


_GPU_TOKENS, _GPU_PLACES = 8, 256
_PLACES, _TOKENS = "places", "tokens"


class LanguageModelObjective(Objective):
    """Objective of a text-generation task; see `trial_runner.objectives.objective.Objective`.

    The loss of a slot is the mean over the tokens of its targets. The deltas alone are trained.

    Before a trial's last step the score is the negated loss, unless the metric is computed from losses. All trials are
    measured alike at a step, so that scores at a rung are comparable.

    Args:
        frozen: Backbone with its language-model head.

    Attributes:
        task: Prepared task.
        output_head: Output layer of the backbone.
        fewest_places: Smallest number of label positions of a step; 0 for those with labels alone.

    Raises:
        TrialRequestError: If the backbone was loaded without its head.
    """

    def __init__(self, task: PreparedTextTask, frozen: FrozenModel) -> None:
        """Store the task and the frozen backbone."""
        if frozen.language_model is None:
            raise TrialRequestError(
                f"the backbone of a {task.task_kind} task must have its language-model head; got none."
            )
        self.task = task
        self._frozen = frozen
        self.output_head = OutputHead(frozen)
        self.metric = task.metric
        self.frozen_modules = (self.output_head.layer,)
        self._writer = Writer(frozen, task)
        is_gpu = frozen.device.is_gpu
        self._multiple_of = _GPU_TOKENS if is_gpu else 1
        self.fewest_places = _GPU_PLACES if is_gpu else 0

    def check(self, deltas: DeltaSet) -> None:
        """Implement `Objective`."""
        if next(deltas.parameters(), None) is None:
            raise AttachError(
                f"trials of a {self.task.task_kind} task must have deltas, as no task head is trained; got none."
            )
        refuse_robust_prefix(deltas, self.task.task_kind)
        self._frozen.check_prompt(deltas, self._max_row_tokens())

    def _max_row_tokens(self) -> int:
        """Return the number of tokens of the longest row in training or generation."""
        splits = self.task.splits.values()
        learned = max(int(split.lengths.max(initial=0)) for split in splits)
        read = max(int(split.sources.lengths.max(initial=0)) for split in splits)
        return max(learned, read + self.task.max_new_tokens)

    def head(self, *, seed: int) -> nn.Module:
        """Implement `Objective`."""
        return nn.Identity()

    def lengths(self, split: str) -> NDArray[Any]:
        """Implement `Objective`."""
        return self.task.splits[split].lengths

    def score(self, metrics: Mapping[str, float]) -> float:
        """Implement `Objective`."""
        return -metrics[PROXY_LOSS] if PROXY_LOSS in metrics else score_of(self.metric, metrics[self.metric])

    def batch(self, split: str, indices: NDArray[Any]) -> TrainingBatch:
        """Implement `Objective`; logits are computed at positions with labels alone."""
        texts = self._batch(self.task.splits[split], indices)
        units = (texts.labels != IGNORED).sum(axis=1)
        return TrainingBatch(tensors=self._tensors(texts), has_fixed_shapes=self.fewest_places > 0, units=units)

    def losses(self, together: Pass, batch: TrainingBatch) -> Tensor:
        """Implement `Objective`."""
        smoothing = self.task.label_smoothing
        losses, counted = self._token_losses(together, batch.tensors, label_smoothing=smoothing)
        totals = counted.flatten(1).sum(dim=1) if batch.totals is None else batch.totals  # (K,)
        return losses.flatten(1).sum(dim=1) / totals

    def _token_losses(
        self, together: Pass, tensors: Mapping[str, Tensor], *, label_smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """Compute the loss of each token, and 1 at tokens with a label, else 0; both ``(K, B, U)``.

        Args:
            tensors: Tensors of ``K B`` examples, slot by slot.
        """
        inputs = {name: tensor for name, tensor in tensors.items() if name not in (_PLACES, _TOKENS)}
        places = tensors[_PLACES]
        with together.applied(), self.output_head.tied():
            hidden = self._frozen.hidden(inputs)  # (K B, T, D)
            found = hidden.flatten(0, 1).index_select(0, places)  # (N, D)
            each = self.output_head.losses(found, tensors[_TOKENS], label_smoothing=label_smoothing)  # (N,)
        everywhere = hidden.shape[0] * hidden.shape[1]
        size = together.slots, hidden.shape[0] // together.slots, hidden.shape[1]
        counted = (tensors[_TOKENS] != IGNORED).to(each.dtype)
        losses = each.new_zeros(everywhere).index_add(0, places, each).view(size)
        return losses, losses.new_zeros(everywhere).index_add(0, places, counted).view(size)

    def _tensors(self, batch: TextBatch, *, copies: int = 1) -> dict[str, Tensor]:
        """Return the inputs of the base model and the positions and values of the labels, each row ``copies`` times."""
        device = self._frozen.device.device
        labels = np.tile(batch.labels, (copies, 1)).ravel()  # (K B U,)
        known = np.flatnonzero(labels != IGNORED)
        tokens = np.full(self._padded_count(len(known)), IGNORED, dtype=labels.dtype)
        tokens[: len(known)] = labels[known]
        named: dict[str, NDArray[Any]] = {"input_ids": batch.input_ids}
        if self._frozen.needs_mask(batch.attention_mask):
            named["attention_mask"] = batch.attention_mask
        if batch.decoder_input_ids is not None:
            named["decoder_input_ids"] = batch.decoder_input_ids
        wanted = {_PLACES: np.resize(known, len(tokens)), _TOKENS: tokens}
        inputs = {name: on_device(part, device).repeat(copies, 1) for name, part in named.items()}
        return inputs | {name: on_device(each, device) for name, each in wanted.items()}

    def _padded_count(self, n_labels: int) -> int:
        """Return the number of positions computed for ``n_labels`` labels; padding has no loss.

        On a GPU the number is rounded up to one of few values, so that most steps repeat earlier shapes. The padding
        is at most an eighth, or a few hundred positions.
        """
        if not self.fewest_places:
            return n_labels
        step = max(self.fewest_places, (1 << n_labels.bit_length()) // 16)
        return -(-n_labels // step) * step

    def measure(
        self, together: Pass, split: str, *, is_final: bool, most: int | None = None
    ) -> Sequence[ObjectiveMeasurement]:
        """Implement `Objective`."""
        task, some = self.task, self.task.splits[split].some(most)
        losses, examples = self._validation_losses(together, some)
        measured = [{**compute_loss(task.metrics, loss), "validation_loss": loss} for loss in losses]
        if not is_final and self.metric not in measured[0]:
            measured = [{**each, PROXY_LOSS: each["validation_loss"]} for each in measured]
        elif is_final and self._needs_texts:
            for each, texts in zip(measured, self.generated(together, some), strict=True):
                each |= compute_text(
                    task.metrics, texts, some.references, groups=some.groups, answer_after=task.answer_after
                )
                each |= same_prediction(texts)
        return [ObjectiveMeasurement(metrics=each, examples=own) for each, own in zip(measured, examples, strict=True)]

    def dry_run(self, together: Pass, split: str) -> None:
        """Implement `Objective`; sources have the longest length, and answers the largest allowed."""
        if not self._needs_texts:
            return
        rows = min(len(self.task.splits[split]), self._generation_batch_size(together.slots))
        with together.applied(), self.output_head.tied():
            self._writer.dry_run(rows * together.slots, self._longest_source(), self._frozen.device.device)

    def written_tokens(self, slots: int) -> int:
        """Implement `Objective`."""
        if not self._needs_texts:
            return 0
        rows = min(max(map(len, self.task.splits.values())), self._generation_batch_size(slots))
        return rows * slots * self.task.decoding.beams * (self._longest_source() + self.task.max_new_tokens)

    @property
    def _needs_texts(self) -> bool:
        """Whether a final measurement generates texts."""
        return any(name not in compute_loss(self.task.metrics, 0.0) for name in self.task.metrics)

    def _longest_source(self) -> int:
        longest = max(int(split.sources.lengths.max(initial=1)) for split in self.task.splits.values())
        return -(-longest // self._multiple_of) * self._multiple_of

    def _generation_batch_size(self, slots: int) -> int:
        """Return the number of examples of each slot generated together, limited by the cache of one token per step."""
        return self._frozen.evaluated_together(slots * self.task.decoding.beams, tokens=1)

    def predictions(self, together: Pass, split: str) -> list[list[str]]:
        """Generate the answers of each slot for the examples of a split, in their order."""
        return self.generated(together, self.task.splits[split])

    def generated(self, together: Pass, examples: WrittenSplit) -> list[list[str]]:
        """Generate the answers of each slot for examples, in their order."""
        texts = [[""] * len(examples) for _ in range(together.slots)]
        for rows in by_length(examples.sources.lengths, self._generation_batch_size(together.slots)):
            prompts = examples.prompts(rows, self._frozen.pad_token_id, multiple_of=self._multiple_of)
            with together.applied(), self.output_head.tied():
                written = self._writer.write(*prompts, copies=together.slots, device=self._frozen.device.device)
            for own, new in zip(texts, written, strict=True):
                for row, text in zip(rows, new, strict=True):
                    own[row] = text
        return texts

    @torch.no_grad()
    def _validation_losses(self, together: Pass, examples: WrittenSplit) -> tuple[list[float], list[ExampleLosses]]:
        """Compute the mean loss of a target token of each slot, and the share of each example in it."""
        totals, tokens = np.zeros(together.slots), np.zeros(together.slots)
        of_examples = np.empty((together.slots, len(examples)))
        size = self._frozen.evaluated_together(together.slots, int(examples.lengths.max(initial=1)))
        for rows in by_length(examples.lengths, size):
            tensors = self._tensors(self._batch(examples, rows), copies=together.slots)
            losses, counted = self._token_losses(together, tensors)  # (K, B, U)
            totals += losses.flatten(1).sum(dim=1).double().cpu().numpy()
            tokens += counted.flatten(1).sum(dim=1).cpu().numpy()
            of_examples[:, rows] = losses.sum(dim=2).cpu().numpy()
        # weights examples by their tokens, so that the mean over examples equals that over tokens
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
