"""Asynchronous successive halving: which trials go on, decided from recorded readings only, by a `PruningRule`.

The rule ``none``: no trial stops.

The rule ``significance``: a trial stops if at least ``ceil(n / reduction)`` of the readings there are better than its
own by `Z` standard errors of the difference, and at least `FEWEST` others are there. Where both
were measured example by example the difference is that of the losses, paired, by `Z_PAIRED`, and who is better has no
lower score either: early on the loss tells more of the end, and a trial that is sure of what it gets wrong is not
stopped for it. Else the difference is that of the scores. Trials that are protected are not counted: they would hold
the rungs for good.

The rule ``chance``: a trial stops if the probability that it is truly better than the best published method is below
`LEAST_CHANCE`, by the model of the search: it knows all readings of the study, losses among them, what a reading
predicts of the end, and how alike configurations do. Where no published method is there, or small configurations are
wanted, the best of the others is to be beaten, with `LEAST_CHANCE_OF_BEST`.

Where a study wants small configurations, too, ``n`` and what is better count only readings of trials that are no larger
than the one that arrives: nothing stops because something larger scores more. With one objective all sizes are equal.

Whatever the rule, a trial that has collapsed (`studies.pruning.degenerate`) stops, published methods included; the task
head alone goes on, for it is what all others are measured by.

A decision is taken once, when the reading is recorded, and never revised.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from search_space.published import HEAD_ONLY
from search_space.space.space import Candidate
from studies.errors import LaunchError
from studies.pruning.degenerate import collapse
from studies.records import ExampleCounts, TrialRecord
from studies.score_evidence import Evidence, loss_evidences
from studies.win_probability import WinProbability
from trial_runner.example_losses import ExampleLosses
from trial_runner.requests import Reading
from trial_runner.seeds import derived_seed

Z = 0.84
"""Standard errors of the difference by which a reading is better than another: one in five is so by luck.

One such comparison stops nothing; it takes ``ceil(n / reduction)``.
"""

Z_PAIRED = 1.28
"""The same of a paired difference: sharper, for what the examples have in common is gone, so more is asked of it."""

LEAST_CHANCE = 0.09
"""Of being truly better than the best published method; with less a trial stops.

On planted truths nine in ten of the better draws reached their end with it, for 60% of the steps.
"""

LEAST_CHANCE_OF_BEST = 0.02
"""The same where the best of all other trials is to be beaten: few are better, and one of those that are is wanted."""

FEWEST = 4
"""Other readings at a rung before the rule of significance stops a trial."""

KEPT_PUBLISHED = 3
"""Published methods that are protected where the best of them are."""


class Rule(StrEnum):
    """How a trial is compared with the others at a rung: the names of the rules that a study file can choose."""

    NONE = "none"
    SIGNIFICANCE = "significance"
    CHANCE = "chance"


class Protected(StrEnum):
    """Which published methods run to the end whatever the rungs say.

    ``BEST`` are those that were best at the first rung so far, and the task head alone.
    """

    NONE = "none"
    BEST = "best"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class RungPlan:
    """Where trials are compared.

    Attributes:
        steps: Steps of the rungs, ascending; the last step of a trial is not among them.
        reduction: About one trial in so many goes on; 1 never prunes.
        rule: How a trial is compared with the others.
        protected: Which published methods are never stopped.
        examples: Of the validation split, for the standard error of a score in [0, 1]; None if that is not known.
        measured: Most of them that are measured at a rung; None for all.
        stops_collapsed: Whether trials that learn nothing stop.
        guessing_loss: Loss of guessing by the frequencies of the labels; None where there are no labels.
        seed: Draws lots among equals.
    """

    steps: tuple[int, ...]
    reduction: int
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
        if not self.reduction >= 1:
            raise LaunchError(f"the reduction between rungs must be at least 1; got {self.reduction}.")

    @property
    def rung_examples(self) -> int | None:
        """How many examples a score at a rung is of; None if that is not known."""
        if self.examples is None or self.measured is None:
            return self.examples
        return min(self.examples, self.measured)

    @property
    def example_counts(self) -> ExampleCounts | None:
        """How many examples scores are of; None if that is not known."""
        if self.examples is None or self.rung_examples is None:
            return None
        return ExampleCounts(whole=self.examples, rungs=self.rung_examples)

    def rung_at(self, step: int) -> int | None:
        """Index of the rung at a step; None between rungs."""
        return self.steps.index(step) if step in self.steps else None


PruningRule = Callable[["RungBoard", int, Reading, WinProbability | None], str | None]
"""Why the trial of a reading stops at a rung; None when it goes on.

