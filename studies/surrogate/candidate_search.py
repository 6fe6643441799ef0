"""Factored Bayesian optimization: a proposal as a pure function of the history."""

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from search_space.published import is_lora_method
from search_space.space.parameter_table import HEAD_RATE, LORA_DROPOUT, has_input_dropout
from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from studies.history.history import StudyHistory
from studies.objectives import SizeGoal
from studies.records import TrialRecord, TrialState
from studies.seeds import hashed_seed
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.encoding import Encoding
from studies.surrogate.features import Features
from studies.surrogate.kernel import Points
from studies.surrogate.mutation import Moves, Mutation, Parents
from studies.surrogate.posterior import SearchPosterior, SurrogateFitter
from studies.surrogate.prior_mean import ExpectedRates
from studies.surrogate.random_candidates import RandomCandidates
from studies.surrogate.size_objective import SizeObjective
from studies.surrogate.structure_distances import Array, Indices

NEAR_UNIT_LR = 0.25
"""Difference of learning rates, from -1 to 1, below which two trials of one structure differ by noise alone."""

NEAR_LOG2_BUDGET_FRACTION = 0.5
"""The same for the base-2 logarithms of their shares of the budget."""

_PATIENCE = 50
_PARENTS = 100
"""Number of best trials that are parents."""

_RETUNED_LORA = 0.5
"""Share of the retuned published structures that are plain LoRA's, which every result is compared with."""

_RATES = 16
"""Number of random learning rates compared for each published structure."""

_OF_METHODS = 100
"""Number of random candidates compared where published methods are searched."""

_UNIFORM_FRACTION = 1 / 3
"""Share of the trials whose head rate is drawn from the whole range."""

_LOCAL_LOG_STD = 0.35
"""Standard deviation of the natural logarithm of the other rates about that of a top trial."""

_TOP_FRACTION = 4
"""One trial in this many is a top trial."""


