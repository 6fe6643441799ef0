"""The best score within every size: the trials that score more than all that are no larger, by their estimates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from search_space.parameter_counts.budget import budget_parameters, read_budget
from studies.analysis.estimates import Estimates
from studies.analysis.frames import frame
from studies.analysis.ranks import Ranking, ranking_of, shown
from studies.errors import WishError
from studies.ledger.ledger import Ledger
from studies.objectives import SMALLEST_SHARE, SizeGoal, SizeMeasure
from studies.pareto import Staircase, front
from studies.records import RankedTrial, StudyRecord, TrialRecord, TrialState
from studies.score_evidence import Estimate
from studies.seeds import hashed_seed
from studies.surrogate.structure_distances import Array

if TYPE_CHECKING:
    import pandas

DRAWS = 1000
"""Draws of the posterior that an interval is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint:
    """A trial that scores more than all that are no larger.

    Attributes:
        number: Of the trial.
        method: Published method, or ``discovered``.
        sentence: What the configuration is, in words.
        size: What the front is over: stored parameters, or extra FLOPs per token.
        share: Of the largest size; of the budget, where the size is parameters.
        estimate: What it is expected to score if it is trained again; its score where there are no estimates.
        estimate_low: Lower end of the interval that holds that with 95%; None where there are no estimates.
        estimate_high: Upper end.
        score: Final score, the mean over its seeds.
        seeds: How often it was trained to the end.
        parameters: Stored parameters.
        extra_flops: FLOPs per token that it adds at inference; None where nobody has kept it.
    """

    number: int
    method: str
    sentence: str
    size: int
    share: float
    estimate: float
    estimate_low: float | None
    estimate_high: float | None
    score: float
    seeds: int
    parameters: int
    extra_flops: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The best score within every size.

    Attributes:
        objective: What the sizes are: ``parameters`` or ``extra_flops``.
        largest: The size that counts as 1.
        points: From the smallest to the largest; empty while nothing is complete.
        reference: What the hypervolume is above: the estimate of the task head alone, else the lowest of a complete
            trial; None without points.
        hypervolume: Area between the front and the reference over base-2 logarithms of sizes, from ``smallest_share``
            of the largest to its double, divided by its length: the mean of what the best within a size is above the
            reference. Its deviation is that of the points' true scores; 0 where there are no estimates. None without
            points.
    """

    objective: str
    largest: float
    points: tuple[FrontPoint, ...]
    reference: float | None
    hypervolume: Estimate | None

    def within(self, size: float) -> FrontPoint | None:
        """The best that is no larger; None if all are."""
        return next((point for point in reversed(self.points) if point.size <= size), None)

    def table(self) -> "pandas.DataFrame":
        """Its points as a frame, one column per attribute."""
        names = [field.name for field in fields(FrontPoint)]
        entries = [{name: getattr(point, name) for name in names} for point in self.points]
        return frame(entries, columns=names)


def front_of(
    ledger: Ledger, study: StudyRecord, ranking: Ranking | None = None, *, over: SizeMeasure | None = None
) -> Front:
    """The front of a study's complete trials, replicates counted for the trials that they repeat.

    Args:
        ledger: Where the study is.
        study: Its record; a confirmation has a front of its own.
        ranking: Of its trials, if that is known already.
        over: What is to be small; None for what the study wants small, or parameters.
    """
    known, goal = ranking or ranking_of(ledger, study), goal_of(study, over)
    ended = [trial for trial in known.trials if trial.state is TrialState.COMPLETE]
    complete = [trial for trial in ended if math.isfinite(goal.size(trial))]
    if not complete:
        return Front(objective=goal.objective, largest=goal.scale.largest, points=(), reference=None, hypervolume=None)
    means = [_worth(trial, known) for trial in complete]
    chosen = [complete[place] for place in front([goal.size(trial) for trial in complete], means)]
    alone = [mean for trial, mean in zip(complete, means, strict=True) if not trial.stored_parameters]
    reference = max(alone, default=min(means))
    return Front(
        objective=goal.objective,
        largest=goal.scale.largest,
        points=tuple(_point(ledger.trial(study.id, trial.number), known, goal) for trial in chosen),
        reference=reference,
        hypervolume=_hypervolume(study, chosen, known, goal, reference),
    )


def wanted_front(ledger: Ledger, study: StudyRecord, ranking: Ranking) -> Front | None:
    """The front of a study that wants small configurations, too; None of others."""
    wanted = study.section("search").get("objectives")
    return front_of(ledger, study, ranking) if isinstance(wanted, list | tuple) and len(wanted) > 1 else None


def best_within(ledger: Ledger, name: str, size: str | int | float) -> int:
    """Number of the complete trial that is expected to score most of those that are small enough.

    Args:
        ledger: Where the study is.
        name: Of the study.
        size: Most stored parameters: a number, or a share of the backbone such as ``0.1%``.

    Raises:
        UnknownStudyError: If there is no study of that name.
        BudgetError: If the size cannot be read.
        StudiesError: If no complete trial is so small.
    """
    study = ledger.study(name)
    most = parameters_of(size, study)
    found = front_of(ledger, study, over=SizeMeasure.PARAMETERS)
    best = found.within(most)
    if best is None:
        smallest = f"the smallest has {found.points[0].size:,}" if found.points else "none is complete"
        raise WishError(
            f"study {name!r} must have a complete trial of at most {most:,} parameters; {smallest}. Give a larger size."
        )
    return best.number


def parameters_of(size: str | int | float, study: StudyRecord) -> int:
    """A size as a number of parameters.

    Raises:
        BudgetError: If it is neither a number nor a share of the backbone.
    """
    return budget_parameters(read_budget(size, "size"), study.backbone_parameters)


def goal_of(study: StudyRecord, over: SizeMeasure | None = None) -> SizeGoal:
    """What a study wants small, beside a high score; parameters, where it says nothing.

    Args:
        study: Its record; its study file may be of another release.
        over: Something else that is to be small.
    """
    wanted, space = study.section("search").get("objectives"), study.section("space")
    size, flops = space.get("size"), space.get("max_extra_flops")
    small = [SizeMeasure(word) for word in wanted[1:2]] if isinstance(wanted, list | tuple) else []
    return SizeGoal.of(
        over or next(iter(small), SizeMeasure.PARAMETERS),
        budget=study.budget_parameters,
        smallest_share=float(size[0]) if isinstance(size, list | tuple) else SMALLEST_SHARE,
        max_extra_flops=flops if isinstance(flops, int) else None,
    )


def _worth(trial: RankedTrial, ranking: Ranking) -> float:
    estimate = ranking.estimates.of.get(trial.number)
    return ranking.scores[trial.number] if estimate is None else estimate.mean


def _point(trial: TrialRecord, ranking: Ranking, goal: SizeGoal) -> FrontPoint:
    return FrontPoint(
        **shown(trial, ranking) | {"estimate": _worth(trial, ranking)},
        size=int(goal.size(trial)),
        share=goal.size(trial) / goal.scale.largest,
        score=ranking.scores[trial.number],
        extra_flops=trial.extra_flops,
    )


def _hypervolume(
    study: StudyRecord, chosen: Sequence[RankedTrial], ranking: Ranking, goal: SizeGoal, reference: float
) -> Estimate:
    """Of the trials of the front: mean and deviation over what their true scores may be together."""
    scale = goal.scale
    places = [scale.place(goal.size(trial)) for trial in chosen]
    length = scale.high - scale.low

    def area(scores: Sequence[float] | Array) -> float:
        return Staircase.of(places, scores, scale=scale, reference=reference).area(reference) / length

    if not ranking.estimates.of:
        return Estimate(mean=area([_worth(trial, ranking) for trial in chosen]), deviation=0.0)
    draws = posterior_draws(ranking.estimates, [trial.number for trial in chosen], study)
    areas = np.array([area(drawn) for drawn in draws])
    return Estimate(mean=float(areas.mean()), deviation=float(areas.std()))


def posterior_draws(estimates: Estimates, numbers: Sequence[int], study: StudyRecord, count: int = DRAWS) -> Array:
    """What some trials may score, drawn together, (count, N); the same for the same study and trials.

    Args:
        estimates: Of the study's trials.
        numbers: Of trials that have an estimate.
        study: Seeds the draws.
        count: How many.
    """
    means, covariance = estimates.joint(numbers)
    generator = np.random.default_rng(hashed_seed("front", study.seed, *numbers))
    even = (covariance + covariance.T) / 2
    return generator.multivariate_normal(means, even, count, method="eigh", check_valid="ignore")
