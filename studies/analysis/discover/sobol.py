"""Shares of variance by pick-freeze: of what a configuration scores, how much is due to one thing that was chosen.

Configurations ``x`` are draws of the uniform measure that edit every side, and ``x'`` is the same but for one dimension
that is drawn anew. With scores ``f`` of variance ``V``:

* total: ``E (f(x) - f(x'))² / 2V`` (Jansen 1999), what is lost if the dimension alone is not known;
* together, of both sides: ``E (f(A,F) - f(A',F) - f(A,F') + f(A',F'))² / 4V``, what neither side tells alone.

The dimensions of a space depend on each other (who writes another tensor may have to read another one), so the shares
need not sum to one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.analysis.discover.uniform_draws import UniformDraws
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.structure_distances import Array, Indices

STRUCTURAL: tuple[str, ...] = ("form", "write", "insertion", "gate", "heads", "activation", "scale")
RATE, SHARE = "rate", "share"
TOGETHER = "attention × FFN"
BASE = 160
"""Configurations whose dimensions are drawn anew."""

_BINS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Something that is chosen, with the configurations that tell what it is worth.

    Attributes:
        side: ``attention`` or ``ffn``, or ``both``.
        dimension: What is chosen.
        changed: Of every base configuration, the same with another value where there is one; else itself.
        values: Of every base configuration, the number of its value, or of a fifth of its range; -1 without any.
    """

    side: str
    dimension: str
    changed: tuple[EncodedConfiguration, ...]
    values: Indices


def base(measure: UniformDraws) -> list[EncodedConfiguration]:
    """Draws that edit every side that is searched."""
    sides = len(measure.parts)
    return [one for one in measure.draws if len(one.sides) == sides][:BASE]


def factors(measure: UniformDraws, some: Sequence[EncodedConfiguration]) -> list[Factor]:
    """Everything that is chosen at every side, and how the budget is shared."""
    found = [
        _structural(measure, some, side, dimension)
        for side in measure.parts
        for dimension in STRUCTURAL
        if len(measure.values(side, dimension)) > 1
    ]
    found += [_rate(measure, some, side) for side in measure.parts]
    if any(map(measure.genome.is_shared, some)):
        found.append(_share(measure, some))
    return found


def _structural(measure: UniformDraws, some: Sequence[EncodedConfiguration], side: str, dimension: str) -> Factor:
    """A dimension of the structure; of n values each is drawn as often, its own among them."""
    draw = measure.generator("matters", side, dimension)
    names = measure.values(side, dimension)
    changed, values = [], []
    for genes in some:
        own = measure.value(genes, side, dimension)
        values.append(-1 if own is None else names.index(own))
        others = measure.others(genes, side, dimension)
        choice = draw.choice([None, *sorted(others)])
        changed.append(genes if choice is None else draw.choice(others[choice]))
    return Factor(side=side, dimension=dimension, changed=tuple(changed), values=np.array(values))


def _rate(measure: UniformDraws, some: Sequence[EncodedConfiguration], side: str) -> Factor:
    draw = measure.generator("matters", side, RATE)
    changed, values = [], []
    for genes in some:
        own = genes.side(side)
        if own is None:
            values.append(-1)
            changed.append(genes)
            continue
        values.append(_bin((own.unit_lr + 1) / 2))
        form = measure.genome.facts(own).form
        changed.append(measure.genome.rated(genes, {form: draw.uniform(-1, 1)}))
    return Factor(side=side, dimension=RATE, changed=tuple(changed), values=np.array(values))


def _share(measure: UniformDraws, some: Sequence[EncodedConfiguration]) -> Factor:
    draw = measure.generator("matters", SHARE)
    low, high = measure.genome.space.options.attention_share
    changed, values = [], []
    for genes in some:
        is_shared = measure.genome.is_shared(genes)
        values.append(_bin((genes.attention_share - low) / (high - low)) if is_shared and high > low else -1)
        changed.append(replace(genes, attention_share=draw.uniform(low, high)) if is_shared else genes)
    return Factor(side="both", dimension=SHARE, changed=tuple(changed), values=np.array(values))


def _bin(place: float) -> int:
    return min(_BINS - 1, max(0, int(place * _BINS)))


def crossed(
    measure: UniformDraws, some: Sequence[EncodedConfiguration]
) -> tuple[tuple[EncodedConfiguration, ...], ...]:
    """Configurations, the same with another's attention, with its FFN, and with both; empty with one side."""
    if len(measure.parts) < 2:
        return ()
    others = [*some[1:], *some[:1]]
    return (
        tuple(some),
        tuple(replace(one, attention=other.attention) for one, other in zip(some, others, strict=True)),
        tuple(replace(one, ffn=other.ffn) for one, other in zip(some, others, strict=True)),
        tuple(replace(one, attention=other.attention, ffn=other.ffn) for one, other in zip(some, others, strict=True)),
    )


def total(scores: Array, changed: Array) -> Array:
    """Total shares of S draws of the scores of N configurations and their partners, (S,).

    Args:
        scores: (S, N).
        changed: (S, N).
    """
    variances = np.concatenate([scores, changed], axis=1).var(axis=1)
    return np.asarray(((scores - changed) ** 2).mean(axis=1) / (2 * np.maximum(variances, 1e-300)))


def together(scores: Sequence[Array]) -> Array:
    """Shares of the interaction of both sides, (S,), of the scores of `crossed` configurations, (S, N) each."""
    one, attention, ffn, both = scores
    variances = np.concatenate(list(scores), axis=1).var(axis=1)
    return np.asarray(((one - attention - ffn + both) ** 2).mean(axis=1) / (4 * np.maximum(variances, 1e-300)))
