"""Sizes of what a search knows and makes, and what is gained where small ones are wanted, too."""

from collections.abc import Sequence

import numpy as np

from search_space.parameter_counts.counts import count_edits
from search_space.parameter_counts.flops import extra_flops
from studies.objectives import SizeGoal, SizeMeasure, SizeScale
from studies.pareto import Staircase
from studies.surrogate.acquisition import log_expected_hypervolume, log_expected_improvement
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.encoding import Encoding
from studies.surrogate.observation import Observation
from studies.surrogate.structure_distances import Array


class SizeObjective:
    """Places sizes on the scale of a goal; without one all are at the same place, and the best score is all.

    Attributes:
        goal: What is to be small; None where the score is all that is wanted.
    """

    def __init__(self, genome: Encoding, goal: SizeGoal | None) -> None:
        """Begin with nothing remembered.

        Args:
            genome: Of the space.
            goal: What is to be small; None where the score is all that is wanted.
        """
        self.goal = goal
        self._genome = genome
        self._known: dict[str, float] = {}

    def of_genes(self, genes: Sequence[EncodedConfiguration]) -> Array:
        """Places of configurations that are made, (M,)."""
        goal = self.goal
        if goal is None:
            return np.zeros(len(genes))
        return np.array([goal.scale.place(self._genome.size(one, goal.objective)) for one in genes])

    def of_trials(self, trials: Sequence[Observation]) -> Array:
        """Places of trials, (N,)."""
        return np.array([self._placed(one) for one in trials])

    def log_gain(self, means: Array, deviations: Array, places: Array, known: tuple[Array, Array]) -> Array:
        """The logarithm of what is expected to be gained: a better best, or hypervolume beyond the front, (M,).

        Args:
            means: Posterior means of what is asked about, (M,).
            deviations: Posterior standard deviations, (M,).
            places: Of their sizes, (M,).
            known: Posterior means and places of the trials that were read, (N,) each.
        """
        if self.goal is None:
            best = float(known[0].max(initial=-np.inf if len(known[0]) else 0.0))
            return log_expected_improvement(means, deviations, best)
        return log_expected_hypervolume(means, deviations, places, _stairs(*known, self.goal.scale))

    def standing(self, means: Array, places: Array) -> Array:
        """How good trials are as parents, the higher the better: how far they are from being best within their size."""
        if self.goal is None:
            return means
        stairs = _stairs(means, places, self.goal.scale)
        return np.asarray(means - np.array([stairs.at(place) for place in places]))

    def _placed(self, trial: Observation) -> float:
        if self.goal is None:
            return 0.0
        if trial.fingerprint not in self._known:
            made, shape = trial.configuration, self._genome.space.shape
            is_flops = self.goal.objective is SizeMeasure.EXTRA_FLOPS
            size = extra_flops(made, shape) if is_flops else count_edits(made.edits, shape).stored
            self._known[trial.fingerprint] = self.goal.scale.place(size)
        return self._known[trial.fingerprint]


def _stairs(means: Array, places: Array, scale: SizeScale) -> Staircase:
    reference = float(means.min(initial=np.inf if len(means) else 0.0))
    return Staircase.of(places, means, scale=scale, reference=reference)
