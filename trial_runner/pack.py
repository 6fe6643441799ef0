"""The pack: K trials of any structure over one frozen backbone.

Slots are computed one after another, each with its own deltas switched on; a trial in a pack is therefore computed
exactly as it is alone, and nothing one slot does can reach another.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from search_space.backbone_shape import BackboneShape
from search_space.codec import configuration_to_json
from search_space.errors import SearchSpaceError
from trial_runner.attach import Attachment
from trial_runner.delta_set import DeltaSet
from trial_runner.errors import AttachError, RequestError, SnapshotError
from trial_runner.inputs import model_inputs
from trial_runner.requests import Failure, Reading, Snapshot, TrialRequest
from trial_runner.robust import RobustPredictor, has_robust_prefix
from trial_runner.slots import ClassificationHead, TrialSlot, derived_seed
from trial_runner.tasks import Batch, PreparedTask, Split
from trial_runner.tasks.metrics import METRICS, compute

__all__ = ["Device", "TrialPack"]

_EVALUATION_ROWS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Where and how a backbone computes.

    Attributes:
        device: Where its tensors are.
        dtype: Of deltas, heads and optimisers.
        autocast: A context of the precision of products.
    """

    device: torch.device
    dtype: torch.dtype
    autocast: Callable[[], AbstractContextManager[Any]]


