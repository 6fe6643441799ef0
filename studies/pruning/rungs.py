"""Pruning at rungs: decisions from recorded readings, by a `PruningRule`.

The rule ``none``: no trial stops.

The rule ``median``: a trial stops if its score is below the median of the others at the rung. This is the median
stopping rule of Golovin et al. 2017, as in Optuna's ``MedianPruner``. If a size is to be minimized, the others are
those that are no larger.

With every rule a collapsed trial stops (`studies.pruning.degenerate`), published methods included. The task head alone
always continues, as the baseline of all others.

A decision is made once, when the reading is recorded, and never revised.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from search_space.published import HEAD_ONLY, is_lora_method
from studies.errors import LaunchError
from studies.history.history import StudyHistory
from studies.objectives import SizeMeasure
from studies.pruning.degenerate import collapse
from studies.records import ExampleCounts
from trial_runner.requests import Reading
from trial_runner.seeds import derived_seed

LEAST_OTHERS = 4
"""Number of other trials at a rung from which they are compared."""

KEPT_PUBLISHED = 3
"""Number of best published methods that are protected by ``best``, apart from the best plain LoRA."""


class Rule(StrEnum):
    """Names of the rules that a study file can choose."""

    NONE = "none"
    MEDIAN = "median"


class Protected(StrEnum):
    """Published methods that run to the end at any rung.

    ``BEST`` protects the best ones and the best plain LoRA at the first rung so far, and the task head alone.
    """

    NONE = "none"
    BEST = "best"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class RungPlan:
    """Rungs at which trials are compared.

    Attributes:
        steps: Steps of the rungs, ascending, without the last step of a trial.
        rule: Rule of comparison.
        protected: Published methods that are never stopped.
        examples: Number of validation examples, for the standard error of a score in [0, 1]; None if unknown.
        measured: Largest number of examples measured at a rung; None for all.
        stops_collapsed: Whether collapsed trials stop.
        guessing_loss: Loss of guessing by the frequencies of the labels; None without labels.
        size: Size to be minimized; None if the score is the only objective.
        seed: Seed by which ties are broken.
    """

    steps: tuple[int, ...]
    rule: "Rule | PruningRule" = Rule.NONE
    protected: Protected = Protected.NONE
    examples: int | None = None
    measured: int | None = None
    stops_collapsed: bool = False
    guessing_loss: float | None = None
    size: SizeMeasure | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        if list(self.steps) != sorted(set(self.steps)) or not all(step >= 1 for step in self.steps):
            raise LaunchError(f"rungs must be at ascending steps from 1; got {self.steps}.")

    @property
    def rung_examples(self) -> int | None:
        """Number of examples of a score at a rung; None if unknown."""
        if self.examples is None or self.measured is None:
            return self.examples
        return min(self.examples, self.measured)

    @property
    def example_counts(self) -> ExampleCounts | None:
        """Numbers of examples of scores; None if unknown."""
        if self.examples is None or self.rung_examples is None:
            return None
        return ExampleCounts(whole=self.examples, rungs=self.rung_examples)

    def rung_at(self, step: int) -> int | None:
        """Return the index of the rung at a step; None between rungs."""
        return self.steps.index(step) if step in self.steps else None


PruningRule = Callable[[RungPlan, StudyHistory, Reading], str | None]
"""Function that returns the reason why the trial of a reading stops at a rung; None if it continues.

Its arguments are the plan, the history with the reading, and the reading.
"""


def below_the_median(plan: RungPlan, history: StudyHistory, reading: Reading) -> str | None:
    """Apply the rule ``median``: half of the comparable other trials have a higher score at the rung."""
    scores: Sequence[float] = history.scores_at(reading.step)
    if plan.size is not None:
        largest, at_step = plan.size.of(history[reading.trial]), readings_at(history, reading.step)
        scores = sorted(one.score for number, one in at_step.items() if plan.size.of(history[number]) <= largest)
    own = bisect_left(scores, reading.score)
    others = [*scores[:own], *scores[own + 1 :]]
    if len(others) < LEAST_OTHERS or reading.score >= (middle := median(others)):
        return None
    return f"{reading.score:.4g}, below {middle:.4g}, the median of {len(others)} others"


PRUNING_RULES: Mapping[Rule, PruningRule] = {Rule.NONE: lambda *_: None, Rule.MEDIAN: below_the_median}


def stop_reason(plan: RungPlan, history: StudyHistory, reading: Reading) -> str | None:
    """Return the reason why a trial stops at the rung of its newest reading; None if it continues, or at no rung.

    Args:
        plan: Rungs and the pruning rule.
        history: History of the study with the reading.
        reading: Newest reading of the trial.
    """
    rung = plan.rung_at(reading.step)
    if rung is None:
        return None
    reason = _collapse(plan, history, reading)
    if reason is None:
        rule = PRUNING_RULES[plan.rule] if isinstance(plan.rule, Rule) else plan.rule
        reason = rule(plan, history, reading)
        if reason is not None and reading.trial in protected(plan, history):
            reason = None
    return None if reason is None else f"rung {rung} ({reading.step} steps): {reason}"


def readings_at(history: StudyHistory, step: int) -> dict[int, Reading]:
    """Return the readings at a step by trial number; replicates are not compared at rungs."""
    return {
        trial.number: one
        for trial, readings in history.entries()
        if trial.replicate_of is None
        for one in readings
        if one.step == step
    }


def _collapse(plan: RungPlan, history: StudyHistory, reading: Reading) -> str | None:
    if not plan.stops_collapsed or history[reading.trial].method == HEAD_ONLY.name:
        return None
    first, is_first = plan.steps[0], reading.step == plan.steps[0]

    def others() -> Iterator[tuple[Reading, Reading | None]]:
        for number, one in readings_at(history, reading.step).items():
            if number != reading.trial:
                yield one, None if is_first else history.reading_at(number, first)

    before = None if is_first else history.reading_at(reading.trial, first)
    return collapse(reading, before, others(), plan.guessing_loss)


def protected(plan: RungPlan, history: StudyHistory) -> set[int]:
    """Return the numbers of the trials that are never stopped."""
    methods = {trial.number: trial.method for trial in history if trial.method is not None}
    match plan.protected:
        case Protected.ALL:
            return set(methods)
        case Protected.BEST:
            heads = {number for number, method in methods.items() if method == HEAD_ONLY.name}
            measured = [history.reading_at(number, plan.steps[0]) for number in methods if number not in heads]
            ranked = sorted((one for one in measured if one is not None), key=lambda one: _rank(plan, history, one))
            lora = [one for one in ranked if is_lora_method(methods[one.trial])]
            return heads | {one.trial for one in (*ranked[:KEPT_PUBLISHED], *lora[:1])}
        case _:
            return set()


def _rank(plan: RungPlan, history: StudyHistory, reading: Reading) -> tuple[float, float, int, int]:
    """Return the sort key of a reading, best first: by score, then loss, then by lot."""
    loss = reading.metrics.get("validation_loss", math.nan)
    lot = derived_seed(plan.seed, f"tie {history[reading.trial].fingerprint}")
    return -reading.score, math.inf if math.isnan(loss) else loss, lot, reading.trial
