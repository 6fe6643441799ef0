"""Trials of packs traced step by step, and the deviation of two traces."""

import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from trial_runner.packs.pack import TrialPack
from trial_runner.packs.slot import TrialSlot
from trial_runner.requests import Failure, Reading, TrialRequest
from trial_runner.runner import TorchRunner

_SECOND_MOMENT = "optimizer.exp_avg_sq."


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialTrace:
    """Trace of a trial.

    Attributes:
        losses: Training loss of every step.
        readings: Its measurements.
        tensors: Its state at the end, as a snapshot has it.
    """

    losses: tuple[float, ...]
    readings: tuple[Reading, ...]
    tensors: Mapping[str, Tensor]


@dataclass(slots=True, kw_only=True)
class Watched:
    """A trial in training.

    Attributes:
        state: Its state.
        losses: Training loss of every step until now.
        readings: Its measurements until now.
    """

    state: TrialSlot
    losses: list[float] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)

    @property
    def trial(self) -> int:
        """Its number."""
        return self.state.request.trial

    @property
    def has_ended(self) -> bool:
        """Whether its last step is done."""
        return self.state.step == self.state.request.plan.steps

    def follow(self, before: tuple[float, int], reading: Reading | None) -> None:
        """Keep the loss of one step.

        Args:
            before: Sum and number of the losses before the step.
            reading: What the step gave, if it gave one; the sum has started anew then.
        """
        if reading is None:
            self.losses.append(float(self.state.loss_sum) - before[0])
        else:
            self.losses.append(reading.train_loss * (before[1] + 1) - before[0])
            self.readings.append(reading)

    def trace(self, pack: TrialPack) -> TrialTrace:
        """Return the trace."""
        tensors = tensors_of(pack, self.trial)
        return TrialTrace(losses=tuple(self.losses), readings=tuple(self.readings), tensors=tensors)


def tensors_of(pack: TrialPack, trial: int) -> dict[str, Tensor]:
    """Return the state of a trial."""
    snapshot = pack.snapshot(trial)
    return {name: tensor for name, tensor in snapshot.tensors.items() if isinstance(tensor, Tensor)}


def watch(pack: TrialPack, request: TrialRequest) -> Watched:
    """Admit a trial and watch it."""
    pack.admit(request)
    return Watched(state=pack.trial(request.trial))


def advance(pack: TrialPack, watched: Iterable[Watched]) -> list[Failure]:
    """Advance the pack by one step; trials that are not watched may fail."""
    before = [(each, (float(each.state.loss_sum), each.state.loss_count)) for each in watched]
    results = pack.advance(1)
    readings = {result.trial: result for result in results if isinstance(result, Reading)}
    failures = [result for result in results if isinstance(result, Failure)]
    for each, numbers in before:
        assert each.trial not in {failure.trial for failure in failures}, failures
        each.follow(numbers, readings.get(each.trial))
    return failures


def train(pack: TrialPack, requests: Sequence[TrialRequest], *, arrivals: Sequence[int] = ()) -> list[TrialTrace]:
    """Train trials in a pack to their ends, step by step; one that has ended makes room for the next.

    Args:
        pack: Pack without other trials.
        requests: The trials, in the order in which they are admitted.
        arrivals: Steps of the pack before which none of them is admitted; all at once without any.

    Returns:
        Traces in the order of the requests.
    """
    waiting = deque(enumerate(requests))
    running: dict[int, Watched] = {}
    traces: dict[int, TrialTrace] = {}
    clock = 0
    while waiting or running:
        while waiting and pack.free_slots and (not arrivals or arrivals[waiting[0][0]] <= clock):
            index, request = waiting.popleft()
            running[index] = watch(pack, request)
        assert not advance(pack, running.values())
        for index, each in list(running.items()):
            if each.has_ended:
                traces[index] = running.pop(index).trace(pack)
                pack.evict(each.trial)
        clock += 1
    return [traces[index] for index in range(len(requests))]


def alone(runner: TorchRunner, request: TrialRequest) -> TrialTrace:
    """Train the trial in a pack of its own."""
    (trace,) = train(runner.open_pack(1), [request])
    return trace


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Deviation:
    """Largest deviation of two traces.

    Attributes:
        share: Share of the largest magnitude there; infinite for numbers of which one is not finite, or
            traces that do not have the same parts.
        where: The place.
    """

    share: float
    where: str


