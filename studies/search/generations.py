"""The generations of NSGA-II: which trial belongs to which, and who their parents are, however many there are."""

from bisect import bisect_right, insort
from datetime import datetime

import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial

from studies.records import TrialRecord, TrialState

GENERATION_KEY = "NSGAIISampler:generation"
"""Where Optuna keeps the generation of a trial."""

_PARENTS_KEY = "NSGAIISampler:parent:"


class Generations:
    """The generation that each trial of a ledger was proposed for, from when trials began and ended."""

    def __init__(self, population: int) -> None:
        """Begin with an empty ledger.

        Args:
            population: Complete trials of a generation.
        """
        self._population = population
        self._ends: list[list[datetime]] = []

    def of(self, trial: TrialRecord) -> int:
        """Optuna's rule: the newest generation, or the next when that has a whole population of complete trials."""
        generation = self._at(trial.created_at)
        is_proposed = trial.method is None and trial.replicate_of is None
        if trial.state is TrialState.COMPLETE and is_proposed and trial.ended_at is not None:
            while len(self._ends) <= generation:
                self._ends.append([])
            insort(self._ends[generation], trial.ended_at)
        return generation

    def _at(self, time: datetime) -> int:
        """The generation of a trial that is proposed at a time."""
        for newest in reversed(range(len(self._ends))):
            done = bisect_right(self._ends[newest], time)
            if done:
                return newest + (done >= self._population)
        return 0


class NSGAIISampler(optuna.samplers.NSGAIISampler):
    """Optuna's, for one proposal of a study that was taken in from a ledger.

    Optuna selects the parents of a generation when that begins, from the trials of the one before and their parents,
    and remembers them. A study that has just been taken in remembers none: Optuna looks through all trials for every
    generation there was, and calls itself as deep as there are. Here trials are sorted once, and parents are selected
    from the first generation on. The class must bear its name, since Optuna stores by it what it remembers.
    """

    def __init__(self, *, seed: int, population: int) -> None:
        """Prepare one proposal.

        Args:
            seed: Of what it draws.
            population: Complete trials of a generation.
        """
        super().__init__(seed=seed, population_size=population)
        self._populations: dict[int, list[FrozenTrial]] | None = None
        self._parents: dict[int, list[FrozenTrial]] = {}

    def get_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """Its complete trials."""
        if self._populations is None:
            self._populations = {}
            for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE]):
                self._populations.setdefault(trial.system_attrs.get(GENERATION_KEY, -1), []).append(trial)
        return self._populations.get(generation, [])

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:
        """Whom its trials are bred from."""
        remembered = study._storage.get_study_system_attrs(study._study_id)
        first = generation
        while first > 1 and first not in self._parents and f"{_PARENTS_KEY}{first}" not in remembered:
            first -= 1
        for one in range(first, generation + 1):
            if one not in self._parents:
                self._parents[one] = super().get_parent_population(study, one)
        return self._parents.get(generation, [])
