"""Sizes on the scale of a goal, and the acquisition value where small configurations are wanted too."""

from collections.abc import Sequence

import numpy as np

from search_space.parameter_counts.counts import count_edits
from search_space.parameter_counts.flops import extra_flops
from search_space.space.space import Candidate
from studies.objectives import SizeGoal, SizeMeasure, SizeScale
from studies.pareto import Staircase
from studies.records import TrialRecord
from studies.surrogate.acquisition import log_expected_hypervolume, log_expected_improvement
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.encoding import Encoding
from studies.surrogate.structure_distances import Array


class SizeObjective:
    """Positions of sizes on the scale of a goal; without a goal all positions are 0 and the score alone counts.

    Attributes:
        goal: Size to be minimized beside the score; None for the score alone.
    """

    def __init__(self, encoding: Encoding, goal: SizeGoal | None) -> None:
        """Start with an empty cache.

        Args:
            encoding: Encoding of the space.
            goal: Size to be minimized beside the score; None for the score alone.
        """
        self.goal = goal
        self._encoding = encoding
        self._positions: dict[str, float] = {}

    def of_encoded(self, encoded: Sequence[EncodedConfiguration]) -> Array:
        """Return the positions of encoded configurations, (M,)."""
        goal = self.goal
        if goal is None:
            return np.zeros(len(encoded))
        return np.array([goal.scale.place(self._encoding.size(one, goal.objective)) for one in encoded])

    def of_trials(self, trials: Sequence[TrialRecord | Candidate]) -> Array:
        """Return the positions of trials or candidates, (N,)."""
        return np.array([self._position(one) for one in trials])

    def log_gain(self, means: Array, deviations: Array, places: Array, observed: tuple[Array, Array]) -> Array:
        """Return the log expected improvement, or the log expected gain in hypervolume if there is a goal, (M,).

        Args:
            means: Posterior means of the candidates, (M,).
            deviations: Posterior standard deviations, (M,).
            places: Positions of their sizes, (M,).
            observed: Posterior means and positions of the trials with readings, (N,) each.
        """
        if self.goal is None:
            best = float(observed[0].max(initial=-np.inf if len(observed[0]) else 0.0))
            return log_expected_improvement(means, deviations, best)
        return log_expected_hypervolume(means, deviations, places, _staircase(*observed, self.goal.scale))

    def rank_values(self, means: Array, places: Array) -> Array:
        """Return the values by which parents are ranked, (N,): their distance to the best trial of no larger size."""
        if self.goal is None:
            return means
        staircase = _staircase(means, places, self.goal.scale)
        return np.asarray(means - np.array([staircase.at(place) for place in places]))

    def _position(self, trial: TrialRecord | Candidate) -> float:
        if self.goal is None:
            return 0.0
        if trial.fingerprint not in self._positions:
            configuration, shape = trial.configuration, self._encoding.space.shape
            is_flops = self.goal.objective is SizeMeasure.EXTRA_FLOPS
            size = extra_flops(configuration, shape) if is_flops else count_edits(configuration.edits, shape).stored
            self._positions[trial.fingerprint] = self.goal.scale.place(size)
        return self._positions[trial.fingerprint]


def _staircase(means: Array, places: Array, scale: SizeScale) -> Staircase:
    reference = float(means.min(initial=np.inf if len(means) else 0.0))
    return Staircase.of(places, means, scale=scale, reference=reference)