It is told the board, with the reading on it, the rung, the reading, and what the model expects of the trial; None where
that is not asked for, or too little is known.
"""


def significance(board: "RungBoard", rung: int, reading: Reading, win_probability: WinProbability | None) -> str | None:
    """The rule ``significance``: enough others are better by more than their noise."""
    plan, protected = board.plan, board.protected() | {reading.trial}
    others = [other for other in board.no_larger(rung, reading.trial) if other.trial not in protected]
    needed = math.ceil((len(others) + 1) / plan.reduction)
    if len(others) < FEWEST or plan.reduction == 1:
        return None
    # whoever is better has no lower score, by either comparison
    ahead = [other for other in others if other.score >= reading.score]
    if len(ahead) < needed:
        return None
    error = _errors([*(other.score for other in others), reading.score], plan.rung_examples)
    differences = board.loss_differences(rung, [other.trial for other in ahead], reading.trial)
    better = 0
    for other, losses in zip(ahead, differences, strict=True):
        if losses is None:
            apart = math.hypot(error(reading.score), error(other.score))
            better += other.score - reading.score > Z * apart
        else:
            better += losses.mean > Z_PAIRED * losses.standard_error
    if better < needed:
        return None
    return f"{reading.score:.4g}, and {better} of {len(others)} are better by more than their noise"


def chance(board: "RungBoard", rung: int, reading: Reading, win_probability: WinProbability | None) -> str | None:
    """The rule ``chance``: the trial is unlikely to beat its rival."""
    if win_probability is None:
        return None
    if win_probability.is_published:
        least, what = LEAST_CHANCE, "the best published method"
    else:
        least, what = LEAST_CHANCE_OF_BEST, "the best so far"
    if win_probability.chance >= least:
        return None
    return f"{reading.score:.4g}, and {win_probability.chance:.1%} likely to beat trial {win_probability.rival}, {what}"


RULES: Mapping[Rule, PruningRule] = {Rule.NONE: lambda *_: None, Rule.SIGNIFICANCE: significance, Rule.CHANCE: chance}


def _errors(scores: Sequence[float], examples: int | None) -> Callable[[float], float]:
    """The standard error of a score; where it cannot be told from the examples, half the spread of all scores."""
    if examples is not None and min(scores) >= 0 and max(scores) <= 1:
        return lambda score: math.sqrt(max(score * (1 - score), 1 / examples) / examples)
    middle = median(scores)
    spread = 1.4826 * median(abs(score - middle) for score in scores)
    return lambda score: spread / 2


class RungBoard:
    """The readings at every rung, and the verdicts that follow from them."""

    def __init__(self, plan: RungPlan) -> None:
        """Begin with no reading."""
        self.plan = plan
        self._rule = RULES[plan.rule] if isinstance(plan.rule, Rule) else plan.rule
        self._readings: list[dict[int, Reading]] = [{} for _ in plan.steps]
        self._examples: list[dict[int, ExampleLosses]] = [{} for _ in plan.steps]
        self._methods: dict[int, str] = {}
        self._fingerprints: dict[int, str] = {}
        self._sizes: dict[int, float] = {}

    def add(self, reading: Reading, trial: TrialRecord | Candidate | None = None, *, size: float = 0.0) -> bool:
        """Put a reading on the board; False if it is no rung's or the trial's reading is there already.

        Args:
            reading: The new one.
            trial: Whose it is; None for an unknown one of the search.
            size: Of the trial; 0 where only the score counts.
        """
        rung = self.plan.rung_at(reading.step)
        if rung is None or reading.trial in self._readings[rung]:
            return False
        self._readings[rung][reading.trial] = reading
        self._sizes[reading.trial] = size
        if trial is not None:
            self._fingerprints[reading.trial] = trial.fingerprint
            if trial.method is not None:
                self._methods[reading.trial] = trial.method
        return True

    def remember(self, trial: int, step: int, examples: ExampleLosses) -> None:
        """Take in what a reading measured example by example, if the rule asks for it; the first one stands."""
        rung = self.plan.rung_at(step)
        if rung is not None and self.plan.rule is Rule.SIGNIFICANCE:
            self._examples[rung].setdefault(trial, examples)

    def verdict(self, reading: Reading, win_probability: WinProbability | None = None) -> str | None:
        """Why the trial stops at this rung; None when it goes on. The reading is on the board already.

        Args:
            reading: The newest of the trial.
            win_probability: What the model expects of it, told of that reading; None while too little is known. It is
                for the rule of chance alone.
        """
        rung = self.plan.rung_at(reading.step)
        if rung is None:
            return None
        told = self._collapse(rung, reading.trial)
        if told is None and reading.trial not in self.protected():
            told = self._rule(self, rung, reading, win_probability)
        return None if told is None else f"rung {rung} ({reading.step} steps): {told}"

    def _collapse(self, rung: int, trial: int) -> str | None:
        if not self.plan.stops_collapsed or self._methods.get(trial) == HEAD_ONLY.name:
            return None
        here, first = self._readings[rung], self._readings[0] if rung else {}
        others = ((one, first.get(other)) for other, one in here.items() if other != trial)
        return collapse(here[trial], first.get(trial), others, self.plan.guessing_loss)

    def no_larger(self, rung: int, trial: int) -> list[Reading]:
        """The readings at a rung of trials that are no larger than one, its own included."""
        size = self._sizes[trial]
        return [reading for number, reading in self._readings[rung].items() if self._sizes[number] <= size]

    def loss_differences(self, rung: int, trials: Sequence[int], other: int) -> list[Evidence | None]:
        """How much lower the losses of some trials are than that of another, example by example.

        None where two cannot be compared so.
        """
        known = self._examples[rung]
        if other not in known:
            return [None] * len(trials)
        alike = [trial for trial in trials if trial in known and len(known[trial]) == len(known[other])]
        found = dict(zip(alike, loss_evidences([known[trial] for trial in alike], known[other]), strict=True))
        return [found.get(trial) for trial in trials]

    def protected(self) -> set[int]:
        """Numbers of the trials that are never stopped."""
        match self.plan.protected:
            case Protected.ALL:
                return set(self._methods)
            case Protected.BEST:
                heads = {trial for trial, method in self._methods.items() if method == HEAD_ONLY.name}
                first = self._readings[0].items() if self._readings else ()
                published = [one for trial, one in first if trial in self._methods and trial not in heads]
                return heads | {one.trial for one in sorted(published, key=self._place)[:KEPT_PUBLISHED]}
            case _:
                return set()

    def _place(self, reading: Reading) -> tuple[float, float, int, int]:
        """The lower, the better: by score, then by loss, then by lot."""
        loss = reading.metrics.get("validation_loss", math.nan)
        lot = derived_seed(self.plan.seed, f"tie {self._fingerprints[reading.trial]}")
        return -reading.score, math.inf if math.isnan(loss) else loss, lot, reading.trial
