"""The intrinsic dimension of a task: the smallest random subspace in which training reaches most of the full score.

Aghajanyan et al. 2021, Intrinsic Dimensionality Explains the Effectiveness of Language Model Fine-Tuning, ACL: d90 is
the smallest dimension whose score is 90% of that of full fine-tuning. It is found by a sweep: a study whose trials are
full fine-tuning and one point per dimension, all run to the end.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev

from search_space.backbones.shape import BackboneShape
from search_space.errors import InvalidEditError
from search_space.parameter_counts.counts import count
from search_space.published import published_method
from studies.errors import WishError
from studies.records import TrialRecord, TrialState
from studies.study_file import Specification, specification_from_mapping

FULL = "full_finetuning"
METHODS = ("intrinsic_said", "intrinsic_did")
DIMENSIONS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
"""What a sweep tries unless it is told otherwise: two dimensions per factor of ten."""

USUAL_NOISE = 0.05
"""Share of a score by which two like it may differ by luck, where nothing better is known."""

_SETTING = "dint"
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Which dimensions are tried, and as which trials.

    Attributes:
        method: One of `METHODS`.
        dimensions: Ascending; those that the backbone allows.
        left_out: Dimensions that it does not allow, with the reason.
    """

    method: str
    dimensions: tuple[int, ...]
    left_out: tuple[tuple[int, str], ...] = ()

    @classmethod
    def on(cls, shape: BackboneShape, method: str, dimensions: Sequence[int]) -> "Sweep":
        """A sweep of what a backbone allows.

        Raises:
            WishError: If it allows none of the dimensions.
        """
        fitting, left_out = [], []
        for dimension in sorted(set(dimensions)):
            try:
                count(published_method(method).configuration(shape, {_SETTING: dimension}), shape)
                fitting.append(dimension)
            except InvalidEditError as error:
                left_out.append((dimension, str(error)))
        if not fitting:
            why = left_out[0][1] if left_out else "got none."
            raise WishError(f"a sweep must have a dimension that the backbone allows; {why}")
        return cls(method=method, dimensions=tuple(fitting), left_out=tuple(left_out))

    def point(self, dimension: int) -> str:
        """The entry of a study's roster that tries a dimension."""
        return f"{self.method}:{_SETTING}={dimension}"

    @property
    def roster(self) -> tuple[str, ...]:
        """All entries: full fine-tuning, then the dimensions from the smallest on."""
        return (FULL, *(self.point(dimension) for dimension in self.dimensions))


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """What became of the trials of one entry.

    Attributes:
        dimension: Of the subspace; None for full fine-tuning.
        trials: How many were begun.
        failed: How many of them failed.
        score: Best final score, of several seeds the mean of their best; None before one of each is complete.
        deviation: Standard deviation between seeds; None of fewer than two.
        fraction_of_full: Of the score of full fine-tuning; None where one of the two is missing.
        reaches: Whether that is enough.
    """

    dimension: int | None
    trials: int
    failed: int
    score: float | None
    deviation: float | None
    fraction_of_full: float | None
    reaches: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """A dimension that scored less than a smaller one, by more than noise: the curve is not monotone.

    Attributes:
        dimension: That scored less.
        below: The best of the smaller ones.
        by: Difference of the two scores.
        noise: What of it might have been luck.
    """

    dimension: int
    below: int
    by: float
    noise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """The outcome of a sweep, so far as it has come.

    Attributes:
        method: One of `METHODS`.
        fraction: Share of the score of full fine-tuning that is asked for, 0.9 for d90.
        full: The point of full fine-tuning.
        points: One per dimension, ascending.
        threshold: Least score that reaches it; None while full fine-tuning has no score, or one that is not positive.
        dimension: The smallest dimension that reaches it; None if none does.
        is_final: Whether no trial that is still open could change it.
        falls: Points that scored less than a smaller dimension, by more than noise.
    """

    method: str
    fraction: float
    full: SweepPoint
    points: tuple[SweepPoint, ...]
    threshold: float | None
    dimension: int | None
    is_final: bool
    falls: tuple[Fall, ...]


def sweep_of(specification: Specification, sweep: Sweep, *, attempt: int = 1) -> Specification:
    """The study that runs a sweep: the task, the training and the fleet of another study, without its search.

    Args:
        specification: The other study.
        sweep: Its roster.
        attempt: 1, 2, 3, …; later ones draw other learning rates, initial values and orders of the data.
    """
    own = specification.as_json()
    kind = sweep.method.removeprefix("intrinsic_")
    mark = f"-{attempt}" if attempt > 1 else ""
    own |= {
        "name": f"{specification.name}-d90-{kind}{mark}",
        "budget": "100%",
        "trials": len(sweep.roster),
        "seed": specification.seed + attempt - 1,
        "pruning": {**specification.pruning.model_dump(mode="json"), "first_rung_steps": None},
        "search": {
            **specification.model_dump(mode="json")["search"],
            "sampler": "random",
            "published": list(sweep.roster),
        },
    }
    return specification_from_mapping(own, origin="the sweep")


