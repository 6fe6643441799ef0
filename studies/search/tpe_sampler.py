"""Optuna's multivariate TPE by groups of parameters, without repeated work for one proposal.

Optuna splits the trials into good and bad ones, and reads all of them, for each of dozens of groups. Here this is done
once per proposal; the proposals are identical.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import TPESampler
from optuna.samplers._tpe.sampler import _split_trials, default_gamma, default_gamma_multiobjective
from optuna.search_space.group_decomposed import _GroupDecomposedSearchSpace, _SearchSpaceGroup
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from studies.surrogate.structure_distances import Array, Indices

_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


class ParameterGroups(_GroupDecomposedSearchSpace):
    """Groups of parameters that always occur together, in Optuna's order."""

    def __init__(self) -> None:
        """Use the same trials as Optuna's TPE."""
        super().__init__(include_pruned=True)

    def calculate(self, study: Study, use_cache: bool = False) -> _SearchSpaceGroup:
        """Return the groups of the trials of a study; sets of parameters are bit masks."""
        spaces: dict[str, BaseDistribution] = {}
        bits: dict[str, int] = {}
        sets: dict[int, None] = {}
        for trial in study._get_trials(deepcopy=False, states=_FINISHED, use_cache=use_cache):
            for name in trial.distributions.keys() - bits.keys():
                bits[name] = 1 << len(bits)
                spaces[name] = trial.distributions[name]
            # a repeated set splits no group
            sets[sum(bits[name] for name in trial.distributions)] = None
        groups: list[int] = []
        for names in sets:
            parts = [part for group in groups for part in (group & names, group & ~names)]
            known = sum(groups)
            groups = [part for part in (*parts, names & ~known) if part]
        found = _SearchSpaceGroup()
        found._search_spaces = [{name: spaces[name] for name, bit in bits.items() if bit & group} for group in groups]
        return found


class _TrialColumns(list[FrozenTrial]):
    """Trials whose parameters are read once for all groups."""

    def __init__(self, trials: Iterable[FrozenTrial]) -> None:
        super().__init__(trials)
        found: dict[str, dict[int, float]] = defaultdict(dict)
        for place, trial in enumerate(self):
            for name, value in trial.params.items():
                found[name][place] = trial.distributions[name].to_internal_repr(value)
        self._columns: Mapping[str, tuple[Indices, Array]] = {
            name: (np.array([*values]), np.array([*values.values()])) for name, values in found.items()
        }

    def of(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the values of parameters in the trials that have all of them."""
        empty = np.zeros(0, dtype=np.int64), np.zeros(0)
        found = {name: self._columns.get(name, empty) for name in names}
        first, *rest = (places for places, _ in found.values())
        for places in rest:
            first = np.intersect1d(first, places, assume_unique=True)
        return {name: values[np.isin(places, first, assume_unique=True)] for name, (places, values) in found.items()}


class GroupedTpeSampler(TPESampler):
    """TPE for one proposal."""

    def __init__(self, **options: Any) -> None:
        """Create Optuna's sampler with groups."""
        super().__init__(multivariate=True, group=True, constant_liar=True, **options)
        self._group_decomposed_search_space = ParameterGroups()
        self._divided: tuple[_TrialColumns, _TrialColumns] | None = None

    def _sample(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        """Return the best of some draws from the good trials, for the parameters of one group."""
        if self._divided is None:
            self._divided = self._divide(study, trial)
        good, bad = self._divided
        estimator = self._build_parzen_estimator(study, search_space, good, handle_below=True)
        draws = estimator.sample(self._rng.rng, self._n_ei_candidates)
        other_estimator = self._build_parzen_estimator(study, search_space, bad, handle_below=False)
        best = TPESampler._compare(draws, self._compute_acquisition_func(draws, estimator, other_estimator))
        return {name: space.to_external_repr(best[name]) for name, space in search_space.items()}

    def _divide(self, study: Study, new_trial: FrozenTrial) -> tuple[_TrialColumns, _TrialColumns]:
        """Return the good trials and the others; running trials are never good."""
        states = (*_FINISHED, TrialState.RUNNING)
        trials = [one for one in study._get_trials(deepcopy=False, states=states) if one.number != new_trial.number]
        finished = sum(one.state != TrialState.RUNNING for one in trials)
        gamma = default_gamma if len(study.directions) == 1 else default_gamma_multiobjective
        good, others = _split_trials(study, trials, gamma(finished))
        return _TrialColumns(good), _TrialColumns(others)

    def _get_internal_repr(
        self, trials: list[FrozenTrial], search_space: dict[str, BaseDistribution], study: Study
    ) -> dict[str, Array]:
        """Return the parameters of a group in the trials that have all of them."""
        columns = trials if isinstance(trials, _TrialColumns) else _TrialColumns(trials)
        return columns.of(list(search_space))
