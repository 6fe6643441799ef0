"""Importance of choices: shares of the variance of scores over the whole space, by pick-freeze.

Configurations ``x`` are draws of the uniform measure that edit every side, and ``x'`` is the same except for one
dimension, which is drawn anew. With scores ``f`` of variance ``V`` the share is ``E (f(x) - f(x'))² / 2V`` (Jansen
1999). This is the total-effect Sobol index: the variance that remains if the dimension alone is unknown.

The dimensions depend on each other (another written tensor may need another read tensor), so shares need not sum to
one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from studies.analysis.card import PLACES, Card, listed
from studies.analysis.discover.study_posterior import LEVEL, StudyPosterior
from studies.analysis.discover.uniform_draws import UniformDraws
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.structure_distances import Array, Indices

QUESTION = "Which choice matters here?"
SMALL = 0.05
"""Share of the variance below which a choice hardly matters."""

_DRAWS = 200
_MOST_NAMED = 3
_NOTE = (
    "share: total-effect Sobol index with its 95% interval; learning rates and attention's share of the budget are "
    "choices, too. matters: yes if two values are shown to differ (95%); a large share that is not shown to matter is "
    "likely important."
)

STRUCTURAL: tuple[str, ...] = ("form", "write", "insertion", "gate", "heads", "activation", "scale")
RATE, SHARE = "rate", "share"
BASE = 160
"""Number of configurations whose dimensions are drawn anew."""

_BINS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Choice with the configurations by which its importance is estimated.

    Attributes:
        side: ``attention`` or ``ffn``, or ``both``.
        dimension: Dimension of the choice.
        changed: Each base configuration with another value, if there is one; else itself.
        values: Number of each base configuration's value, or of a fifth of its range; -1 without one.
    """

    side: str
    dimension: str
    changed: tuple[EncodedConfiguration, ...]
    values: Indices

    @classmethod
    def of(
        cls,
        side: str,
        dimension: str,
        some: Sequence[EncodedConfiguration],
        anew: Callable[[EncodedConfiguration], tuple[int, EncodedConfiguration]],
    ) -> "Factor":
        """Return the factor of base configurations, from a function to their value and a changed configuration."""
        found = [anew(one) for one in some]
        changed, values = tuple(one for _, one in found), np.array([value for value, _ in found])
        return cls(side=side, dimension=dimension, changed=changed, values=values)

    @property
    def words(self) -> str:
        """Choice in words, such as ``form at the FFN``."""
        if self.dimension == SHARE:
            return "attention's share of the budget"
        return f"{'learning rate' if self.dimension == RATE else self.dimension} at {PLACES[self.side]}"


def importance(knowledge: StudyPosterior) -> Card:
    """Return the card of every choice at every side, the most important first."""
    some = base(knowledge.measure)
    rows = [_row(knowledge, some, factor) for factor in factors(knowledge.measure, some)]
    rows.sort(key=lambda row: -row["share"])
    shown = max([min(_MOST_NAMED, len(rows)), *(place for place, row in enumerate(rows, 1) if row["matters"])])
    own: dict[str, Any] = {"name": "matters", "question": QUESTION, "note": _NOTE, "metric": knowledge.metric}
    return Card.of(rows, sentences=_sentences(rows), shown=shown, **own)


def _row(knowledge: StudyPosterior, some: Sequence[EncodedConfiguration], factor: Factor) -> dict[str, Any]:
    draws = knowledge.sampled([*some, *factor.changed], _DRAWS, "matters", factor.side, factor.dimension)
    scores, changed = draws[:, : len(some)], draws[:, len(some) :]
    shares = total(scores, changed)
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {
        "choice": factor.words,
        "share": float(shares.mean()),
        "low": float(low),
        "high": float(high),
        "matters": _differ(scores, factor),
    }


def _differ(draws: Array, factor: Factor) -> bool:
    """Return whether the 95% region of the effects of the values excludes that all are equal."""
    groups = [factor.values == value for value in np.unique(factor.values) if value >= 0]
    if len(groups) < 2:
        return False
    means = np.stack([draws[:, group].mean(axis=1) for group in groups], axis=1)
    effects = means[:, 1:] - means[:, :1]  # (S, G - 1)
    middle = effects.mean(axis=0)
    precision = np.linalg.pinv(np.atleast_2d(np.cov(effects, rowvar=False)))
    distances = np.einsum("sg,gh,sh->s", effects - middle, precision, effects - middle)
    return bool(middle @ precision @ middle > np.quantile(distances, LEVEL))