LONG_STUDY_TRIALS = 100
"""Number of trials above which the share of new structures falls in proportion to their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactoredSettings:
    """Settings of the proposal.

    Attributes:
        startup: Number of observed trials before the model is used; until then draws are stratified.
        candidates: Number of candidates compared for a proposal.
        random_fraction: Share of proposals drawn without the model.
        retuned_fraction: Share of proposals that give a published structure other learning rates.
        new_structure_fraction: Share of the remaining proposals with a structure not tried before; see
            `LONG_STUDY_TRIALS`.
        max_trials_per_structure: Number of trials of one structure, at least one in twenty, above which others come
            first.
        decay: Number of ranks over which the probability of being a parent falls by a factor of e.
        expected_rates: Expected best learning rates of some forms, from earlier studies.
    """

    startup: int = 10
    candidates: int = 300
    random_fraction: float = 0.05
    retuned_fraction: float = 0.12
    new_structure_fraction: float = 0.25
    max_trials_per_structure: int = 8
    decay: float = 6.0
    expected_rates: ExpectedRates = field(default_factory=dict)

    def new_structure_fraction_at(self, trials: int) -> float:
        """Return the share of proposals with a new structure after some trials."""
        return self.new_structure_fraction * min(1.0, LONG_STUDY_TRIALS / max(trials, 1))

    def max_trials_per_structure_at(self, trials: int) -> int:
        """Return the number of trials of one structure from which on others come first."""
        return max(self.max_trials_per_structure, trials // 20)


class FactoredSearch:
    """Factored search of a space: proposes a candidate given the trials so far.

    A proposal depends on the seed, the trial number and the history alone; caches only save time.

    Attributes:
        space: Search space of the proposals.
        seed: Seed of the study.
    """

    def __init__(
        self, space: SearchSpace, *, seed: int, settings: FactoredSettings | None = None, goal: SizeGoal | None = None
    ) -> None:
        """Prepare the encoding, the random candidates, the mutation and the surrogate.

        Args:
            space: Search space of the proposals.
            seed: Seed of the study.
            settings: Settings of the proposal; None for the defaults.
            goal: Size to be minimized beside the score; None for the score alone.
        """
        self.space = space
        self.seed = seed
        self._encoding = Encoding(space)
        self._settings = settings or FactoredSettings()
        self._random_candidates = RandomCandidates(self._encoding, self._settings.expected_rates)
        self._mutation = Mutation(self._encoding, self._random_candidates, Moves())
        self._surrogate = SurrogateFitter(self._encoding.features_of, expected_rates=self._settings.expected_rates)
        self._encoded: dict[str, EncodedConfiguration | None] = {}
        self._size_objective = SizeObjective(self._encoding, goal)

    def candidate(self, history: StudyHistory, *, number: int, retry: int = 0) -> Candidate | None:
        """Return a candidate that was not tried before; None if no new one was drawn.

        Args:
            history: Trials so far.
            number: Number of the new trial.
            retry: Count of rejected candidates for the same number.
        """
        candidate, options = self._candidate(history, number, retry), self.space.options
        bounds, dropouts = options.head_learning_rates, options.lora_dropout
        if candidate is None or not (bounds or dropouts):
            return candidate
        rate, own = None, dict[str, str | float]()
        if bounds:
            rate = own[HEAD_RATE] = head_peak_lr(history, bounds, self.seed, number)
        if dropouts and has_input_dropout(candidate.configuration):
            draw = random.Random(hashed_seed("lora dropout", self.seed, number))
            own[LORA_DROPOUT] = str(draw.choice(dropouts))
        rates = candidate.attention_learning_rate, candidate.ffn_learning_rate
        return Candidate.of(
            candidate.configuration,
            rates,
            self.space.shape,
            method=candidate.method,
            parameters={**candidate.parameters, **own},
            head_learning_rate=rate,
        )

    def _candidate(self, history: StudyHistory, number: int, retry: int) -> Candidate | None:
        """Return a candidate without a learning rate of the head or a dropout, which the model leaves out."""
        draw = random.Random(hashed_seed("factored", self.seed, number, retry, bits=64))
        settings = self._settings
        kind = draw.random()
        n_observed = self._surrogate.n_observed_trials(history)
        if self.space.options.methods:
            is_random = n_observed < settings.startup or kind < settings.random_fraction
            return self._of_methods(draw, history, is_random=is_random)
        if n_observed >= settings.startup and kind >= settings.random_fraction:
            posterior = self._posterior(history)
            is_retuned = kind < settings.random_fraction + settings.retuned_fraction
            for propose in (self._retuned, self._best) if is_retuned else (self._best,):
                candidate = propose(draw, history, posterior)
                if candidate is not None:
                    return candidate
        return self._random(draw, history, is_stratified=n_observed < settings.startup)

    def _posterior(self, history: StudyHistory) -> SearchPosterior:
        posterior = self._surrogate.posterior(history)
        return self._surrogate.with_pending(posterior, [one for one in history if not one.state.is_terminal])

    def _encoded_trial(self, trial: TrialRecord) -> EncodedConfiguration | None:
        if trial.fingerprint not in self._encoded:
            self._encoded[trial.fingerprint] = self._encoding.encode(trial)
        return self._encoded[trial.fingerprint]

    def _random(self, draw: random.Random, history: StudyHistory, *, is_stratified: bool) -> Candidate | None:
        used = [one.forms for one in history] if is_stratified else None
        for _ in range(_PATIENCE):
            candidate = self._encoding.candidate(self._random_candidates.draw(draw, used))
            if not history.has_fingerprint(candidate.fingerprint):
                return candidate
        return None

    def _best(self, draw: random.Random, history: StudyHistory, posterior: SearchPosterior) -> Candidate | None:
        """Return the candidate with the best acquisition value among many children of good parents."""
        trials, observed = self._observed(history, posterior)
        ranked = np.argsort(-self._size_objective.rank_values(*observed), kind="stable")[:_PARENTS]
        encoded = [
            one for one in dict.fromkeys(self._encoded_trial(trials[place]) for place in ranked) if one is not None
        ]
        if not encoded:
            return None
        parents = Parents(encoded, self._settings.decay)
        settings, count = self._settings, len(history)
        is_new = draw.random() < settings.new_structure_fraction_at(count)
        most = 1 if is_new else settings.max_trials_per_structure_at(count)
        children = [*dict.fromkeys(self._mutation.child(draw, parents) for _ in range(settings.candidates))]
        points = posterior.points([self._encoding.features(one) for one in children])
        values = self._acquisition(points, self._size_objective.of_encoded(children), posterior, observed)
        # structures that were tried often come last
        values = _moved_last(values, _trials_per_structure(points, posterior) >= most)
        return self._first_new(values, lambda place: self._encoding.candidate(children[place]), history)

    def _observed(
        self, history: StudyHistory, posterior: SearchPosterior
    ) -> tuple[list[TrialRecord], tuple[Array, Array]]:
        """Return the observed trials, their posterior means and the positions of their sizes."""
        known = [history[trial] for trial in posterior.trials]
        return known, (posterior.process.observed_means(len(known)), self._size_objective.of_trials(known))

    def _acquisition(
        self,
        points: Points,
        sizes: Array,
        posterior: SearchPosterior,
        observed: tuple[Array, Array],
        later: NDArray[np.bool_] | None = None,
    ) -> Array:
        """Return the log expected gain of candidates over the observed trials, (M,).

        Near duplicates of observed or running trials come last. With much noise a good configuration would otherwise be
        proposed again and again at nearly the same rates. Replicates decide whether it is good.

        Args:
            points: The candidates, M.
            sizes: Their sizes, (M,).
            posterior: Model of the history.
            observed: Posterior means and sizes of the observed trials.
            later: Which candidates come after the others, but before near duplicates, (M,).
        """
        values = self._size_objective.log_gain(*posterior.process.predict(points), sizes, observed)
        if later is not None:
            values = _moved_last(values, later)
        return _moved_last(values, np.asarray(nearly_equal(points, posterior.process.points).any(axis=1)))

    def _retuned(self, draw: random.Random, history: StudyHistory, posterior: SearchPosterior) -> Candidate | None:
        """Return a published structure, half of the time plain LoRA, at the rates with the best acquisition value."""
        published = {one.method: one for one in history if one.method is not None}
        features_of = {method: self._surrogate.features(one) for method, one in published.items()}
        methods = [method for method, features in features_of.items() if any(features)]
        if not methods:
            return None
        proposals = [
            (method, _with_random_rates(draw, features_of[method])) for method in methods for _ in range(_RATES)
        ]
        points = posterior.points([features for _, features in proposals])
        sizes = self._size_objective.of_trials([published[method] for method, _ in proposals])
        is_lora_first = draw.random() < _RETUNED_LORA
        later = np.array([is_lora_first and not is_lora_method(method) for method, _ in proposals])
        values = self._acquisition(points, sizes, posterior, self._observed(history, posterior)[1], later)
        return self._first_new(values, lambda place: self._encoding.published_candidate(*proposals[place]), history)

    def _of_methods(self, draw: random.Random, history: StudyHistory, *, is_random: bool) -> Candidate | None:
        """Return a random candidate of the methods with the fewest trials, or the best of many of all methods."""
        counts = Counter(one.method for one in history)
        methods = sorted(self.space.options.methods, key=counts.__getitem__)
        drawn = (
            self.space.suggest_published(methods[place % len(methods)], RandomTrial(draw.getrandbits(64)))
            for place in range(_OF_METHODS)
        )
        if is_random:
            return next((one for one in drawn if not history.has_fingerprint(one.fingerprint)), None)
        posterior, candidates = self._posterior(history), [*drawn]
        points = posterior.points([self._encoding.features_of(one) for one in candidates])
        sizes = self._size_objective.of_trials(candidates)
        values = self._acquisition(points, sizes, posterior, self._observed(history, posterior)[1])
        return self._first_new(values, candidates.__getitem__, history)

    @staticmethod
    def _first_new(values: Array, candidate_of: Callable[[int], Candidate], history: StudyHistory) -> Candidate | None:
        for place in np.argsort(-values, kind="stable"):
            candidate = candidate_of(int(place))
            if not history.has_fingerprint(candidate.fingerprint):
                return candidate
        return None


def head_peak_lr(history: StudyHistory, bounds: tuple[float, float], seed: int, number: int) -> float:
    """Return a peak learning rate for the task head: near that of a top trial, or log-uniform.

    Args:
        history: Trials so far; complete ones with a head rate of their own are used.
        bounds: Lowest and highest rate.
        seed: Seed of the study.
        number: Number of the trial.
    """
    low, high = bounds
    draw = random.Random(hashed_seed("head rate", seed, number))
    log_uniform = math.exp(draw.uniform(math.log(low), math.log(high)))
    scores = [
        (float(str(trial.proposal[HEAD_RATE])), max(readings, key=lambda one: one.step).score, trial.number)
        for trial, readings in history.entries()
        if HEAD_RATE in trial.proposal and trial.state is TrialState.COMPLETE and readings
    ]
    ranked = sorted(scores, key=lambda one: (-one[1], one[2]))
    top = ranked[: len(ranked) // _TOP_FRACTION]
    is_local, position, step = draw.random() >= _UNIFORM_FRACTION, draw.random(), draw.gauss(0.0, _LOCAL_LOG_STD)
    rate = top[int(position * len(top))][0] * math.exp(step) if top and is_local else log_uniform
    return min(max(rate, low), high)


def _moved_last(values: Array, which: NDArray[np.bool_]) -> Array:
    """Return the values with some of them moved below all others, their order kept."""
    return np.where(which, values - np.ptp(values) - 1.0, values)


def _trials_per_structure(points: Points, posterior: SearchPosterior) -> Indices:
    """Return the number of observed trials of each structure, (N,)."""
    is_same = (points.structures[:, None] == posterior.process.points.structures[None]).all(axis=2)
    return np.asarray(is_same.sum(axis=1))


def nearly_equal(points: Points, others: Points) -> NDArray[np.bool_]:
    """Return which points have one structure and nearly the same learning rates and sizes, (N, M)."""
    is_same = points.structures[:, None] == others.structures[None]
    rates = points.unit_lrs[:, None] - others.unit_lrs[None]
    sizes = points.log2_budget_fractions[:, None] - others.log2_budget_fractions[None]
    is_near = (np.abs(rates) < NEAR_UNIT_LR) & (np.abs(sizes) < NEAR_LOG2_BUDGET_FRACTION)
    return np.asarray((is_same & is_near).all(axis=2))


def _with_random_rates(draw: random.Random, features: Features) -> Features:
    """Return the features at learning rates drawn uniformly in their ranges; equal forms share one rate."""
    attention, ffn = features
    unit_lr = draw.uniform(-1, 1)
    attention = attention and replace(attention, unit_lr=unit_lr)
    if ffn is None:
        return attention, None
    is_one_form = attention is not None and attention.structure.form == ffn.structure.form
    return attention, replace(ffn, unit_lr=unit_lr if is_one_form else draw.uniform(-1, 1))
