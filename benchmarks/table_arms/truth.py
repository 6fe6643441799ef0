"""Simulated task behind a table: a random forest of its rows.

The forest, which shares nothing with the model of the search, predicts the readings of a configuration from its
structure, sizes and learning rates. True scores are those on test, so what a search owes to the luck of validation
examples is no gain. A residual is that of a row in a leaf of the configuration (Meinshausen 2006,
"Quantile Regression Forests"), so that no true score is beyond those of the table. The variance of residuals has three
shares. That over seeds is drawn for each trial. That over examples is drawn for each structure, and is the same in all
its trials, which are measured on the same examples, but is no part of its true score. The rest is, with what the same
row has on test.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction import DictVectorizer

from search_space.backbones.shape import BackboneShape
from search_space.codec import configuration_to_json
from search_space.parameter_counts.counts import count_edits
from search_space.space.layer_choice import stack_depth
from search_space.space.options import SpaceOptions
from search_space.space.rates import peak_lr_range
from search_space.space.space import Candidate, SearchSpace
from studies.history.noise import ScoreNoise
from studies.records import TrialRecord
from studies.search.initial_design import InitialDesign
from studies.seeds import hashed_seed
from studies.surrogate.features import SideStructure, unit_lr_of
from table_arms.pruning import Table, candidate_of, score_noise
from trial_runner.requests import Reading

_TREES = 300
_SMALLEST_LEAF = 2
_RUNGS = 2
_RANGES = SpaceOptions()
_WORDS = ("form", "write", "read", "insertion", "heads", "gate", "activation")


def features_of(candidate: Candidate, shape: BackboneShape) -> dict[str, float]:
    """Return the features of a candidate by name; those that are 0 are left out.

    A rate is given as such and by its position in the range of its form, which makes rates of all forms comparable.
    """
    rates = candidate.attention_learning_rate, candidate.ffn_learning_rate
    sides = candidate.configuration.attention, candidate.configuration.ffn
    found = {"parameters": math.log2(max(1, candidate.counts.stored))}
    for side, edits, rate in zip(("attention", "ffn"), sides, rates, strict=True):
        if not edits or rate is None:
            continue
        structure = SideStructure.of(edits)
        layers = {layer for edit in edits for layer in edit.layers.block_indices(stack_depth(shape))}
        found |= {
            f"{side}.rate": math.log(rate),
            f"{side}.position": unit_lr_of(rate, *peak_lr_range(edits, shape, _RANGES)),
            f"{side}.parameters": math.log2(max(1, count_edits(edits, shape).stored)),
            f"{side}.scale": structure.scale,
            f"{side}.layers": len(layers),
            f"{side}.first": min(layers, default=0),
        }
        found |= {f"{side}.{name}={value}": 1.0 for name in _WORDS for value in getattr(structure, name)}
    return found


class TableTruth:
    """Expected readings of every configuration of a space, fitted to a table.

    Attributes:
        table: Table.
        noise: Precision of its readings.
        explained: Share of the variance of the scores that the forest explains in rows that it has not seen.
    """

    def __init__(self, table: Table, settings: Mapping[str, int]) -> None:
        """Fit the forest.

        Args:
            table: Table.
            settings: Settings of its rows.
        """
        self.table = table
        self.noise = score_noise(settings)
        given = [features_of(candidate_of(row, table.shape), table.shape) for row in table.rows]
        columns = self._columns = np.array([_readings(row) for row in table.rows])
        self._names = DictVectorizer(sparse=False)
        self._forest = RandomForestRegressor(
            _TREES, min_samples_leaf=_SMALLEST_LEAF, max_features=0.5, oob_score=True, random_state=0, n_jobs=1
        )
        features = self._names.fit_transform(given)
        self._forest.fit(features, columns)
        self._leaves = self._forest.apply(features)
        variance = float((columns - self._forest.oob_prediction_)[:, 0].var())
        self.explained = 1 - variance / float(columns[:, 0].var())
        shares = [(points / 100) ** 2 / variance for points in (table.seed_deviation, table.example_error)]
        self._of_seeds, self._of_examples = (share / max(1.0, sum(shares)) for share in shares)
        self._found: dict[str, tuple[NDArray[np.float64], NDArray[np.int64]]] = {}

    @cached_property
    def published(self) -> tuple[Candidate, ...]:
        """Published methods of the whole space that fit, at the learning rates that studies try first."""
        space = SearchSpace(shape=self.table.shape, budget=self.table.budget)
        rates = InitialDesign().rates(space.options.learning_rates)
        return tuple(space.suggest_published(name, rates) for name in space.published_that_fit())

    def predicted(self, candidate: Candidate) -> NDArray[np.float64]:
        """Return the readings of a candidate that the forest predicts.

        They are score and loss on validation at the end, then at each rung, then the score on test.
        """
        return self._of_forest(candidate)[0]

    def expected(self, candidate: Candidate, seed: int) -> NDArray[np.float64]:
        """Return the expected readings of a candidate on any examples of the task of a seed; see `predicted`."""
        own = self._residual(candidate, seed, "structure", _structure_of(candidate))
        return self.predicted(candidate) + math.sqrt(max(0.0, 1 - self._of_seeds - self._of_examples)) * own

    def measured(self, candidate: Candidate, seed: int, trial: str) -> NDArray[np.float64]:
        """Return the readings of a trial of a candidate on the task of a seed; see `predicted`."""
        of_seed = math.sqrt(self._of_seeds) * self._residual(candidate, seed, "trial", trial)
        of_examples = self._residual(candidate, seed, "examples", _structure_of(candidate))
        return self.expected(candidate, seed) + math.sqrt(self._of_examples) * of_examples + of_seed

    def _residual(self, candidate: Candidate, *parts: object) -> NDArray[np.float64]:
        """Draw a tree, and the difference of one of the rows in its leaf from the prediction."""
        predicted, leaves = self._of_forest(candidate)
        tree = hashed_seed(*parts, "tree") % _TREES
        rows = np.flatnonzero(self._leaves[:, tree] == leaves[tree])
        readings: NDArray[np.float64] = self._columns[rows[hashed_seed(*parts, "row") % len(rows)]]
        return readings - predicted

    def _of_forest(self, candidate: Candidate) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the prediction for a candidate, and its leaf in each tree."""
        if candidate.fingerprint not in self._found:
            row = self._names.transform([features_of(candidate, self.table.shape)]).astype(np.float32)
            # a forest asked for one row spends nearly all of its time outside of its trees
            trees = [one.tree_ for one in self._forest.estimators_]
            leaves = np.array([tree.apply(row)[0] for tree in trees])
            predicted = np.mean([tree.value[leaf, :, 0] for tree, leaf in zip(trees, leaves, strict=True)], axis=0)
            self._found[candidate.fingerprint] = predicted, leaves
        return self._found[candidate.fingerprint]


