"""Which choice matters: the share of the variance of scores over the whole space that is due to it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.analysis.card import Card
from studies.analysis.discover.sobol import Factor, base, factors, total
from studies.analysis.discover.study_posterior import LEVEL, StudyPosterior
from studies.analysis.discover.words import PLACES, listed
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.structure_distances import Array

QUESTION = "Which choice matters here?"
SMALL = 0.05
"""Share of the variance below which a choice hardly matters."""

_DRAWS = 200
_MOST_NAMED = 3
_NOTE = (
    "share: what part of the variance of scores over the whole space is lost if this choice alone is not known, with "
    "its 95% interval; learning rates and attention's share of the budget are choices, too. matters: whether the "
    "effects of its values differ, with 95%. What trials have not told counts as the model expects it."
)


def importance(knowledge: StudyPosterior) -> Card:
    """Every choice at every side, the most important first."""
    some = base(knowledge.measure)
    rows = [_row(knowledge, some, factor) for factor in factors(knowledge.measure, some)]
    rows.sort(key=lambda row: (-row["matters"], -row["share"]))
    said, shown = _sentences(rows, knowledge), sum(row["matters"] for row in rows)
    own: dict[str, Any] = {"name": "matters", "question": QUESTION, "note": _NOTE, "metric": knowledge.metric}
    return Card.of(rows, sentences=said, shown=shown, **own)


def _row(knowledge: StudyPosterior, some: Sequence[EncodedConfiguration], factor: Factor) -> dict[str, Any]:
    draws = knowledge.sampled([*some, *factor.changed], _DRAWS, "matters", factor.side, factor.dimension)
    scores, changed = draws[:, : len(some)], draws[:, len(some) :]
    shares = total(scores, changed)
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {
        "choice": choice_words(factor),
        "share": float(shares.mean()),
        "low": float(low),
        "high": float(high),
        "matters": _differ(scores, factor),
    }


def _differ(draws: Array, factor: Factor) -> bool:
    """Whether the 95% region of the effects of the values excludes that all are equal."""
    groups = [factor.values == value for value in np.unique(factor.values) if value >= 0]
    if len(groups) < 2:
        return False
    means = np.stack([draws[:, group].mean(axis=1) for group in groups], axis=1)
    effects = means[:, 1:] - means[:, :1]  # (S, G - 1)
    middle = effects.mean(axis=0)
    precision = np.linalg.pinv(np.atleast_2d(np.cov(effects, rowvar=False)))
    distances = np.einsum("sg,gh,sh->s", effects - middle, precision, effects - middle)
    return bool(middle @ precision @ middle > np.quantile(distances, LEVEL))


def choice_words(factor: Factor) -> str:
    """A choice in words: ``form at attention``."""
    what = {"rate": "learning rate", "share": "attention's share of the budget"}.get(factor.dimension, factor.dimension)
    return what if factor.side == "both" else f"{what} at {PLACES[factor.side]}"


def _sentences(rows: Sequence[dict[str, Any]], knowledge: StudyPosterior) -> tuple[str, ...]:
    matter = [
        f"the {row['choice']} ({row['low']:.0%} to {row['high']:.0%} of the variance)" for row in rows if row["matters"]
    ][:_MOST_NAMED]
    small = [row["choice"] for row in rows if not row["matters"] and row["high"] < SMALL]
    said = (
        [f"What mattered: {listed(matter)}."] if matter else [f"{knowledge.trials} do not tell which choice matters."]
    )
    if small:
        said.append(f"What hardly mattered, less than {SMALL:.0%} of the variance each: the {listed(small)}.")
    return tuple(said)
