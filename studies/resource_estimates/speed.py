"""Speed and memory of a study's trials, measured over a few steps."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from search_space.backbones.shape import BackboneShape
from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from studies.backends.backend import most_slots
from studies.resource_estimates.machine import Machine
from studies.study_file import Specification
from trial_runner.requests import TrainingPlan, TrialRequest
from trial_runner.tasks import Prepared, PreparedTextTask

if TYPE_CHECKING:
    from trial_runner.packs.pack import TrialPack

clock: Callable[[], float] = time.perf_counter
"""Clock of the seconds; benchmarks use the processor time of the process."""

LARGE_STEP = 1e11
"""Number of floating-point operations of a step from which a CPU is timed on one example of one trial."""

_TIMED_SECONDS = 4.0
_FEWEST_STEPS, _MOST_STEPS = 3, 24
_MEASURED_EXAMPLES = 64
_WRITTEN_TEXTS = 8
_FEWEST_TEXTS, _FEWEST_TOKENS = 2, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Speed and memory of trials on this machine.

    Attributes:
        slots: Trials per pack.
        step_seconds: Seconds per step of one trial in such a pack.
        example_seconds: Seconds per validation example of one trial at a rung.
        final_example_seconds: The same after the last step, with generated texts.
        slot_bytes: Memory of a trial without the backbone.
        backbone_bytes: Memory of the frozen weights.
        precision: Precision of the matrix products.
        steps: Number of timed steps.
        is_alone: Whether unlike trials are computed one by one, since a CPU gains nothing by larger steps.
    """

    slots: int
    step_seconds: float
    example_seconds: float
    final_example_seconds: float
    slot_bytes: float
    backbone_bytes: int
    precision: str
    steps: int
    is_alone: bool = False


def measured_speed(specification: Specification, task: Prepared, space: SearchSpace, machine: Machine) -> Speed:
    """Train a pack of random trials of a study for a few seconds; for a large model, one example of one trial per step.

    Args:
        specification: Study file.
        task: Prepared task of the study.
        space: Search space of the study.
        machine: Machine with the threads of a worker and the number of workers.

    Raises:
        RunnerError: If the backbone cannot be loaded, or no trial can be trained.
    """
    import torch

    from trial_runner.runner import runner_of

    before = torch.get_num_threads()
    plan, fleet = specification.training_plan(), specification.fleet
    tokens = max(1, int(task.splits["train"].lengths.mean()))
    is_large = not torch.cuda.is_available() and _is_large_step(space.shape, tokens, plan)
    few = _with_few(task, is_large=is_large)
    timed_plan = replace(plan, batch_size=1) if is_large else plan
    try:
        runner = runner_of(few, backbone=specification.backbone, precision=plan.precision, threads=machine.threads)
        try:
            wanted = most_slots(specification.trials, machine.workers) if fleet.pack == "auto" else int(fleet.pack)
            pack = runner.open_pack(wanted, fitting=plan if fleet.pack == "auto" else None)
            slots = pack.free_slots
            memory = runner.trial_bytes(plan)
            timed = 1 if is_large else slots
            candidates = _candidates(space, timed)
            step, steps = (0.0, 1) if is_large else _step_seconds(pack, candidates, plan)
            first, early, final = _measuring_seconds(runner.open_pack(timed), candidates, timed_plan)
            step = step or first  # the first step of a large model takes seconds, as others do
        finally:
            runner.close()
    finally:
        torch.set_num_threads(before)
    examples = timed * len(few.splits["validation"])
    measuring, writing = max(0.0, early - step), max(0.0, final - early)
    if isinstance(task, PreparedTextTask) and isinstance(few, PreparedTextTask):
        # encoding a source takes about as long as its loss; then every token takes equally long
        reading = min(writing, measuring)
        writing = reading + (writing - reading) * task.max_new_tokens / few.max_new_tokens
    return Speed(
        slots=slots,
        step_seconds=step / timed * (plan.examples_of(tokens) if is_large else 1),
        example_seconds=measuring / examples,
        final_example_seconds=(measuring + writing) / examples,
        slot_bytes=memory,
        backbone_bytes=runner.weights_bytes,
        precision=runner.precision,
        steps=steps,
        is_alone=not runner.shares_passes(plan),
    )


def _with_few(task: Prepared, *, is_large: bool) -> Prepared:
    """Return the task with fewer validation examples, and shorter texts for large models, for a fast evaluation."""
    is_written = isinstance(task, PreparedTextTask)
    count = _FEWEST_TEXTS if is_large else _WRITTEN_TEXTS if is_written else _MEASURED_EXAMPLES
    splits = {**task.splits, "validation": task.splits["validation"].first(count)}
    few: Prepared = replace(task, splits=splits)
    if is_large and isinstance(few, PreparedTextTask):
        few = replace(few, max_new_tokens=min(few.max_new_tokens, _FEWEST_TOKENS))
    return few


def _candidates(space: SearchSpace, count: int) -> list[Candidate]:
    """Return random candidates, or published methods if there are no others."""
    if space.is_searched:
        return [space.suggest(RandomTrial(seed)) for seed in range(count)]
    methods = space.published_that_fit(space.options.published_points)
    return [space.suggest_published(methods[index % len(methods)], RandomTrial(index)) for index in range(count)]


def _step_seconds(pack: "TrialPack", candidates: list[Candidate], plan: TrainingPlan) -> tuple[float, int]:
    """Return the seconds of a typical step of the whole pack after the first ones, and the number of timed steps."""
    _admit(pack, candidates, replace(plan, steps=_MOST_STEPS + 3, evaluate_at_steps=(_MOST_STEPS + 3,)))
    _seconds(lambda: pack.advance(1))
    once = _seconds(lambda: pack.advance(1))
    steps = int(min(_MOST_STEPS, max(_FEWEST_STEPS, _TIMED_SECONDS / max(once, 1e-9))))
    taken = [_seconds(lambda: pack.advance(1)) for _ in range(steps)]
    for number in range(len(candidates)):
        pack.evict(number)
    return median(taken), steps


def _measuring_seconds(
    pack: "TrialPack", candidates: list[Candidate], plan: TrainingPlan
) -> tuple[float, float, float]:
    """Return the seconds of a first step, of a step with an evaluation and of the last one."""
    _admit(pack, candidates, replace(plan, steps=3, evaluate_at_steps=(2, 3)))
    first, early, final = (_seconds(lambda: pack.advance(1)) for _ in range(3))
    return first, early, final


def _admit(pack: "TrialPack", candidates: list[Candidate], plan: TrainingPlan) -> None:
    for number, one in enumerate(candidates):
        rates = (one.attention_learning_rate or 0.0, one.ffn_learning_rate or 0.0, plan.head_learning_rate)
        own = {"trial": number, "attempt": 1, "seed": number}
        pack.admit(TrialRequest(**own, configuration=one.configuration, learning_rates=rates, plan=plan))


def _seconds(work: Callable[[], object]) -> float:
    """Return the duration of some work, including the GPU's."""
    import torch

    began_at = clock()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - began_at


def _is_large_step(shape: BackboneShape, tokens: int, plan: TrainingPlan) -> bool:
    """Return whether a step of one trial takes a CPU a second or more: three passes of products and sums.

    Args:
        shape: Shape of the backbone.
        tokens: Number of tokens of a usual example.
        plan: Plan of the training.
    """
    return 6.0 * shape.parameters * tokens * plan.examples_of(max(1, tokens)) > LARGE_STEP
