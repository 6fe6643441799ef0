"""A tree of a few decisions that says about the same as the posterior, and how much of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.queries.discover.knowledge import Knowledge
from studies.queries.discover.measure import side_of
from studies.queries.discover.sobol import STRUCTURAL
from studies.queries.discover.words import value_words
from studies.search.factored.distances import Array
from studies.search.factored.genes import Genes

DEPTH = 3
_LEAST = 0.05
_DRAWS = 100
_HELD_OUT = 2
_PLACES = {"attention": "attention", "ffn": "FFN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """Where a tree's decisions lead.

    Attributes:
        conditions: Of the decisions, in words.
        mean: Posterior mean over the configurations there.
        share: Of the space's configurations.
    """

    conditions: tuple[str, ...]
    mean: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTree:
    """Decisions about a configuration, each in one dimension.

    Attributes:
        leaves: The best first.
        fidelity: Share of the variance over configurations it was not made of that it explains, in the mean over draws
            of the posterior; below 0 where it explains nothing.
    """

    leaves: tuple[Leaf, ...]
    fidelity: float

    def lines(self) -> tuple[str, ...]:
        """A sentence for every leaf."""
        told = f"{max(0.0, self.fidelity):.0%} of the variance"
        leaves = (
            f"  {leaf.mean:.4f} where {', '.join(leaf.conditions) or 'all is one'} ({leaf.share:.0%} of the space)"
            for leaf in self.leaves
        )
        return f"A tree of depth {DEPTH} on the posterior means; it explains {told}:", *leaves


def rule_tree(knowledge: Knowledge) -> RuleTree:
    """A tree of depth three on the posterior means of half of the draws, judged by the other half."""
    from sklearn.tree import DecisionTreeRegressor

    draws = [knowledge.tuned(one) for one in knowledge.measure.draws]
    names, features = _features(knowledge, draws)
    fit, judge = np.arange(len(draws)) % _HELD_OUT == 0, np.arange(len(draws)) % _HELD_OUT != 0
    means = knowledge.means(draws)
    tree = DecisionTreeRegressor(max_depth=DEPTH, min_samples_leaf=_LEAST, random_state=0)
    tree.fit(features[fit], means[fit])
    said = tree.predict(features)
    sampled = knowledge.sampled([one for one, held in zip(draws, judge, strict=True) if held], _DRAWS, "tree")
    left = (sampled - said[judge]).var(axis=1)  # not of the level, which is no matter of decisions
    explained = 1 - left / np.maximum(sampled.var(axis=1), 1e-300)
    leaves = _leaves(tree, names, features, means)
    return RuleTree(leaves=tuple(sorted(leaves, key=lambda leaf: -leaf.mean)), fidelity=float(explained.mean()))


def _features(knowledge: Knowledge, draws: Sequence[Genes]) -> tuple[list[str], Array]:
    """Yes or no for every side, and every value of every dimension; attention's share is a number."""
    measure = knowledge.measure
    names: list[str] = []
    columns: list[list[float]] = []
    for side in measure.parts:
        names.append(f"{_PLACES[side]} is edited")
        columns.append([float(side_of(one, side) is not None) for one in draws])
        for dimension in STRUCTURAL:
            known = measure.values(side, dimension)
            values = [measure.value(one, side, dimension) for one in draws]
            for value in known if len(known) > 1 else ():
                names.append(f"{_PLACES[side]}: {value_words(dimension, value)}")
                columns.append([float(own == value) for own in values])
    return names, np.array(columns).T


def _leaves(tree: Any, names: Sequence[str], features: Array, means: Array) -> Iterator[Leaf]:
    inner = tree.tree_
    at = tree.apply(features)

    def walk(node: int, conditions: tuple[str, ...]) -> Iterator[Leaf]:
        left, right = int(inner.children_left[node]), int(inner.children_right[node])
        if left == right:
            here = at == node
            yield Leaf(conditions=conditions, mean=float(means[here].mean()), share=float(here.mean()))
            return
        name = names[int(inner.feature[node])]
        yield from walk(left, (*conditions, f"not {name}"))
        yield from walk(right, (*conditions, name))

    return walk(0, ())
