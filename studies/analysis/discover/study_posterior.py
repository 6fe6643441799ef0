"""What a study has taught: the posterior of the search's model at any configuration of its space.

The model (`studies.surrogate`) has heard every reading of the study. It is asked without the rules of the papers,
which the search expects beforehand: what is said of a study is what its trials say.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import islice

import numpy as np

from search_space.space.space import Candidate, SearchSpace
from studies.analysis.discover.uniform_draws import UniformDraws
from studies.errors import StudiesError
from studies.records import TrialState
from studies.score_evidence import Z_95
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.encoding import Encoding
from studies.surrogate.features import Features
from studies.surrogate.hyperparameters import ANALYSIS_PRIORS
from studies.surrogate.observation import Observation
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.prior_mean import no_rules
from studies.surrogate.structure_distances import Array

Asked = EncodedConfiguration | Candidate | Observation
"""What can be asked about: encoded of the space, any configuration on its backbone with its rates, or a trial."""

LeaderboardJoint = Callable[[Sequence[Features]], tuple[Array, Array]]
"""Means and covariance of true scores, (M,) and (M, M)."""

UNIT_LRS: tuple[float, ...] = tuple(np.linspace(-1, 1, 21).tolist())
"""Places of rates in their ranges at which responses are asked."""

LEVEL = 0.95
"""Probability that an interval holds what it is of."""

REACH = Z_95
"""Standard deviations from the middle of such an interval of a normal distribution to its ends."""

REPLICATE = "replicate"
"""Origin of a trial that repeats another."""

OPENING = 40
"""First trials that hyper-parameters are fitted to, and scores measured by. What a greedy search tries later is much
alike: fitted to that, the model takes the rest of the space for as even, and its intervals are too short.
"""

_JITTER = 1e-10
_BLOCK = 512
_FOR_UNIT_LRS = 40


class StudyPosterior:
    """The posterior of a study, asked in encoded of its space; deterministic for a history and a seed.

    Attributes:
        history: Every trial, in the order of their numbers.
        measure: Draws of the space.
        metric: What the scores are of.
        seed: Of all draws.
        study: Its name; empty if it has none.
    """

    def __init__(  # noqa: PLR0913 - what a study is and what is known of it
        self,
        space: SearchSpace,
        history: Sequence[Observation],
        *,
        metric: str = "score",
        seed: int = 0,
        best: int | None = None,
        leaderboard_joint: LeaderboardJoint | None = None,
        study: str = "",
    ) -> None:
        """Fit the model.

        Args:
            space: What the study searches.
            history: Its trials.
            metric: What is maximised.
            seed: Of all draws.
            best: Number of the trial that leads the study; None for the complete one with the highest posterior mean.
            leaderboard_joint: Means and covariance by the leaderboard's model; None for this model's own.
            study: Its name.
        """
        self.history = tuple(history)
        self.metric = metric
        self.seed = seed
        self.study = study
        self._best = best
        self._leaderboard_joint = leaderboard_joint
        self.encoding = Encoding(space)
        self.measure = UniformDraws(self.encoding, seed)
        # what the views say was proved under these priors
        priors = ANALYSIS_PRIORS
        self._surrogate = SurrogateFitter(self.encoding.features_of, rules=no_rules, fits_to=OPENING, priors=priors)
        self._posterior = self._surrogate.posterior(self.history)

    @cached_property
    def complete(self) -> tuple[Observation, ...]:
        """The trials that were trained to the end, replicates aside."""
        return tuple(one for one in self.history if one.state is TrialState.COMPLETE and one.origin != REPLICATE)

    @cached_property
    def winner(self) -> Observation:
        """The trial that leads the study.

        Raises:
            StudiesError: If none is complete.
        """
        if not self.complete:
            raise StudiesError("a study must have a complete trial before it has a winner; it has none.")
        named = [one for one in self.complete if one.number == self._best]
        return named[0] if named else self.best_of(self.complete)

    def best_of(self, trials: Sequence[Observation]) -> Observation:
        """The trial that is expected to score most, the first of equals; at least one."""
        return self.best_first(trials)[0]

    def best_first(self, trials: Sequence[Observation]) -> list[Observation]:
        """Trials in the order of what they are expected to score."""
        return [trials[place] for place in np.argsort(-self.expected_means(trials), kind="stable")]

    @property
    def trials(self) -> str:
        """How many trials have told something, as the subject of a sentence: ``60 trials``."""
        return f"{sum(bool(one.readings) for one in self.history)} trials"

    def candidate(self, trial: Observation) -> Candidate:
        """A trial as what a search proposes."""
        peak_lrs = trial.attention_learning_rate, trial.ffn_learning_rate
        return Candidate.of(trial.configuration, peak_lrs, self.space.shape)

    @property
    def space(self) -> SearchSpace:
        """What the study searches."""
        return self.encoding.space

    def _view(self, asked: Asked) -> Features:
        if isinstance(asked, EncodedConfiguration):
            return self.encoding.features(asked)
        return self._surrogate.features(asked) if isinstance(asked, Observation) else self.encoding.features_of(asked)

    def means(self, asked: Sequence[Asked]) -> Array:
        """Posterior means of the true scores at full length, (M,)."""
        return self._posterior.means([self._view(one) for one in asked])

    def joint(self, asked: Sequence[Asked]) -> tuple[Array, Array]:
        """Posterior means and covariance of the true scores at full length, (M,) and (M, M)."""
        return self._posterior.joint([self._view(one) for one in asked])

    def expected(self, asked: Sequence[Asked]) -> tuple[Array, Array]:
        """Means and covariance of the true scores of trials and what lies between them, as the leaderboard has them."""
        return (
            self.joint(asked)
            if self._leaderboard_joint is None
            else self._leaderboard_joint([self._view(one) for one in asked])
        )

    def expected_means(self, asked: Sequence[Asked]) -> Array:
        """The means of `expected`, (M,), of any number of trials: no two blocks of them are held beside each other."""
        blocks = [asked[start : start + _BLOCK] for start in range(0, len(asked), _BLOCK)]
        return np.concatenate([np.zeros(0), *(self.expected(block)[0] for block in blocks)])

    def sampled(
        self, asked: Sequence[Asked], count: int, *words: object, known: tuple[Array, Array] | None = None
    ) -> Array:
        """Joint draws of the true scores, (count, M).

        Args:
            asked: Configurations.
            count: How many draws.
            words: What the draws are for; other words, other draws.
            known: Their means and covariance; None for the model's own.
        """
        means, found = self.joint(asked) if known is None else known
        covariance = found.copy()
        covariance[np.diag_indices_from(covariance)] += _JITTER + 1e-6 * float(np.mean(np.diag(covariance)))
        generator = np.random.default_rng(self.measure.generator("sampled", *words).getrandbits(64))
        return generator.multivariate_normal(means, covariance, count, method="cholesky")

    @cached_property
    def best_unit_lrs(self) -> Mapping[str, float]:
        """By functional form the place of the rate with the highest posterior mean, over all its structures."""
        found: dict[str, float] = {}
        for form in self.forms:
            with_form = (
                one for one in self.measure.draws if form in (self.encoding.facts(side).form for side in one.sides)
            )
            some = list(islice(with_form, _FOR_UNIT_LRS))
            if some:
                asked = [self.encoding.with_unit_lrs(one, {form: unit_lr}) for unit_lr in UNIT_LRS for one in some]
                response = self.means(asked).reshape(len(UNIT_LRS), len(some)).mean(axis=1)
                found[form] = UNIT_LRS[int(np.argmax(response))]
        return found

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """All functional forms of the space, attention's first."""
        return tuple(dict.fromkeys(form for part in self.encoding.parts.values() for form in part.by_form))

    def with_unit_lr(self, encoded: EncodedConfiguration, form: str, unit_lr: float) -> EncodedConfiguration:
        """The same with another rate of one form, and the most promising ones of the others."""
        return self.encoding.with_unit_lrs(encoded, {**self.best_unit_lrs, form: unit_lr})
