"""V1: which dimension matters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from studies.queries.discover.answer import LEVEL, Answer, Finding
from studies.queries.discover.knowledge import Knowledge
from studies.queries.discover.pedanova import pedanova
from studies.queries.discover.sobol import (
    STRUCTURAL,
    TOGETHER,
    Factor,
    base,
    crossed,
    factors,
    first_order,
    together,
    total,
)
from studies.search.factored.distances import Array
from studies.search.factored.genes import Genes

QUESTION = "Which dimension matters here?"
DRAWS = 100

_NOTE = (
    "Shares of the variance of scores over the whole space, rates and shares of attention included; from joint draws "
    "of the posterior, so what trials have not told counts as the model expects it. Total: what is lost if this alone "
    "is not known. First-order: what it tells alone. Resolved: the effects of its values are not all equal, with 90%."
)
_PLACES = {"attention": "attention", "ffn": "the FFN", "both": "both sides"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance(Finding):
    """How much of the variance of scores is due to one dimension; the value is its total share.

    Attributes:
        side: ``attention``, ``ffn``, or ``both``.
        dimension: What is chosen; ``attention × FFN`` for what neither side tells alone.
        first: First-order share, expected; None where it is not defined.
        first_low: Lower end of its 90% interval.
        first_high: Upper end.
        pedanova: Importance by Optuna's PED-ANOVA, which goes by what the sampler has tried; None for fewer than
            100 complete trials, and where it is not defined.
    """

    side: str
    dimension: str
    first: float | None
    first_low: float | None
    first_high: float | None
    pedanova: float | None


def importance(knowledge: Knowledge) -> Answer:
    """Every dimension of every side, the most important first."""
    some = base(knowledge.measure)
    others = pedanova(knowledge)
    rows = [_row(knowledge, some, factor, others) for factor in factors(knowledge.measure, some)]
    rows += _both(knowledge, some)
    rows.sort(key=lambda row: -row.value)
    return Answer(
        view="V1", question=QUESTION, rows=tuple(rows), sentences=_sentences(rows), note=_NOTE, kind=Importance
    )


def _row(
    knowledge: Knowledge, some: Sequence[Genes], factor: Factor, others: dict[tuple[str, str], float]
) -> Importance:
    count = len(some)
    draws = knowledge.sampled([*some, *factor.changed], DRAWS, "V1", factor.side, factor.dimension)
    shares, first = total(draws[:, :count], draws[:, count:]), first_order(draws[:, :count], factor.values)
    low, high = _interval(shares)
    first_low, first_high = _interval(first)
    mean = float(shares.mean())
    return Importance(
        side=factor.side,
        dimension=factor.dimension,
        first=float(first.mean()),
        first_low=first_low,
        first_high=first_high,
        pedanova=others.get((factor.side, factor.dimension)),
        value=mean,
        low=low,
        high=high,
        n=_tried(knowledge, factor),
        is_resolved=_differ(draws[:, :count], factor),
        sentence=f"{_named(factor.side, factor.dimension)} accounts for {mean:.0%} of the variance "
        f"({low:.0%} to {high:.0%}).",
    )


def _both(knowledge: Knowledge, some: Sequence[Genes]) -> Iterator[Importance]:
    groups = crossed(knowledge.measure, some)
    if not groups:
        return
    draws = knowledge.sampled([one for group in groups for one in group], DRAWS, "V1", TOGETHER)
    shares = together(np.split(draws, len(groups), axis=1))
    low, high = _interval(shares)
    mean = float(shares.mean())
    yield Importance(
        side="both",
        dimension=TOGETHER,
        first=None,
        first_low=None,
        first_high=None,
        pedanova=None,
        value=mean,
        low=low,
        high=high,
        n=knowledge.tried.at("both"),
        is_resolved=False,
        sentence=f"What attention and the FFN are worth only together is {mean:.0%} of the variance "
        f"({low:.0%} to {high:.0%}).",
    )


def _interval(shares: Array) -> tuple[float, float]:
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _differ(draws: Array, factor: Factor) -> bool:
    """Whether the 90% region of the effects of the values excludes that all are equal."""
    groups = [factor.values == value for value in np.unique(factor.values) if value >= 0]
    if len(groups) < 2:
        return False
    means = np.stack([draws[:, group].mean(axis=1) for group in groups], axis=1)
    effects = means[:, 1:] - means[:, :1]  # (S, G - 1)
    middle = effects.mean(axis=0)
    covariance = np.atleast_2d(np.cov(effects, rowvar=False))
    distances = np.einsum("sg,gh,sh->s", effects - middle, np.linalg.pinv(covariance), effects - middle)
    return bool(middle @ np.linalg.pinv(covariance) @ middle > np.quantile(distances, LEVEL))


def _tried(knowledge: Knowledge, factor: Factor) -> int:
    """The trials that tell of a factor: those that were read and have a value of it."""
    if factor.dimension in STRUCTURAL:
        return knowledge.tried.having(factor.side, factor.dimension)
    return knowledge.tried.at(factor.side)


def _named(side: str, dimension: str) -> str:
    what = {"rate": "The learning rate", "share": "Attention's share of the budget"}.get(dimension, f"The {dimension}")
    return what if side == "both" else f"{what} at {_PLACES[side]}"


def _sentences(rows: Sequence[Importance]) -> tuple[str, ...]:
    resolved = [row for row in rows if row.is_resolved][:3]
    if not resolved:
        return ("No dimension is resolved to matter.",)
    return tuple(row.sentence for row in resolved)