def _sentences(rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the rank of the choices with its evidence, and the small ones."""
    if not rows:
        return ()
    leading, matter = rows[:_MOST_NAMED], [row["choice"] for row in rows if row["matters"]]
    choices = listed([row["choice"] for row in leading])
    shares = f"{100 * leading[-1]['share']:.0f}–{leading[0]['share']:.0%} of the variance"
    evidence = f"shown to matter: {listed(matter)}" if matter else "no single value is shown to be better yet"
    look = "look" if len(leading) > 1 else "looks"
    sentences = [f"{choices[0].upper()}{choices[1:]} {look} most important ({shares}); {evidence}."]
    small = [row["choice"] for row in rows if not row["matters"] and row["high"] < SMALL]
    if small:
        sentences.append(f"Choices that hardly matter, less than {SMALL:.0%} of the variance each: {listed(small)}.")
    return tuple(sentences)


def base(measure: UniformDraws) -> list[EncodedConfiguration]:
    """Return the draws that edit every searched side."""
    sides = len(measure.parts)
    return [one for one in measure.draws if len(one.sides) == sides][:BASE]


def factors(measure: UniformDraws, some: Sequence[EncodedConfiguration]) -> Iterator[Factor]:
    """Yield every choice at every side, and the share of the budget."""
    for side in measure.parts:
        for dimension in STRUCTURAL:
            if len(measure.values(side, dimension)) > 1:
                yield _structural(measure, some, side, dimension)
    for side in measure.parts:
        yield _rate(measure, some, side)
    if any(map(measure.encoding.shares_budget, some)):
        yield _share(measure, some)


def _structural(measure: UniformDraws, some: Sequence[EncodedConfiguration], side: str, dimension: str) -> Factor:
    """Return the factor of a structural dimension, whose n values are drawn equally often."""
    draw = measure.generator("matters", side, dimension)
    names = {name: number for number, name in enumerate(measure.values(side, dimension))}

    def anew(encoded: EncodedConfiguration) -> tuple[int, EncodedConfiguration]:
        others = measure.others(encoded, side, dimension)
        choice = draw.choice([None, *sorted(others)])
        changed = encoded if choice is None else draw.choice(others[choice])
        return names.get(measure.value(encoded, side, dimension), -1), changed

    return Factor.of(side, dimension, some, anew)


def _rate(measure: UniformDraws, some: Sequence[EncodedConfiguration], side: str) -> Factor:
    draw = measure.generator("matters", side, RATE)

    def anew(encoded: EncodedConfiguration) -> tuple[int, EncodedConfiguration]:
        own = encoded.by_name[side]
        form = measure.encoding.facts(own).form
        return _bin((own.unit_lr + 1) / 2), measure.encoding.with_unit_lrs(encoded, {form: draw.uniform(-1, 1)})

    return Factor.of(side, RATE, some, anew)


def _share(measure: UniformDraws, some: Sequence[EncodedConfiguration]) -> Factor:
    draw = measure.generator("matters", SHARE)
    low, high = measure.encoding.space.options.attention_share

    def anew(encoded: EncodedConfiguration) -> tuple[int, EncodedConfiguration]:
        if not measure.encoding.shares_budget(encoded):
            return -1, encoded
        value = _bin((encoded.attention_share - low) / (high - low)) if high > low else -1
        return value, replace(encoded, attention_share=draw.uniform(low, high))

    return Factor.of("both", SHARE, some, anew)


def _bin(place: float) -> int:
    return min(_BINS - 1, max(0, int(place * _BINS)))


def total(scores: Array, changed: Array) -> Array:
    """Return the total-effect shares of S draws of the scores of N configurations and their partners, (S,).

    Args:
        scores: Scores of the configurations, (S, N).
        changed: Scores of their partners, (S, N).
    """
    variances = np.concatenate([scores, changed], axis=1).var(axis=1)
    return np.asarray(((scores - changed) ** 2).mean(axis=1) / (2 * np.maximum(variances, 1e-300)))
