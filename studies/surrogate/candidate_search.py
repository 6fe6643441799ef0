"""The factored search: proposals as a pure function of the history."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from search_space.published import HEAD_ONLY
from search_space.space.space import Candidate, SearchSpace
from studies.objectives import SizeGoal
from studies.records import TrialState
from studies.seeds import hashed_seed
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.encoding import Encoding
from studies.surrogate.features import Features
from studies.surrogate.kernel import Points
from studies.surrogate.mutation import Moves, Mutation, Parents
from studies.surrogate.observation import Observation
from studies.surrogate.posterior import Posterior, SurrogateFitter
from studies.surrogate.prior_mean import Places
from studies.surrogate.random_candidates import RandomCandidates
from studies.surrogate.size_objective import SizeObjective
from studies.surrogate.structure_distances import Array, Indices
from studies.win_probability import WinProbability

SAME_UNIT_LR = 0.25
"""Trials of one structure whose rates are nearer, in a range from -1 to 1, are told apart by luck alone."""

SAME_LOG2_BUDGET_FRACTION = 0.5
"""The same of the base-2 logarithms of their shares of the budget."""

_PATIENCE = 50
_PARENTS = 100
"""The best trials are parents."""

_RATES = 16
"""Draws of rates that are compared for each published structure."""

FEWEST = 4
"""Other trials of which something was read before the probability that one wins is told."""

_NO_RIVALS = (None, HEAD_ONLY.name)

LONG = 100
"""Trials until which the share of structures never tried stays; later it falls with their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactoredSettings:
    """Numbers of the proposal.

    Attributes:
        startup: Trials with a reading before the model is asked; until then draws are stratified.
        candidates: How many are compared for a proposal.
        fresh: Share of proposals that are draws without a model.
        rated: Share of proposals that give a published structure other rates.
        untried: Share of the other proposals that are of a structure never tried; ever less after `LONG` trials.
        most: Trials of one structure, and no less than one in twenty, beyond which others come first.
        decay: Ranks over which the probability to be a parent falls by a factor of e.
        places: Where the rates of some forms are expected to be best, from earlier studies.
    """

    startup: int = 10
    candidates: int = 300
    fresh: float = 0.05
    rated: float = 0.12
    untried: float = 0.25
    most: int = 8
    decay: float = 6.0
    places: Places = field(default_factory=dict)

    def untried_at(self, trials: int) -> float:
        """The share of proposals of a structure never tried after some trials."""
        return self.untried * min(1.0, LONG / max(trials, 1))

    def most_at(self, trials: int) -> int:
        """After how many trials of one structure others come first."""
        return max(self.most, trials // 20)


class FactoredSearch:
    """Proposes candidates of a space, given what has been tried.

    A proposal depends on the seed, the number of the trial and the history, and on nothing else; what is remembered
    between calls only saves time.

    Attributes:
        space: What may be proposed.
        seed: Of the study.
    """

    def __init__(
        self, space: SearchSpace, *, seed: int, settings: FactoredSettings | None = None, goal: SizeGoal | None = None
    ) -> None:
        """Prepare the moves of a space.

        Args:
            space: What may be proposed.
            seed: Of the study.
            settings: None for the usual ones.
            goal: What is to be small, beside a high score; None for nothing.
        """
        self.space = space
        self.seed = seed
        self._genome = Encoding(space)
        self._settings = settings or FactoredSettings()
        self._drawer = RandomCandidates(self._genome, self._settings.places)
        self._mover = Mutation(self._genome, self._drawer, Moves())
        self._believer = SurrogateFitter(self._genome.view_of, places=self._settings.places)
        self._genes: dict[str, EncodedConfiguration | None] = {}
        self._sizing = SizeObjective(self._genome, goal)

    def candidate(self, history: Sequence[Observation], *, number: int, retry: int = 0) -> Candidate | None:
        """One candidate that was not tried before; None if nothing new was drawn.

        Args:
            history: The trials so far.
            number: Of the new one.
            retry: Counts calls for the same number whose candidates were not wanted.
        """
        draw = random.Random(hashed_seed("factored", self.seed, number, retry, bits=64))
        tried = {one.fingerprint for one in history}
        settings = self._settings
        kind = draw.random()
        heard = self._believer.trials_heard_of(history)
        if heard >= settings.startup and kind >= settings.fresh:
            belief = self._belief(history)
            is_rated = kind < settings.fresh + settings.rated
            for propose in (self._rated, self._best) if is_rated else (self._best,):
                found = propose(draw, history, belief, tried)
                if found is not None:
                    return found
        return self._fresh(draw, history, tried, is_stratified=heard < settings.startup)

    def _belief(self, history: Sequence[Observation]) -> Posterior:
        belief = self._believer.belief(history)
        return self._believer.with_pending(belief, [one for one in history if not one.state.is_terminal])

    def _known_genes(self, observation: Observation) -> EncodedConfiguration | None:
        if observation.fingerprint not in self._genes:
            self._genes[observation.fingerprint] = self._genome.genes_of(observation)
        return self._genes[observation.fingerprint]

    def _fresh(
        self, draw: random.Random, history: Sequence[Observation], tried: set[str], *, is_stratified: bool
    ) -> Candidate | None:
        used = [one.forms for one in history] if is_stratified else None
        for _ in range(_PATIENCE):
            candidate = self._genome.candidate(self._drawer.fresh(draw, used))
            if candidate.fingerprint not in tried:
                return candidate
        return None

    def _best(
        self, draw: random.Random, history: Sequence[Observation], belief: Posterior, tried: set[str]
    ) -> Candidate | None:
        """The best of many children of good parents."""
        known, read = self._read(history, belief)
        ranked = np.argsort(-self._sizing.standing(*read), kind="stable")[:_PARENTS]
        genes = [one for one in dict.fromkeys(self._known_genes(known[place]) for place in ranked) if one is not None]
        if not genes:
            return None
        parents = Parents(genes, self._settings.decay)
        most = 1 if draw.random() < self._settings.untried_at(len(history)) else self._settings.most_at(len(history))
        children = dict.fromkeys(self._mover.child(draw, parents) for _ in range(self._settings.candidates))
        made = [*children]
        points = belief.points([self._genome.view(one) for one in made])
        worth = self._worth(points, self._sizing.of_genes(made), belief, read)
        # those of a structure that was tried often come last
        worth = _last(worth, _times_tried(points, belief) >= most)
        return self._first_new(worth, lambda place: self._genome.candidate(made[place]), tried)

    def _read(self, history: Sequence[Observation], belief: Posterior) -> tuple[list[Observation], tuple[Array, Array]]:
        """The trials that were read, and their posterior means and the places of their sizes."""
        known = [history[trial] for trial in belief.trials]
        return known, (belief.process.own_means(len(known)), self._sizing.of_trials(known))

    def _worth(self, points: Points, sizes: Array, belief: Posterior, read: tuple[Array, Array]) -> Array:
        """The logarithm of what is expected to be gained beyond what was read.

        What is nearly a trial that was heard of, or that runs, comes last. With much noise a good configuration would
        else be tried again and again at nearly its rates; whether it is good is for replicates to find out.
        """
        worth = self._sizing.log_gain(*belief.process.predict(points), sizes, read)
        return _last(worth, np.asarray(nearly_equal(points, belief.process.points).any(axis=1)))

    def _rated(
        self, draw: random.Random, history: Sequence[Observation], belief: Posterior, tried: set[str]
    ) -> Candidate | None:
        """A published structure at the rates that promise most."""
        published = {one.method: one for one in history if one.method is not None}
        views = {method: self._believer.view(one) for method, one in published.items()}
        methods = [method for method, view in views.items() if any(view)]
        if not methods:
            return None
        asked = [(method, _rerated(draw, views[method])) for method in methods for _ in range(_RATES)]
        points = belief.points([view for _, view in asked])
        sizes = self._sizing.of_trials([published[method] for method, _ in asked])
        worth = self._worth(points, sizes, belief, self._read(history, belief)[1])
        return self._first_new(worth, lambda place: self._genome.published(*asked[place]), tried)

    def prospects(self, history: Sequence[Observation], numbers: Sequence[int]) -> dict[int, WinProbability]:
        """What is to be expected of trials that have begun, without those that fewer than `FEWEST` stand beside.

        A trial is to beat the best published method of the study, the task head alone aside. Where there is none, or
        small configurations are wanted, it is to beat the best of all other trials, those that are larger aside.

        Args:
            history: All trials, in the order of their numbers; their readings are all that is known.
            numbers: Of those that are asked about.
        """
        belief = self._believer.belief(history, is_settled=True)
        known, (means, sizes) = self._read(history, belief)
        found = {}
        for number in numbers:
            (size,) = self._sizing.of_trials([history[number]])
            others = [
                place
                for place, one in enumerate(known)
                if one.number != number and one.state is not TrialState.FAILED and sizes[place] <= size
            ]
            if len(others) >= FEWEST:
                is_rival = self._sizing.goal is None
                published = [at for at in others if is_rival and known[at].method not in _NO_RIVALS]
                rival = known[max(published or others, key=means.__getitem__)]
                chance = belief.chance(self._believer.view(history[number]), self._believer.view(rival))
                found[number] = WinProbability(rival=rival.number, is_published=bool(published), chance=chance)
        return found

    @staticmethod
    def _first_new(worth: Array, candidate_of: Callable[[int], Candidate], tried: set[str]) -> Candidate | None:
        for place in np.argsort(-worth, kind="stable"):
            candidate = candidate_of(int(place))
            if candidate.fingerprint not in tried:
                return candidate
        return None


def _last(worth: Array, which: NDArray[np.bool_]) -> Array:
    """The same, with some worth less than all others, and among themselves as before."""
    return np.where(which, worth - np.ptp(worth) - 1.0, worth)


def _times_tried(points: Points, belief: Posterior) -> Indices:
    """How many trials the model has of each structure, (N,)."""
    is_same = (points.structures[:, None] == belief.process.points.structures[None]).all(axis=2)
    return np.asarray(is_same.sum(axis=1))


def nearly_equal(points: Points, others: Points) -> NDArray[np.bool_]:
    """Which points are of one structure with nearly the same rates and sizes, (N, M)."""
    is_same = points.structures[:, None] == others.structures[None]
    rates = points.unit_lrs[:, None] - others.unit_lrs[None]
    sizes = points.log2_budget_fractions[:, None] - others.log2_budget_fractions[None]
    is_near = (np.abs(rates) < SAME_UNIT_LR) & (np.abs(sizes) < SAME_LOG2_BUDGET_FRACTION)
    return np.asarray((is_same & is_near).all(axis=2))


def _rerated(draw: random.Random, view: Features) -> Features:
    """The same at rates anywhere in their ranges; one form has one rate."""
    attention, ffn = view
    unit_lr = draw.uniform(-1, 1)
    attention = attention and replace(attention, unit_lr=unit_lr)
    if ffn is None:
        return attention, None
    is_one_form = attention is not None and attention.structure.form == ffn.structure.form
    return attention, replace(ffn, unit_lr=unit_lr if is_one_form else draw.uniform(-1, 1))