class TrialPack:
    """See `trial_runner.requests.Pack`.

    Args:
        model: The frozen base model.
        attachment: Its hooks.
        shape: Its sizes.
        task: What is learned.
        device: Where and how.
        pad_token_id: Fills short rows.
        backbone_sha256: Hash of the backbone's weights, kept in snapshots.
        slots: How many trials the pack takes.
    """

    def __init__(  # noqa: PLR0913 - wired in one place, by the runner
        self,
        *,
        model: nn.Module,
        attachment: Attachment,
        shape: BackboneShape,
        task: PreparedTask,
        device: Device,
        pad_token_id: int,
        backbone_sha256: str,
        slots: int,
    ) -> None:
        """Start empty."""
        if not slots >= 1:
            raise RequestError(f"a pack must have at least 1 slot; got {slots}.")
        self._model = model
        self._attachment = attachment
        self._shape = shape
        self._task = task
        self._device = device
        self._pad_token_id = pad_token_id
        start = getattr(getattr(model, "config", None), "decoder_start_token_id", None)
        self._decoder_start_token_id = pad_token_id if start is None else int(start)
        self._backbone_sha256 = backbone_sha256
        self._slots: dict[int, TrialSlot | None] = dict.fromkeys(range(slots))
        self._has_dropout = any(isinstance(module, nn.Dropout) and module.p > 0 for module in model.modules())

    @property
    def free_slots(self) -> int:
        """How many more trials can be admitted."""
        return sum(slot is None for slot in self._slots.values())

    def trial(self, slot: int) -> TrialSlot:
        """The state of an occupied slot, for tests and tools.

        Raises:
            RequestError: If the slot is empty.
        """
        state = self._slots.get(slot)
        if state is None:
            raise RequestError(f"slot {slot} must hold a trial; it is empty.")
        return state

    def admit(self, request: TrialRequest) -> int:
        """Take a trial in.

        Returns:
            Its slot.

        Raises:
            RequestError: If no slot is free.
            AttachError: If the deltas cannot be built.
        """
        free = next((index for index, slot in self._slots.items() if slot is None), None)
        if free is None:
            raise RequestError(f"a trial needs a free slot; all {len(self._slots)} are taken. Evict one first.")
        try:
            deltas = DeltaSet(
                request.configuration,
                self._shape,
                seed=derived_seed(request.seed, "deltas"),
                device=self._device.device,
                dtype=self._device.dtype,
                frozen=dict(self._model.named_parameters()),
            )
        except SearchSpaceError as error:
            raise AttachError(f"trial {request.trial} cannot be built: {error}") from error
        head = ClassificationHead(
            self._shape.width,
            len(self._task.labels),
            seed=derived_seed(request.seed, "head"),
            dtype=self._device.dtype,
        ).to(self._device.device)
        self._slots[free] = TrialSlot(request=request, deltas=deltas, head=head)
        return free

    def advance(self, steps: int) -> Sequence[Reading | Failure]:
        """Train every slot by up to ``steps`` steps; readings fall at the plans' evaluation steps.

        A slot that fails is freed. One that has reached its last step stays until it is evicted.
        """
        results: list[Reading | Failure] = []
        for index, slot in self._slots.items():
            if slot is not None:
                results.extend(self._advance_slot(index, slot, steps))
        return results

    def evict(self, slot: int) -> None:
        """Remove a trial; the slot is free again."""
        self.trial(slot)
        self._slots[slot] = None

    def snapshot(self, slot: int) -> Snapshot:
        """The state of a slot, detached from it."""
        state = self.trial(slot)
        request = state.request
        tensors = state.tensors()
        held = sum(tensor.numel() for name, tensor in tensors.items() if name.startswith("deltas."))
        if held != state.deltas.counts.trained:
            raise SnapshotError(f"a snapshot must hold {state.deltas.counts.trained:,} delta parameters; got {held:,}.")
        facts: dict[str, object] = {
            "trial": request.trial,
            "seed": request.seed,
            "configuration": configuration_to_json(request.configuration),
            "stored_parameters": state.deltas.counts.stored,
            "trained_parameters": state.deltas.counts.trained,
            "labels": list(self._task.labels),
            "backbone_sha256": self._backbone_sha256,
            "slot": state.facts(),
        }
        return Snapshot(trial=request.trial, step=state.step, facts=facts, tensors=tensors)

    def restore(self, request: TrialRequest, snapshot: Snapshot) -> int:
        """Admit a trial in the state of a snapshot.

        Raises:
            SnapshotError: If the snapshot is of another trial, configuration or backbone, or incomplete.
        """
        expected = {
            "seed": request.seed,
            "configuration": configuration_to_json(request.configuration),
            "backbone_sha256": self._backbone_sha256,
        }
        for name, value in expected.items():
            if snapshot.facts.get(name) != value:
                raise SnapshotError(f"a snapshot of trial {request.trial} must have its own {name}; got another one.")
        index = self.admit(request)
        tensors = {name: tensor for name, tensor in snapshot.tensors.items() if isinstance(tensor, Tensor)}
        facts = snapshot.facts.get("slot")
        try:
            if not isinstance(facts, Mapping):
                raise KeyError("slot")
            self.trial(index).load(dict(facts), tensors)
        except (KeyError, ValueError) as error:
            self.evict(index)
            raise SnapshotError(
                f"a snapshot of trial {request.trial} must be whole; got a problem with {error}."
            ) from error
        return index

    def _advance_slot(self, index: int, slot: TrialSlot, steps: int) -> list[Reading | Failure]:
        results: list[Reading | Failure] = []
        plan = slot.request.plan
        for _ in range(min(steps, plan.steps - slot.step)):
            with slot.timed():
                reason = self._train_step(slot)
            if reason is None and slot.step in plan.evaluate_at_steps:
                with slot.timed():
                    metrics = self._measure(slot)
                train_loss, seconds = slot.take_means()
                results.append(
                    Reading(
                        slot=index,
                        trial=slot.request.trial,
                        step=slot.step,
                        score=metrics[self._task.metric],
                        metrics=metrics,
                        train_loss=train_loss,
                        seconds=seconds,
                    )
                )
                if not np.isfinite(metrics["validation_loss"]):
                    results.pop()
                    reason = f"the validation loss is {metrics['validation_loss']} at step {slot.step}"
            if reason is not None:
                results.append(Failure(slot=index, trial=slot.request.trial, step=slot.step, reason=reason))
                self._slots[index] = None
                break
        return results

    def _train_step(self, slot: TrialSlot) -> str | None:
        split = self._task.splits["train"]
        batch = split.batch(slot.examples(len(split)), self._pad_token_id)
        with slot.training():
            if not self._has_dropout:
                return slot.update(self._loss(slot, batch))
            self._model.train()
            try:
                with slot.dropout_randomness():
                    return slot.update(self._loss(slot, batch))
            finally:
                self._model.eval()

    def _loss(self, slot: TrialSlot, batch: Batch) -> Tensor:
        labels = torch.from_numpy(batch.labels).to(self._device.device)
        return torch.nn.functional.cross_entropy(self._logits(slot, batch), labels)

    def _logits(self, slot: TrialSlot, batch: Batch) -> Tensor:
        """``(B, labels)``."""
        inputs = model_inputs(
            batch, self._shape.kind, self._device.device, decoder_start_token_id=self._decoder_start_token_id
        )
        with self._attachment.using(slot.deltas), self._device.autocast():
            hidden: Tensor = self._model(**inputs).last_hidden_state  # (B, T, D)
        return slot.head(hidden, inputs["attention_mask"])  # type: ignore[no-any-return]

    def _measure(self, slot: TrialSlot) -> dict[str, float]:
        """The metrics of a reading.

        A robust prefix takes part in the last reading alone, since it is tuned for every batch; what the trial scores
        without it is then measured as well, ``plain_accuracy`` of a task that is scored by ``accuracy``.
        """
        split = self._task.splits["validation"]
        metrics = self._evaluate(split, lambda batch: self._logits(slot, batch))
        if slot.step < slot.request.plan.steps or not has_robust_prefix(slot.deltas):
            return metrics
        predictor = RobustPredictor(
            model=self._model,
            shape=self._shape,
            deltas=slot.deltas,
            predict=lambda batch: self._logits(slot, batch),
        )
        seed = derived_seed(slot.request.seed, "robust")
        predictor.learn(self._task.splits["train"], self._pad_token_id, seed=seed)
        robust = self._evaluate(split, predictor.logits)
        return {**robust, f"plain_{self._task.metric}": metrics[self._task.metric]}

    @torch.no_grad()
    def _evaluate(self, split: Split, predict: Callable[[Batch], Tensor]) -> dict[str, float]:
        """Every metric of the task on a split, and the mean loss as ``validation_loss``."""
        by_length = np.argsort(np.diff(split.offsets), kind="stable")
        predictions = np.empty(len(split), dtype=np.int64)
        total = 0.0
        for start in range(0, len(split), _EVALUATION_ROWS):
            rows: NDArray[np.int64] = by_length[start : start + _EVALUATION_ROWS]
            batch = split.batch(rows, self._pad_token_id)
            logits = predict(batch).float()
            labels = torch.from_numpy(batch.labels).to(logits.device)
            total += float(torch.nn.functional.cross_entropy(logits, labels, reduction="sum"))
            predictions[rows] = logits.argmax(dim=-1).cpu().numpy()
        names = [metric.name for metric in METRICS]
        metrics = compute(names, predictions, split.labels, classes=len(self._task.labels))
        return {**metrics, "validation_loss": total / len(split)}