def _structure_of(candidate: Candidate) -> str:
    return json.dumps(configuration_to_json(candidate.configuration), sort_keys=True)


def _readings(row: Mapping[str, Any]) -> list[float]:
    rungs = zip(row["rung_scores"], row["rung_losses"], strict=True)
    first = [number for rung in list(rungs)[:_RUNGS] for number in rung]
    return [row["score"], row["validation_loss"], *first, row["test_score"]]


@dataclass(frozen=True, kw_only=True)
class TableTask:
    """Task of `search_arms.simulation` on the truth of a table."""

    truth: TableTruth
    seed: int

    @property
    def score_noise(self) -> ScoreNoise:
        """Precision of its readings."""
        return self.truth.noise

    @cached_property
    def tried(self) -> float:
        """True score of the best published method at the learning rates that studies try first, in points."""
        return max(self.score(one) for one in self.truth.published)

    @property
    def to_beat(self) -> float:
        """The same: rates are not tuned here."""
        return self.tried

    def score(self, candidate: Candidate) -> float:
        """Return the true score of a candidate on test, in points."""
        return 100 * float(self.truth.expected(candidate, self.seed)[-1])

    def read(self, trial: TrialRecord, candidate: Candidate, step: int) -> Reading:
        """Return the reading of a trial of a candidate at a step."""
        steps = self.truth.noise.steps
        place = {steps: 0, steps // 4: 2, steps // 2: 4}[step]
        score, loss = self.truth.measured(candidate, self.seed, trial.fingerprint)[place : place + 2]
        return Reading(
            trial=trial.number,
            step=step,
            score=min(max(float(score), -1.0), 1.0),
            metrics={"validation_loss": float(loss)},
            train_loss=float(loss),
            seconds=0.0,
        )
