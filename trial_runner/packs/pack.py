"""Pack of K trials of any structure over one frozen backbone.

Slots are computed together in lanes. Their rows are equal contiguous blocks of one batch, the frozen products contain
all of them, and edits of equal structure are one batched product. No value of one slot enters another's, so a trial in
a pack equals the trial alone, up to rounding.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from search_space.codec import configuration_to_json
from search_space.errors import SearchSpaceError
from trial_runner.attachment.frozen_model import FrozenModel
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.errors import AttachError, SnapshotError, TrialRequestError
from trial_runner.linear_layers import frozen_weights
from trial_runner.objectives import Objective
from trial_runner.objectives.objective import ObjectiveMeasurement
from trial_runner.objectives.robust import has_robust_prefix
from trial_runner.packs.graphs import Recorder
from trial_runner.packs.lane import Failures, Lane, computed_together, pass_of
from trial_runner.packs.memory import FEW, MemoryPlan, deep_blocks, only_first, planned_memory
from trial_runner.packs.order import ExampleOrder, bucket_count, length_buckets
from trial_runner.packs.out_of_memory import OUT_OF_MEMORY, is_out_of_memory, release_memory
from trial_runner.packs.slot import TrialSlot
from trial_runner.requests import Failure, Reading, Snapshot, TrialRequest
from trial_runner.seeds import derived_seed

_MOST_KEPT = 4
"""Number of layouts of lanes whose recordings are kept; each holds its parameters and moments."""


class TrialPack:
    """Pack of trials; see `trial_runner.requests.Pack`.

    Args:
        slots: Number of trials.
        recorder: Recorder of steps, which are launched at once if one of the same shapes comes again; None runs them
            eagerly. Results are the same.

    Attributes:
        frozen: Frozen backbone.
        objective: Training objective of its trials.
        lanes: Trials that are computed together, as of the last step or measurement.
    """

    def __init__(
        self, frozen: FrozenModel, objective: Objective, *, slots: int, recorder: Recorder | None = None
    ) -> None:
        """Start empty."""
        if not slots >= 1:
            raise TrialRequestError(f"a pack must have at least 1 slot; got {slots}.")
        self.frozen = frozen
        self.objective = objective
        self._slots: list[TrialSlot | None] = [None] * slots
        self.lanes: list[Lane] = []
        self._kept: dict[Hashable, Lane] = {}
        self.recorder = recorder
        self._buckets: dict[int, tuple[NDArray[np.int64], ...]] = {}
        self.most_together = slots
        self._longest_tokens = int(objective.lengths("train").max(initial=0))

    @property
    def free_slots(self) -> int:
        """Number of trials that can still be admitted; negative while memory does not suffice for all that it holds."""
        return self.most_together - len(self.taken)

    @property
    def steps_to_reading(self) -> int:
        """Number of steps to the next measurement of one of its trials; 0 if none goes on."""
        return min(filter(None, (slot.steps_to_reading for slot in self.taken)), default=0)

    def trial(self, number: int) -> TrialSlot:
        """Return the present state of a trial, for tests and tools.

        Raises:
            TrialRequestError: If the pack does not hold it.
        """
        slot = self._slot_of(number)
        for lane in self.lanes:
            if slot in lane.slots:
                lane.write_back(slot)
        return slot

    @property
    def taken(self) -> list[TrialSlot]:
        """Trials in the pack; those in lanes may be newer there, see `trial`."""
        return [slot for slot in self._slots if slot is not None]

    def _slot_of(self, trial: int) -> TrialSlot:
        held = {slot.request.trial: slot for slot in self.taken}
        if trial not in held:
            raise TrialRequestError(f"trial {trial} must be in the pack; it holds {[*held]}.")
        return held[trial]

    def admit(self, request: TrialRequest) -> None:
        """Admit a trial to the first free slot.

        Raises:
            TrialRequestError: If no slot is free, or the trial is in the pack already.
            AttachError: If the deltas cannot be built.
        """
        if self.free_slots <= 0:
            raise TrialRequestError(f"a trial needs a free slot; all {len(self.taken)} are taken. Evict one first.")
        if any(slot.request.trial == request.trial for slot in self.taken):
            raise TrialRequestError(f"a pack must hold a trial once; it has trial {request.trial}. Evict that first.")
        self._slots[self._slots.index(None)] = self._new_slot(request)
        self._recompute_as(request)

    def _recompute_as(self, request: TrialRequest) -> None:
        wanted = request.plan.checkpointing
        if wanted != "auto":
            self.frozen.recomputation.switch(is_on=wanted)
        if request.plan.micro_batch != "auto":
            self.frozen.micro_batch.examples = request.plan.micro_batch

    def memory_of(self, *requests: TrialRequest) -> MemoryPlan:
        """Plan the memory of trials in this pack, without admitting them.

        Args:
            requests: Trials, which edit all blocks in the same way: the first blocks of a deep decoder represent all.
        """
        for request in requests:
            self._recompute_as(request)
        blocks = deep_blocks(self.frozen)
        if blocks is None:
            return self._planned(requests)
        config = self.frozen.model.config
        few, more = (self._planned(requests, partial(only_first, blocks, config, count)) for count in FEW)
        return few.towards(more, (len(blocks) - FEW[0]) / (FEW[1] - FEW[0]))

    def _planned(
        self, requests: Sequence[TrialRequest], model: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> MemoryPlan:
        slots = [self._new_slot(request) for request in requests]
        is_recorded = self.recorder is not None
        with model():
            plans = [
                planned_memory(self.frozen, self.objective, members, is_recorded=is_recorded)
                for members in self._shared_out(slots)
            ]
        return reduce(MemoryPlan.followed_by, plans)

    def _new_slot(self, request: TrialRequest) -> TrialSlot:
        deltas = self._deltas(request)
        self.objective.check(deltas)
        head = self.objective.head(seed=derived_seed(request.seed, "head"))
        return TrialSlot(request=request, deltas=deltas, head=head, order=self._order(request))

    def _deltas(self, request: TrialRequest) -> DeltaSet:
        device = self.frozen.device
        whole = [edit.form.name for edit in request.configuration.edits if edit.form.needs_weights]
        if self.frozen.is_sharded and whole:
            raise AttachError(
                f"forms that are computed of weights need whole ones, which shards do not have; trial {request.trial} "
                f"has {whole[0]}. Take fleet.worker.shards: 1, or another form."
            )
        try:
            return DeltaSet(
                request.configuration,
                self.frozen.shape,
                seed=derived_seed(request.seed, "deltas"),
                device=device.device,
                dtype=device.dtype,
                frozen=frozen_weights(self.frozen.model),
            )
        except SearchSpaceError as error:
            raise AttachError(f"trial {request.trial} cannot be built: {error}") from error

    def advance(self, steps: int) -> Sequence[Reading | Failure]:
        """Train every trial by up to ``steps`` steps; readings fall at the plans' evaluation steps.

        A trial that fails is removed. One that has reached its last step stays until it is evicted.
        """
        results: list[Reading | Failure] = []
        goals = {slot: min(slot.step + steps, slot.request.plan.steps) for slot in self.taken}
        while active := [slot for slot in self.taken if slot.step < goals[slot]]:
            ahead = min(min(goals[slot] - slot.step, slot.steps_to_reading) for slot in active)
            results.extend(self._train(active, ahead))
            results.extend(self._measure([slot for slot in self.taken if slot in active]))
        return sorted(results, key=lambda result: (result.trial, result.step))

    def evict(self, trial: int) -> None:
        """Remove a trial; its slot is free again."""
        slot = self._slot_of(trial)
        self._dissolve()
        self._slots[self._slots.index(slot)] = None

    def snapshot(self, trial: int) -> Snapshot:
        """Return the state of a trial, detached from it."""
        slot = self.trial(trial)
        request = slot.request
        facts: dict[str, object] = {
            "trial": request.trial,
            "seed": request.seed,
            "configuration": configuration_to_json(request.configuration),
            "stored_parameters": slot.deltas.counts.stored,
            "trained_parameters": slot.deltas.counts.trained,
            "labels": list(self.objective.labels),
            "backbone_sha256": self.frozen.weights_sha256,
            "slot": slot.facts(),
        }
        return Snapshot(trial=trial, step=slot.step, facts=facts, tensors=slot.tensors())

    def restore(self, request: TrialRequest, snapshot: Snapshot) -> None:
        """Admit a trial in the state of a snapshot.

        Raises:
            SnapshotError: If the snapshot is of another trial, configuration or backbone, or incomplete.
        """
        expected = {
            "seed": request.seed,
            "configuration": configuration_to_json(request.configuration),
            "backbone_sha256": self.frozen.weights_sha256,
        }
        for name, value in expected.items():
            if snapshot.facts.get(name) != value:
                raise SnapshotError(f"a snapshot of trial {request.trial} must have its own {name}; got another one.")
        self.admit(request)
        tensors = {name: tensor for name, tensor in snapshot.tensors.items() if isinstance(tensor, Tensor)}
        facts = snapshot.facts.get("slot")
        try:
            if not isinstance(facts, Mapping):
                raise KeyError("slot")
            self.trial(request.trial).load(dict(facts), tensors)
        except (KeyError, ValueError) as error:
            self.evict(request.trial)
            raise SnapshotError(
                f"a snapshot of trial {request.trial} must be whole; got a problem with {error}."
            ) from error

    # ---- lanes

    def _order(self, request: TrialRequest) -> ExampleOrder:
        count = bucket_count(request.plan)
        lengths = self.objective.lengths("train")
        if count not in self._buckets:
            self._buckets[count] = length_buckets(lengths, count)
        buckets = self._buckets[count]
        sizes = [request.plan.examples_of(int(lengths[some[-1]])) for some in buckets]
        return ExampleOrder(buckets, seed=request.seed, sizes=sizes)

    def _lanes_of(self, active: Sequence[TrialSlot]) -> list[Lane]:
        """Return the lanes of the slots that train now; they are kept while the slots are the same."""
        wanted = [self._in_order(members) for members in self._shared_out(active)]
        if [lane.slots for lane in self.lanes] != wanted:
            self._dissolve()
            for members in wanted:
                self.lanes.append(self._lane(members))
        return self.lanes

    def _in_order(self, members: list[TrialSlot]) -> list[TrialSlot]:
        """Return the slots of a lane; with recordings, slots of equal structures have equal places."""
        return members if self.recorder is None else sorted(members, key=lambda slot: slot.structure)

    def _lane(self, slots: Sequence[TrialSlot]) -> Lane:
        """Return a lane of some slots; one of the same layout with kept recordings is refilled."""
        lane = Lane(slots, self.frozen, self.objective, self.recorder)
        kept = self._kept.pop(lane.layout, None)
        if kept is None:
            return lane
        kept.refill(lane)
        return kept

    def _shared_out(self, slots: Sequence[TrialSlot]) -> Iterator[list[TrialSlot]]:
        return computed_together(slots, self.frozen, self._longest_tokens, most=self.most_together)

    def _dissolve(self) -> None:
        """Close all lanes; the latest few that can be refilled are kept."""
        for lane in self.lanes:
            lane.close()
            if lane.layout is not None:
                lane.forget()
                self._kept[lane.layout] = lane
        self.lanes = []
        for layout in list(self._kept)[:-_MOST_KEPT]:
            del self._kept[layout]

    def _train(self, active: Sequence[TrialSlot], steps: int) -> list[Failure]:
        """Train slots by some steps, with fewer per pass if they do not fit together."""
        goals = {slot: slot.step + steps for slot in active}
        failed: Failures = {}
        while left := [slot for slot in active if slot.step < goals[slot] and slot not in failed]:
            for lane in self._lanes_of(left):
                ahead = min(goals[slot] - slot.step for slot in lane.slots)
                try:
                    failed |= lane.advance(ahead)
                except OUT_OF_MEMORY as error:
                    failed |= lane.collect_losses()
                    failed |= self._made_smaller(lane.slots, error)
                    break
        return [self._drop(slot, reason) for slot, reason in failed.items()]

    def _made_smaller(self, members: Sequence[TrialSlot], error: BaseException) -> Failures:
        """Reduce the number of slots per pass; a slot that does not fit alone fails.

        Raises:
            BaseException: The error, unless it is a lack of memory.
        """
        if not is_out_of_memory(error):
            raise error
        self._dissolve()
        self._kept.clear()
        release_memory()
        if len(members) > 1:
            self.most_together = max(1, len(members) // 2)
            return {}
        plan = members[0].request.plan
        if plan.checkpointing == "auto" and not self.frozen.recomputation.is_on:
            self.frozen.recomputation.switch(is_on=True)
            return {}
        if plan.micro_batch == "auto" and self.frozen.micro_batch.halve(plan.batch_size):
            return {}
        return dict.fromkeys(members, "the device has no memory for it, alone in a pass")

    def _drop(self, slot: TrialSlot, reason: str) -> Failure:
        self.evict(slot.request.trial)
        return Failure(trial=slot.request.trial, step=slot.step, reason=reason)

    # ---- readings

    def _measure(self, slots: Sequence[TrialSlot]) -> list[Reading | Failure]:
        """Return readings of the slots that are due, measured together."""
        due = [slot for slot in slots if slot.step in slot.request.plan.evaluate_at_steps]
        results: list[Reading | Failure] = []
        while due:
            members = next(self._shared_out(due))
            way = members[0].measured_next
            members = self._in_order([slot for slot in members if slot.measured_next == way])
            try:
                measured = self._metrics(members, *way)
            except OUT_OF_MEMORY as error:
                measured = {}
                if is_out_of_memory(error) and self.frozen.evaluation.halve():
                    release_memory()
                    continue
                for slot, reason in self._made_smaller(members, error).items():
                    due.remove(slot)
                    results.append(self._drop(slot, reason))
            for slot, found in measured.items():
                due.remove(slot)
                results.append(self._reading(slot, found))
        return results

    def _metrics(
        self, slots: Sequence[TrialSlot], split: str, is_final: bool, most: int | None
    ) -> dict[TrialSlot, ObjectiveMeasurement]:
        """Measure a split for some slots, all or none of which are at their last step."""
        began_at = time.perf_counter()
        lane = next((lane for lane in self.lanes if lane.slots == slots), None)
        if lane is None or any(map(_ends_with_robust_prefix, slots)):
            self._dissolve()
            lane = None
        together = pass_of(self.frozen, slots) if lane is None else lane.together
        found = self.objective.measure(together, split, is_final=is_final, most=most)
        measured = dict(zip(slots, found, strict=True))
        for slot in filter(_ends_with_robust_prefix, slots):
            alone = pass_of(self.frozen, [slot])
            seed = derived_seed(slot.request.seed, "robust")
            robust = self.objective.measure_robust(alone, slot.deltas, split, seed=seed)
            plain = {f"plain_{self.objective.metric}": measured[slot].metrics[self.objective.metric]}
            measured[slot] = replace(robust, metrics={**robust.metrics, **plain})
        for slot in slots:
            slot.seconds += (time.perf_counter() - began_at) / len(slots)
        return measured

    def _reading(self, slot: TrialSlot, measured: ObjectiveMeasurement) -> Reading | Failure:
        metrics = measured.metrics
        if not np.isfinite(metrics["validation_loss"]):
            reason = f"the {slot.request.plan.measured_split} loss is {metrics['validation_loss']} at step {slot.step}"
            return self._drop(slot, reason)
        train_loss, seconds = slot.take_means()
        return Reading(
            trial=slot.request.trial,
            attempt=slot.request.attempt,
            step=slot.step,
            score=self.objective.score(metrics),
            metrics=metrics,
            train_loss=train_loss,
            seconds=seconds,
            examples=measured.examples,
        )


def _ends_with_robust_prefix(slot: TrialSlot) -> bool:
    """Return whether the next reading uses robust prefixes, which are tuned for every batch and so take part last."""
    return slot.step >= slot.request.plan.steps and has_robust_prefix(slot.deltas)
