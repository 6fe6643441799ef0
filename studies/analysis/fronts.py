"""Pareto fronts: trials whose estimate is above those of all trials that are no larger."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from search_space.parameter_counts.budget import budget_parameters, read_budget
from studies.analysis.estimates import Estimates
from studies.analysis.frames import frame
from studies.analysis.ranks import Ranking, ranking_of, shown
from studies.errors import InvalidRequestError
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
"""Number of posterior draws for an interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint:
    """Trial on the front.

    Attributes:
        number: Number of the trial.
        method: Published method, or ``discovered``.
        sentence: Configuration in words.
        size: Size on the front's axis: stored parameters, or extra FLOPs per token.
        share: Share of the largest size, which is the budget for parameters.
        estimate: Expected score if it is trained again; the score without estimates.
        estimate_low: Lower end of its 95% interval; None without estimates.
        estimate_high: Upper end of its 95% interval; None without estimates.
        score: Final score, the mean over its seeds.
        seeds: Number of complete trainings.
        parameters: Stored parameters.
        extra_flops: Extra FLOPs per token at inference; None if not recorded.
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
    """Best score within every size.

    Attributes:
        objective: Measure of the sizes, ``parameters`` or ``extra_flops``.
        largest: Size that counts as 1.
        points: Points from the smallest to the largest; empty without a complete trial.
        reference: Lower bound of the hypervolume: the estimate of the task head alone, else the lowest of a complete
            trial; None without points.
        hypervolume: Mean height of the front above the reference, over base-2 logarithms of sizes from
            ``smallest_share`` of the largest to its double. Its deviation is that of the true scores, 0 without
            estimates; None without points.
    """

    objective: str
    largest: float
    points: tuple[FrontPoint, ...]
    reference: float | None
    hypervolume: Estimate | None

    def within(self, size: float) -> FrontPoint | None:
        """Return the best point that is no larger; None if all are larger."""
        return next((point for point in reversed(self.points) if point.size <= size), None)

    def table(self) -> "pandas.DataFrame":
        """Return the points as a frame, one column per attribute."""
        names = [field.name for field in fields(FrontPoint)]
        entries = [{name: getattr(point, name) for name in names} for point in self.points]
        return frame(entries, columns=names)


def front_of(
    ledger: Ledger, study: StudyRecord, ranking: Ranking | None = None, *, over: SizeMeasure | None = None
) -> Front:
    """Return the front of a study's complete trials, with replicates merged.

    Args:
        ledger: Ledger of the study.
        study: Record of the study or of a confirmation.
        ranking: Ranking of its trials, if available.
        over: Size to be minimized; None for the study's own goal, or parameters.
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
    """Return the front of a study with a size goal; None for others."""
    wanted = study.section("search").get("objectives")
    return front_of(ledger, study, ranking) if isinstance(wanted, list | tuple) and len(wanted) > 1 else None


def best_within(ledger: Ledger, name: str, size: str | int | float) -> int:
    """Return the number of the complete trial with the best estimate within a size.

    Args:
        ledger: Ledger of the study.
        name: Name of the study.
        size: Largest number of stored parameters, or a share of the backbone such as ``0.1%``.

    Raises:
        UnknownStudyError: If there is no study of that name.
        BudgetError: If the size cannot be parsed.
        StudiesError: If no complete trial is small enough.
    """
    study = ledger.study(name)
    most = parameters_of(size, study)
    found = front_of(ledger, study, over=SizeMeasure.PARAMETERS)
    best = found.within(most)
    if best is None:
        smallest = f"the smallest has {found.points[0].size:,}" if found.points else "none is complete"
        raise InvalidRequestError(
            f"study {name!r} must have a complete trial of at most {most:,} parameters; {smallest}. "
            "Choose a larger size."
        )
    return best.number


def parameters_of(size: str | int | float, study: StudyRecord) -> int:
    """Return a size as a number of parameters.

    Raises:
        BudgetError: If it is neither a number nor a share of the backbone.
    """
    return budget_parameters(read_budget(size, "size"), study.backbone_parameters)


def goal_of(study: StudyRecord, over: SizeMeasure | None = None) -> SizeGoal:
    """Return the size goal of a study; parameters without one.

    Args:
        study: Record of the study; its study file may be of another release.
        over: Another size to be minimized.
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
    """Return the mean and deviation of the hypervolume over joint draws of the true scores."""
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
    """Return joint draws of the scores of some trials, (count, N), equal for the same study and trials.

    Args:
        estimates: Estimates of the study's trials.
        numbers: Numbers of trials with an estimate.
        study: Name of the study, which seeds the draws.
        count: Number of draws.
    """
    means, covariance = estimates.joint(numbers)
    generator = np.random.default_rng(hashed_seed("front", study.seed, *numbers))
    even = (covariance + covariance.T) / 2
    return generator.multivariate_normal(means, even, count, method="eigh", check_valid="ignore")
