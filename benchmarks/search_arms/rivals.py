"""Rivals of the factored sampler that make the same moves: regularised evolution, and a random forest as its model."""

import random
from collections.abc import Sequence

import numpy as np
from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped]

from search_space.space.space import Candidate, SearchSpace
from studies.search.factored.draws import Drawer
from studies.search.factored.genes import Genes
from studies.search.factored.genome import Genome
from studies.search.factored.moves import Mover, Moves, Parents
from studies.search.factored.observation import Observation
from studies.search.factored.view import TrainedSide

_START, _INSISTS, _PATIENCE = 10, 5, 50
_POPULATION, _TOURNAMENT = 30, 6
_CANDIDATES, _TREES = 100, 40
_DECAY = 6.0
_FEATURES = 96


class _Rival:
    """Draws until there are enough trials, then asks for children of those it thinks good."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._genome = Genome(space)
        self._drawer = Drawer(self._genome)
        self._mover = Mover(self._genome, self._drawer, Moves())
        self._seed = seed

    def candidate(self, history: Sequence[Observation], *, number: int, retry: int = 0) -> Candidate | None:
        """One candidate that was not tried before; None if nothing new was drawn."""
        draw = random.Random(f"{self._seed}/{number}/{retry}")
        tried = {one.fingerprint for one in history}
        known = [(one, genes) for one in history if (genes := self._genome.genes_of(one)) is not None]
        for attempt in range(_PATIENCE):
            is_start = len(history) < 2 * _START or len(known) < 2
            genes = self._drawer.fresh(draw) if is_start or attempt >= _INSISTS else self._child(draw, known)
            candidate = self._genome.candidate(genes)
            if candidate.fingerprint not in tried:
                return candidate
        return None

    def _child(self, draw: random.Random, known: Sequence[tuple[Observation, Genes]]) -> Genes:
        raise NotImplementedError


def _worth(trial: Observation) -> tuple[float, float]:
    """How good a trial is: first by how far it came, then by what was read last."""
    last = max(trial.readings, key=lambda one: one.fraction)
    return last.fraction, last.score


class Evolution(_Rival):
    """A child of the best of a few of the youngest trials (Real et al. 2019)."""

    def _child(self, draw: random.Random, known: Sequence[tuple[Observation, Genes]]) -> Genes:
        young = known[-_POPULATION:]

        def parent() -> Genes:
            chosen = draw.sample(young, min(_TOURNAMENT, len(young)))
            return max(chosen, key=lambda one: _worth(one[0]))[1]

        return self._mover.child(draw, Parents([parent(), parent()], _DECAY))


class Forest(_Rival):
    """The child of most expected improvement under a random forest, whose trees tell how sure it is."""

    def _child(self, draw: random.Random, known: Sequence[tuple[Observation, Genes]]) -> Genes:
        features = np.array([self._features(genes) for _, genes in known])
        fractions = {reading.fraction for one, _ in known for reading in one.readings}
        middles = {
            fraction: float(np.median([r.score for one, _ in known for r in one.readings if r.fraction == fraction]))
            for fraction in fractions
        }
        last = [max(one.readings, key=lambda reading: reading.fraction) for one, _ in known]
        scores = np.array([one.score - middles[one.fraction] for one in last])
        model = RandomForestRegressor(_TREES, min_samples_leaf=2, random_state=draw.randrange(2**31), n_jobs=1)
        model.fit(features, scores)
        means = model.predict(features)
        ranked = [known[place][1] for place in np.argsort(-means, kind="stable")]
        parents = Parents(ranked, _DECAY)
        children = [self._mover.child(draw, parents) for _ in range(_CANDIDATES)]
        asked = np.array([self._features(genes) for genes in children])
        trees = np.array([tree.predict(asked) for tree in model.estimators_])
        above = np.maximum(trees - means.max(), 0.0).mean(axis=0) + 1e-6 * trees.mean(axis=0)
        return children[int(np.argmax(above))]

    def _features(self, genes: Genes) -> list[float]:
        """What each side is, hashed into a few columns, with its rate and its size."""
        view = self._genome.view(genes)
        return [number for side in (view.attention, view.ffn) for number in _side_features(side)]


def _side_features(side: TrainedSide | None) -> list[float]:
    if side is None:
        return [0.0] * (_FEATURES + 3)
    columns = [0.0] * _FEATURES
    structure = side.structure
    for name in ("form", "write", "read", "insertion", "heads", "gate", "activation", "other"):
        for value in getattr(structure, name):
            columns[random.Random(f"{name}={value}").randrange(_FEATURES)] = 1.0
    return [*columns, side.rate, side.size, structure.scale]
