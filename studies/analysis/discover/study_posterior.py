"""Posterior of a study at any configuration of its space.

The surrogate (`studies.surrogate`) is fitted to every reading of the study. The prior rules of the papers are left out,
so that conclusions depend on its trials alone.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import islice

import numpy as np

from search_space.space.space import Candidate, SearchSpace
from studies.analysis.baselines import candidate_of_trial
from studies.analysis.discover.uniform_draws import UniformDraws
from studies.errors import StudiesError
from studies.history.history import StudyHistory
from studies.records import TrialRecord, TrialState
from studies.score_evidence import Z_95
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.encoding import Encoding
from studies.surrogate.features import Features
from studies.surrogate.hyperparameters import ANALYSIS_PRIORS
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.prior_mean import no_rules
from studies.surrogate.structure_distances import Array

Asked = EncodedConfiguration | Candidate | TrialRecord
"""Encoded configuration, any candidate with its learning rates, or a trial."""

LeaderboardJoint = Callable[[Sequence[Features]], tuple[Array, Array]]
"""Function to means and covariance of true scores, (M,) and (M, M)."""

UNIT_LRS: tuple[float, ...] = tuple(np.linspace(-1, 1, 21).tolist())
"""Positions of learning rates in their ranges at which responses are computed."""

LEVEL = 0.95
"""Probability of intervals."""

REACH = Z_95
"""Half width of such an interval of a normal distribution, in standard deviations."""

OPENING = 40
"""Number of first trials to which hyper-parameters are fitted and by which scores are standardized.

Later trials of a greedy search resemble each other; fitted to them, the model takes the space as flat, and intervals
are too short.
"""

_JITTER = 1e-10
_BLOCK = 512
_FOR_UNIT_LRS = 40


class StudyPosterior:
    """Posterior of a study, deterministic for a history and a seed.

    Attributes:
        history: Every trial, in the order of their numbers.
        measure: Uniform draws of the space.
        surrogate: Fitter of the model.
        metric: Metric of the scores.
        seed: Seed of all draws.
        study: Name of the study; may be empty.
    """

    def __init__(  # noqa: PLR0913 - inputs of the model
        self,
        space: SearchSpace,
        history: StudyHistory,
        *,
        metric: str = "score",
        seed: int = 0,
        best: int | None = None,
        leaderboard_joint: LeaderboardJoint | None = None,
        study: str = "",
    ) -> None:
        """Fit the model.

        Args:
            space: Search space of the study.
            history: Trials of the study.
            metric: Metric that is maximized.
            seed: Seed of all draws.
            best: Number of the leading trial; None for the complete one with the highest posterior mean.
            leaderboard_joint: Means and covariance by the leaderboard's model; None for this model's own.
            study: Name of the study.
        """
        self.history = history
        self.metric = metric
        self.seed = seed
        self.study = study
        self._best = best
        self._leaderboard_joint = leaderboard_joint
        self.encoding = Encoding(space)
        self.measure = UniformDraws(self.encoding, seed)
        # the analyses were validated under these priors
        priors = ANALYSIS_PRIORS
        self.surrogate = SurrogateFitter(self.encoding.features_of, rules=no_rules, fits_to=OPENING, priors=priors)
        self._posterior = self.surrogate.posterior(self.history)

    @cached_property
    def complete(self) -> tuple[TrialRecord, ...]:
        """Complete trials without replicates."""
        return tuple(one for one in self.history if one.state is TrialState.COMPLETE and one.replicate_of is None)

    @cached_property
    def winner(self) -> TrialRecord:
        """Leading trial.

        Raises:
            StudiesError: If no trial is complete.
        """
        if not self.complete:
            raise StudiesError("a study must have a complete trial to have a winner; got none.")
        named = [one for one in self.complete if one.number == self._best]
        return named[0] if named else self.best_of(self.complete)

    def best_of(self, trials: Sequence[TrialRecord]) -> TrialRecord:
        """Return the trial with the highest posterior mean, the first of equals; at least one is needed."""
        return self.best_first(trials)[0]

    def best_first(self, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
        """Return trials in the order of their posterior means."""
        return [trials[place] for place in np.argsort(-self.expected_means(trials), kind="stable")]

    def candidate(self, trial: TrialRecord) -> Candidate:
        """Return a trial as a candidate."""
        return candidate_of_trial(trial, self.space)

    @property
    def space(self) -> SearchSpace:
        """Search space of the study."""
        return self.encoding.space

    def _view(self, asked: Asked) -> Features:
        if isinstance(asked, EncodedConfiguration):
            return self.encoding.features(asked)
        return self.surrogate.features(asked) if isinstance(asked, TrialRecord) else self.encoding.features_of(asked)

    def means(self, asked: Sequence[Asked]) -> Array:
        """Return posterior means of the true scores at full length, (M,)."""
        return self._posterior.means([self._view(one) for one in asked])

    def joint(self, asked: Sequence[Asked]) -> tuple[Array, Array]:
        """Return posterior means and covariance of the true scores at full length, (M,) and (M, M)."""
        return self._posterior.joint([self._view(one) for one in asked])

    def expected(self, asked: Sequence[Asked]) -> tuple[Array, Array]:
        """Return means and covariance of true scores by the leaderboard's model."""
        return (
            self.joint(asked)
            if self._leaderboard_joint is None
            else self._leaderboard_joint([self._view(one) for one in asked])
        )

    def expected_means(self, asked: Sequence[Asked]) -> Array:
        """Return the means of `expected` in blocks, which bounds memory, (M,)."""
        blocks = [asked[start : start + _BLOCK] for start in range(0, len(asked), _BLOCK)]
        return np.concatenate([np.zeros(0), *(self.expected(block)[0] for block in blocks)])

    def sampled(
        self, asked: Sequence[Asked], count: int, *words: object, known: tuple[Array, Array] | None = None
    ) -> Array:
        """Return joint draws of the true scores, (count, M).

        Args:
            asked: Configurations.
            count: Number of draws.
            words: Purpose of the draws, which seeds them.
            known: Means and covariance; None for the model's own.
        """
        means, found = self.joint(asked) if known is None else known
        covariance = found.copy()
        covariance[np.diag_indices_from(covariance)] += _JITTER + 1e-6 * float(np.mean(np.diag(covariance)))
        generator = np.random.default_rng(self.measure.generator("sampled", *words).getrandbits(64))
        return generator.multivariate_normal(means, covariance, count, method="cholesky")

    @cached_property
    def best_unit_lrs(self) -> Mapping[str, float]:
        """Position of the learning rate with the highest posterior mean by form, over all its structures."""
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
        """Functional forms of the space, attention's first."""
        return tuple(dict.fromkeys(form for part in self.encoding.parts.values() for form in part.by_form))
