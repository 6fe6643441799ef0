"""Asynchronous successive halving: decisions at rungs from recorded readings, by a `PruningRule`.

The rule ``none``: no trial stops.

The rule ``significance``: a trial stops if enough readings at the rung are better by `Z` standard errors of the
difference. Enough are ``ceil(n / reduction)``, among at least `FEWEST` others. If both trials have losses by example,
the difference is the paired one of the losses, with `Z_PAIRED`. The better trial must then also have no lower score.
Early losses predict the end better than scores, and a confident trial is not stopped for its loss alone. Otherwise the
difference is that of the scores. Protected trials are not counted, since they would occupy the rungs for good.

The rule ``chance``: a trial stops if its probability to beat the best published method is below `LEAST_CHANCE`. The
surrogate predicts it from all readings and losses of the study and the similarity of configurations. Without a
published method, or with a size goal, the rival is the best other trial, with `LEAST_CHANCE_OF_BEST`.

With a size goal, ``n`` and better readings count trials that are no larger: no trial stops because a larger one scores
more. With one objective all sizes are equal.

With every rule a collapsed trial stops (`studies.pruning.degenerate`), published methods included. The task head alone
always continues, as the baseline of all others.

A decision is made once, when the reading is recorded, and never revised.
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
"""Standard errors of the difference by which a reading is better than another; noise alone exceeds it in one of five.

One such comparison stops nothing; it takes ``ceil(n / reduction)``.
"""

Z_PAIRED = 1.28
"""The same for a paired difference, which is more precise because the noise of common examples cancels."""

LEAST_CHANCE = 0.09
"""Probability of beating the best published method below which a trial stops.

On planted truths nine in ten of the better draws reached their end with it, for 60% of the steps.
"""

LEAST_CHANCE_OF_BEST = 0.02
"""The same where the rival is the best other trial, which few trials beat."""

FEWEST = 4
"""Number of other readings at a rung from which on the rule ``significance`` stops a trial."""

KEPT_PUBLISHED = 3
"""Number of best published methods that are protected by ``best``."""


class Rule(StrEnum):
    """Names of the rules that a study file can choose."""

    NONE = "none"
    SIGNIFICANCE = "significance"
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
        reduction: About one trial in this many continues; 1 never prunes.
        rule: Rule of comparison.
        protected: Published methods that are never stopped.
        examples: Number of validation examples, for the standard error of a score in [0, 1]; None if unknown.
        measured: Largest number of examples measured at a rung; None for all.
        stops_collapsed: Whether collapsed trials stop.
        guessing_loss: Loss of guessing by the frequencies of the labels; None without labels.
        seed: Seed by which ties are broken.
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


PruningRule = Callable[["RungBoard", int, Reading, WinProbability | None], str | None]
"""Function that returns the reason why the trial of a reading stops at a rung; None if it continues.