def usual_noise(score: float) -> float:
    """A twentieth of a score."""
    return USUAL_NOISE * abs(score)


def dimension_of(
    trials: Iterable[TrialRecord],
    sweep: Sweep,
    *,
    fraction: float,
    tries: int = 1,
    noise: Callable[[float], float] = usual_noise,
) -> Dimension:
    """What the trials of a sweep say, several tries of it together: of each point the best one counts.

    Args:
        trials: Of all its studies.
        sweep: What was to be tried.
        fraction: Share of the score of full fine-tuning, in (0, 1].
        tries: How many trials a point has when all are done.
        noise: The largest difference of two scores that may be luck, by their mean.
    """
    by_method: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        by_method.setdefault(trial.method or "", []).append(trial)
    found = _outcome(
        sweep.method,
        fraction,
        _tried(None, by_method.get(FULL, [])),
        [_tried(dimension, by_method.get(sweep.point(dimension), [])) for dimension in sweep.dimensions],
        noise,
    )
    smallest = found.dimension
    deciding = [FULL, *(sweep.point(each) for each in sweep.dimensions if smallest is None or each < smallest)]
    return replace(found, is_final=all(_ended(by_method.get(method, [])) >= tries for method in deciding))


def mean_dimension(seeds: Sequence[Dimension], *, noise: Callable[[float], float] = usual_noise) -> Dimension:
    """The outcome of the mean curve of sweeps with seeds of their own; of one it is that one.

    What examples were measured on is the same for every seed, so that noise does not shrink with their number.

    Args:
        seeds: Outcomes of one sweep, at least one.
        noise: As of `dimension_of`.
    """
    first = seeds[0]
    full = _mean_point([one.full for one in seeds])
    points = [_mean_point(points) for points in zip(*(one.points for one in seeds), strict=True)]
    found = _outcome(first.method, first.fraction, full, points, noise)
    return replace(found, is_final=all(one.is_final for one in seeds))


def _mean_point(points: Sequence[SweepPoint]) -> SweepPoint:
    """Of one dimension, over seeds; it has a score when each of them has."""
    scores = [point.score for point in points if point.score is not None]
    return replace(
        points[0],
        trials=sum(point.trials for point in points),
        failed=sum(point.failed for point in points),
        score=mean(scores) if len(scores) == len(points) else None,
        deviation=stdev(scores) if len(scores) == len(points) > 1 else None,
    )


def _outcome(
    method: str, fraction: float, full: SweepPoint, points: Sequence[SweepPoint], noise: Callable[[float], float]
) -> Dimension:
    """What scores say; whether they are final is not known here."""
    threshold = fraction * full.score if full.score is not None and full.score > 0 else None
    judged = tuple(_judged(point, full.score, threshold) for point in points)
    return Dimension(
        method=method,
        fraction=fraction,
        full=_judged(full, full.score, None),
        points=judged,
        threshold=threshold,
        dimension=next((point.dimension for point in judged if point.reaches), None),
        is_final=False,
        falls=_falls(judged, noise),
    )


def _falls(points: Iterable[SweepPoint], noise: Callable[[float], float]) -> tuple[Fall, ...]:
    """Every point against the best of the smaller dimensions; one without a score says nothing."""
    scored = [
        (point.score, point.dimension) for point in points if point.score is not None and point.dimension is not None
    ]
    falls: list[Fall] = []
    for place, (score, dimension) in enumerate(scored[1:], start=1):
        best, below = max(scored[:place], key=lambda one: one[0])
        by, luck = best - score, noise((best + score) / 2)
        if by > luck:
            falls.append(Fall(dimension=dimension, below=below, by=by, noise=luck))
    return tuple(falls)


def _tried(dimension: int | None, trials: list[TrialRecord]) -> SweepPoint:
    """What became of a point, before it is held against full fine-tuning."""
    scores = [trial.score for trial in trials if trial.state is TrialState.COMPLETE and trial.score is not None]
    return SweepPoint(
        dimension=dimension,
        trials=len(trials),
        failed=sum(trial.state is TrialState.FAILED for trial in trials),
        score=max(scores, default=None),
        deviation=None,
        fraction_of_full=None,
        reaches=False,
    )


def _judged(point: SweepPoint, full_score: float | None, threshold: float | None) -> SweepPoint:
    score = point.score
    return replace(
        point,
        fraction_of_full=None if score is None or threshold is None or full_score is None else score / full_score,
        # a score of 0.72 is 90% of one of 0.8, whatever the last binary digit says
        reaches=score is not None and threshold is not None and score >= threshold * (1 - _ROUNDING),
    )


def _ended(trials: list[TrialRecord]) -> int:
    return sum(trial.state.is_terminal for trial in trials)
