"""How fast trials of a study are and what memory they take, by training some for a few steps."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from studies.fleet.backend import most_slots
from studies.foresight.machine import Machine
from studies.specification import Specification
from trial_runner.requests import LearningRates, TrainingPlan, TrialRequest
from trial_runner.tasks import Prepared

if TYPE_CHECKING:
    from trial_runner.packs.pack import TrialPack

clock: Callable[[], float] = time.perf_counter
"""What seconds are; benchmarks count those of the process where others compute beside them."""

_TIMED_SECONDS = 4.0
_FEWEST_STEPS, _MOST_STEPS = 3, 24
_MEASURED_EXAMPLES = 64
_WRITTEN_TEXTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What trials take, on this machine.

    Attributes:
        slots: Trials of a pack.
        step_seconds: Of a step of one trial, in such a pack.
        example_seconds: Of measuring one validation example at a rung, of one trial.
        final_example_seconds: The same after the last step, when texts are written.
        slot_bytes: Memory of a trial beside the backbone.
        backbone_bytes: Memory of the backbone's weights.
        precision: Of the products.
        steps: How many were timed.
    """

    slots: int
    step_seconds: float
    example_seconds: float
    final_example_seconds: float
    slot_bytes: float
    backbone_bytes: int
    precision: str
    steps: int


def measured_speed(specification: Specification, task: Prepared, space: SearchSpace, machine: Machine) -> Speed:
    """Train a pack of random trials of a study for a few seconds.

    Args:
        specification: The study.
        task: Its task, prepared.
        space: What it may propose.
        machine: How many threads a worker has, and how many workers there are.

    Raises:
        RunnerError: If the backbone cannot be had, or no trial of them can be trained.
    """
    import torch

    from trial_runner.linear_layers import held_bytes
    from trial_runner.runner import runner_of

    before = torch.get_num_threads()
    count = _WRITTEN_TEXTS if not task.labels else _MEASURED_EXAMPLES
    few = _with_few(task, count)
    training = specification.training
    try:
        runner = runner_of(few, backbone=specification.backbone, precision=training.precision, threads=machine.threads)
        try:
            plan = specification.training_plan()
            fleet = specification.fleet
            wanted = most_slots(specification.trials, machine.workers) if fleet.pack == "auto" else int(fleet.pack)
            pack = runner.open_pack(wanted, fitting=plan if fleet.pack == "auto" else None)
            slots = pack.free_slots
            candidates = _candidates(space, slots)
            memory = pack.memory_of(_request(0, candidates[0], plan)).slot_bytes
            step, steps = _step_seconds(pack, candidates, plan)
            measuring = runner.open_pack(slots)
            early, final = _measuring_seconds(measuring, candidates, plan)
        finally:
            runner.close()
    finally:
        torch.set_num_threads(before)
    examples = slots * len(few.splits["validation"])
    return Speed(
        slots=slots,
        step_seconds=step / slots,
        example_seconds=max(0.0, early - step) / examples,
        final_example_seconds=max(0.0, final - step) / examples,
        slot_bytes=memory,
        backbone_bytes=held_bytes(runner.backbone.model),
        precision=runner.precision,
        steps=steps,
    )


def _with_few(task: Prepared, count: int) -> Prepared:
    """The task with fewer validation examples, so that measuring it takes no time."""
    splits = {**task.splits, "validation": task.splits["validation"].first(count)}
    return replace(task, splits=splits)  # type: ignore[type-var]


def _candidates(space: SearchSpace, count: int) -> list[Candidate]:
    """Random proposals, published methods where there is nothing else."""
    if space.trees:
        return [space.suggest(RandomTrial(seed)) for seed in range(count)]
    methods = space.published_that_fit(space.options.published_points)
    return [space.suggest_published(methods[index % len(methods)], RandomTrial(index)) for index in range(count)]


def _request(number: int, candidate: Candidate, plan: TrainingPlan) -> TrialRequest:
    rates = LearningRates(
        attention=candidate.attention_learning_rate, ffn=candidate.ffn_learning_rate, head=plan.head_learning_rate
    )
    return TrialRequest(
        trial=number, attempt=1, configuration=candidate.configuration, learning_rates=rates, plan=plan, seed=number
    )


def _step_seconds(pack: "TrialPack", candidates: list[Candidate], plan: TrainingPlan) -> tuple[float, int]:
    """Seconds of a usual step of the whole pack after the first two, and how many steps were timed."""
    _admit(pack, candidates, replace(plan, steps=_MOST_STEPS + 3, evaluate_at_steps=(_MOST_STEPS + 3,)))
    _seconds(lambda: pack.advance(1))
    once = _seconds(lambda: pack.advance(1))
    steps = int(min(_MOST_STEPS, max(_FEWEST_STEPS, _TIMED_SECONDS / max(once, 1e-9))))
    taken = [_seconds(lambda: pack.advance(1)) for _ in range(steps)]
    for slot in range(len(candidates)):
        pack.evict(slot)
    return median(taken), steps


def _measuring_seconds(pack: "TrialPack", candidates: list[Candidate], plan: TrainingPlan) -> tuple[float, float]:
    """Seconds of a step with a measurement after it: one at a rung, and the one after the last step."""
    _admit(pack, candidates, replace(plan, steps=3, evaluate_at_steps=(2, 3)))
    pack.advance(1)
    return _seconds(lambda: pack.advance(1)), _seconds(lambda: pack.advance(1))


def _admit(pack: "TrialPack", candidates: list[Candidate], plan: TrainingPlan) -> None:
    for number, candidate in enumerate(candidates):
        pack.admit(_request(number, candidate, plan))


def _seconds(work: Callable[[], object]) -> float:
    """What it takes; a GPU is waited for."""
    import torch

    began_at = clock()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - began_at