Its arguments are the board with the reading, the rung, the reading, and the trial's win probability. The latter is None
where the rule does not use it, or with too little data.
"""


def significance(board: "RungBoard", rung: int, reading: Reading, win_probability: WinProbability | None) -> str | None:
    """Apply the rule ``significance``: enough others are better by more than their noise."""
    plan, protected = board.plan, board.protected() | {reading.trial}
    others = [other for other in board.no_larger(rung, reading.trial) if other.trial not in protected]
    needed = math.ceil((len(others) + 1) / plan.reduction)
    if len(others) < FEWEST or plan.reduction == 1:
        return None
    # a better trial has no lower score in either comparison
    ahead = [other for other in others if other.score >= reading.score]
    if len(ahead) < needed:
        return None
    error = _errors([*(other.score for other in others), reading.score], plan.rung_examples)
    differences = board.loss_differences(rung, [other.trial for other in ahead], reading.trial)
    better = 0
    for other, losses in zip(ahead, differences, strict=True):
        if losses is None:
            deviation = math.hypot(error(reading.score), error(other.score))
            better += other.score - reading.score > Z * deviation
        else:
            better += losses.mean > Z_PAIRED * losses.standard_error
    if better < needed:
        return None
    return f"{reading.score:.4g}, and {better} of {len(others)} are better by more than their noise"


def chance(board: "RungBoard", rung: int, reading: Reading, win_probability: WinProbability | None) -> str | None:
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


PRUNING_RULES: Mapping[Rule, PruningRule] = {
    Rule.NONE: lambda *_: None,
    Rule.SIGNIFICANCE: significance,
    Rule.CHANCE: chance,
}


def _errors(scores: Sequence[float], examples: int | None) -> Callable[[float], float]:
    """Return a function for the standard error of a score, half the spread of all scores if examples do not give it."""
    if examples is not None and min(scores) >= 0 and max(scores) <= 1:
        return lambda score: math.sqrt(max(score * (1 - score), 1 / examples) / examples)
    middle = median(scores)
    spread = 1.4826 * median(abs(score - middle) for score in scores)
    return lambda score: spread / 2


class RungBoard:
    """Readings at every rung, and the verdicts that follow from them."""

    def __init__(self, plan: RungPlan) -> None:
        """Start without readings."""
        self.plan = plan
        self._rule = PRUNING_RULES[plan.rule] if isinstance(plan.rule, Rule) else plan.rule
        self._readings: list[dict[int, Reading]] = [{} for _ in plan.steps]
        self._examples: list[dict[int, ExampleLosses]] = [{} for _ in plan.steps]
        self._methods: dict[int, str] = {}
        self._fingerprints: dict[int, str] = {}
        self._sizes: dict[int, float] = {}

    def add(self, reading: Reading, trial: TrialRecord | Candidate | None = None, *, size: float = 0.0) -> bool:
        """Add a reading; return False if it is at no rung or the trial has a reading there.

        Args:
            reading: New reading.
            trial: Trial of the reading; None for an unnamed one of the search.
            size: Size of the trial; 0 where the score alone counts.
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
        """Store the losses by example of a reading if the rule uses them; the first ones are kept."""
        rung = self.plan.rung_at(step)
        if rung is not None and self.plan.rule is Rule.SIGNIFICANCE:
            self._examples[rung].setdefault(trial, examples)

    def verdict(self, reading: Reading, win_probability: WinProbability | None = None) -> str | None:
        """Return the reason why the trial stops at this rung; None if it continues. The reading must have been added.

        Args:
            reading: Newest reading of the trial.
            win_probability: Win probability given that reading, for the rule ``chance``; None with too little data.
        """
        rung = self.plan.rung_at(reading.step)
        if rung is None:
            return None
        reason = self._collapse(rung, reading.trial)
        if reason is None and reading.trial not in self.protected():
            reason = self._rule(self, rung, reading, win_probability)
        return None if reason is None else f"rung {rung} ({reading.step} steps): {reason}"

    def _collapse(self, rung: int, trial: int) -> str | None:
        if not self.plan.stops_collapsed or self._methods.get(trial) == HEAD_ONLY.name:
            return None
        here, first = self._readings[rung], self._readings[0] if rung else {}
        others = ((one, first.get(other)) for other, one in here.items() if other != trial)
        return collapse(here[trial], first.get(trial), others, self.plan.guessing_loss)

    def no_larger(self, rung: int, trial: int) -> list[Reading]:
        """Return the readings at a rung of trials no larger than one, its own included."""
        size = self._sizes[trial]
        return [reading for number, reading in self._readings[rung].items() if self._sizes[number] <= size]

    def loss_differences(self, rung: int, trials: Sequence[int], other: int) -> list[Evidence | None]:
        """Return how much lower the losses of some trials are than those of another, by example.

        An entry is None where two trials cannot be compared in this way.
        """
        known = self._examples[rung]
        if other not in known:
            return [None] * len(trials)
        comparable = [trial for trial in trials if trial in known and len(known[trial]) == len(known[other])]
        evidence = dict(
            zip(comparable, loss_evidences([known[trial] for trial in comparable], known[other]), strict=True)
        )
        return [evidence.get(trial) for trial in trials]

    def protected(self) -> set[int]:
        """Return the numbers of the trials that are never stopped."""
        match self.plan.protected:
            case Protected.ALL:
                return set(self._methods)
            case Protected.BEST:
                heads = {trial for trial, method in self._methods.items() if method == HEAD_ONLY.name}
                first = self._readings[0].items() if self._readings else ()
                published = [one for trial, one in first if trial in self._methods and trial not in heads]
                return heads | {one.trial for one in sorted(published, key=self._sort_key)[:KEPT_PUBLISHED]}
            case _:
                return set()

    def _sort_key(self, reading: Reading) -> tuple[float, float, int, int]:
        """Return the sort key of a reading, best first: by score, then loss, then by lot."""
        loss = reading.metrics.get("validation_loss", math.nan)
        lot = derived_seed(self.plan.seed, f"tie {self._fingerprints[reading.trial]}")
        return -reading.score, math.inf if math.isnan(loss) else loss, lot, reading.trial