def deviation(one: TrialTrace, other: TrialTrace, *, is_rough: bool = False) -> Deviation:
    """Compare losses, parameters and the optimiser's moments.

    Args:
        one: A trace.
        other: The reference.
        is_rough: Whether a tensor is compared not by itself, largest difference to largest magnitude, but together
            with all of its kind, norm to norm. AdamW makes a step as large as any other out of a gradient that is
            nearly cancelled by others, and of such a gradient float32 knows few digits.
    """
    return max(_deviations(one, other, is_rough=is_rough))


def _deviations(one: TrialTrace, other: TrialTrace, *, is_rough: bool) -> Iterator[Deviation]:
    is_same = len(one.losses) == len(other.losses)
    yield Deviation(share=0.0 if is_same else math.inf, where="number of losses")
    for step, (loss, reference) in enumerate(zip(one.losses, other.losses, strict=False), start=1):
        yield Deviation(share=_share(abs(loss - reference), abs(reference)), where=f"loss of step {step}")
    shapes, wanted = ([(name, *tensor.shape) for name, tensor in sorted(each.tensors.items())] for each in (one, other))
    yield Deviation(share=0.0 if shapes == wanted else math.inf, where="names and shapes of tensors")
    if shapes == wanted:
        states, references = (_states(each.tensors, other.tensors, is_rough=is_rough) for each in (one, other))
        order = 2 if is_rough else math.inf
        for name, reference in references.items():
            distance, size = (torch.linalg.vector_norm(each, order) for each in (states[name] - reference, reference))
            yield Deviation(share=_share(float(distance), float(size)), where=name)


def _states(tensors: Mapping[str, Tensor], references: Mapping[str, Tensor], *, is_rough: bool) -> dict[str, Tensor]:
    """Return each tensor as a vector, or all of a kind as one, without undetermined numbers of a reference."""
    moments = {name: tensor.double().sqrt() for name, tensor in references.items() if _SECOND_MOMENT in name}
    trained = next(tensor for name, tensor in references.items() if name.startswith(("deltas.", "head.")))
    least = 100 * torch.finfo(trained.dtype).eps * max(float(each.max()) for each in moments.values())
    found: dict[str, list[Tensor]] = {}
    for name, tensor in sorted(tensors.items()):
        gradients = moments.get(_SECOND_MOMENT + re.sub(r"^optimizer\.\w+\.|^buffers\.", "", name))
        if gradients is None or gradients.shape != tensor.shape:  # such as a number of steps
            determined = tensor.double().flatten()
        else:
            determined = tensor.double()[(gradients > least) | (gradients == 0)]
        found.setdefault(_kind(name) if is_rough else name, []).append(determined)
    vectors = {name: torch.cat(parts) for name, parts in found.items()}
    return {name: vector for name, vector in vectors.items() if vector.numel()}


def _kind(name: str) -> str:
    """Return ``deltas``, ``head``, ``buffers``, or the kind of moments."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "optimizer" else parts[0]


def measured(one: TrialTrace, other: TrialTrace) -> Deviation:
    """Compare readings. A mean training loss and a validation loss are float32 at times, whatever the rest is."""
    return max(_measured(one, other))


def _measured(one: TrialTrace, other: TrialTrace) -> Iterator[Deviation]:
    steps, wanted_steps = ([reading.step for reading in each.readings] for each in (one, other))
    yield Deviation(share=0.0 if steps == wanted_steps else math.inf, where="steps that are measured")
    for reading, expected in zip(one.readings, other.readings, strict=False):
        for name in reading.metrics.keys() | expected.metrics.keys():
            number, wanted = reading.metrics.get(name, math.nan), expected.metrics.get(name, math.nan)
            yield Deviation(share=_share(abs(number - wanted), 1.0), where=f"{name} at step {expected.step}")


def _share(difference: float, scale: float) -> float:
    if difference == 0:
        return 0.0
    return difference / scale if math.isfinite(difference) and scale > 0 else math.inf


def worst(
    packed: Sequence[TrialTrace],
    references: Sequence[TrialTrace],
    requests: Sequence[TrialRequest],
    *,
    is_rough: bool = False,
) -> Deviation:
    """Return the largest deviation of several trials, with the trial's number and structure."""
    found = []
    for trace, reference, request in zip(packed, references, requests, strict=True):
        one = deviation(trace, reference, is_rough=is_rough)
        found.append(replace(one, where=f"{one.where} of trial {request.trial}, {request.configuration}"))
    return max(found)
