"""Pruning at rungs: decisions from recorded readings, by a `PruningRule`.

The rule ``none``: no trial stops.

The rule ``chance``: a trial stops if its probability to beat the best published method is below `LEAST_CHANCE`. The
surrogate predicts it from all readings and losses of the study and the similarity of configurations. Without a
published method, or with a size goal, the rival is the best other trial, with `LEAST_CHANCE_OF_BEST`.

With every rule a collapsed trial stops (`studies.pruning.degenerate`), published methods included. The task head alone
always continues, as the baseline of all others.

A decision is made once, when the reading is recorded, and never revised.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from search_space.published import HEAD_ONLY
from studies.errors import LaunchError
from studies.history.history import StudyHistory
from studies.pruning.degenerate import collapse
from studies.records import ExampleCounts
from studies.win_probability import WinProbability
from trial_runner.requests import Reading
from trial_runner.seeds import derived_seed

LEAST_CHANCE = 0.09
"""Probability of beating the best published method below which a trial stops.

On planted truths nine in ten of the better draws reached their end with it, for 60% of the steps.
"""

LEAST_CHANCE_OF_BEST = 0.02
"""The same where the rival is the best other trial, which few trials beat."""

KEPT_PUBLISHED = 3
"""Number of best published methods that are protected by ``best``."""


class Rule(StrEnum):
    """Names of the rules that a study file can choose."""

    NONE = "none"
    CHANCE = "chance"


class Protected(StrEnum):
    """Published methods that run to the end at any rung.

    ``BEST`` protects the best ones at the first rung so far, and the task head alone.
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
        seed: Seed by which ties are broken.
    """

    steps: tuple[int, ...]
    rule: "Rule | PruningRule" = Rule.NONE
    protected: Protected = Protected.NONE
    examples: int | None = None
    measured: int | None = None
    stops_collapsed: bool = False
    guessing_loss: float | None = None
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


PruningRule = Callable[[RungPlan, StudyHistory, Reading, WinProbability | None], str | None]
"""Function that returns the reason why the trial of a reading stops at a rung; None if it continues.

Its arguments are the plan, the history with the reading, the reading, and the trial's win probability. The latter is
None where the rule does not use it, or with too little data.
"""


def chance(
    plan: RungPlan, history: StudyHistory, reading: Reading, win_probability: WinProbability | None
) -> str | None:
    """Apply the rule ``chance``: the trial is unlikely to beat its rival."""
    if win_probability is None:
        return None
    if win_probability.is_published:
        least, what = LEAST_CHANCE, "the best published method"
    else:
        least, what = LEAST_CHANCE_OF_BEST, "the best so far"
    if win_probability.chance >= least:
        return None
    return f"{reading.score:.4g}, and {win_probability.chance:.1%} likely to beat trial {win_probability.rival}, {what}"


PRUNING_RULES: Mapping[Rule, PruningRule] = {Rule.NONE: lambda *_: None, Rule.CHANCE: chance}


def stop_reason(
    plan: RungPlan, history: StudyHistory, reading: Reading, win_probability: WinProbability | None = None
) -> str | None:
    """Return the reason why a trial stops at the rung of its newest reading; None if it continues, or at no rung.

    Args:
        plan: Rungs and the pruning rule.
        history: History of the study with the reading.
        reading: Newest reading of the trial.
        win_probability: Win probability given that reading, for the rule ``chance``; None with too little data.
    """
    rung = plan.rung_at(reading.step)
    if rung is None:
        return None
    reason = _collapse(plan, history, reading)
    if reason is None:
        rule = PRUNING_RULES[plan.rule] if isinstance(plan.rule, Rule) else plan.rule
        reason = rule(plan, history, reading, win_probability)
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
            return heads | {one.trial for one in ranked[:KEPT_PUBLISHED]}
        case _:
            return set()


def _rank(plan: RungPlan, history: StudyHistory, reading: Reading) -> tuple[float, float, int, int]:
    """Return the sort key of a reading, best first: by score, then loss, then by lot."""
    loss = reading.metrics.get("validation_loss", math.nan)
    lot = derived_seed(plan.seed, f"tie {history[reading.trial].fingerprint}")
    return -reading.score, math.inf if math.isnan(loss) else loss, lot, reading.trial
