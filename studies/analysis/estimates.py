"""Estimates: expected scores of trials if they were trained again, by the surrogate's posterior.

The best of many noisy scores is biased upwards. The surrogate (`studies.surrogate`) uses all readings of a study, with
similar configurations, pruned trials and replicates. Its estimate of a configuration is below a lucky score and above
an unlucky one. It depends on the ledger alone, so studies of any sampler have estimates. They are cached with the
versions of their inputs, so that the model is fitted once per state of a study.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Never

from search_space.json_text import read_json_text
from studies import surrogate
from studies.records import ExampleCounts, RankedTrial, StudyKind, StudyRecord, TrialState
from studies.score_evidence import Estimate
from studies.surrogate.reading_arrays import FIRST_CHECKPOINT
from trial_runner.files import check_regular, default_cache_folder, whole_file
from trial_runner.tasks.metrics.classes import ACCURACY

if TYPE_CHECKING:
    from studies.analysis.predictions import FeaturesByNumber
    from studies.ledger.ledger import Ledger
    from studies.surrogate.features import Features
    from studies.surrogate.posterior import EstimatePosterior
    from studies.surrogate.structure_distances import Array

FEWEST = FIRST_CHECKPOINT
"""Number of trials with a reading from which on there are estimates; the model is fitted then."""

FEWEST_COMPLETE = 4
"""Number of complete trials among them."""
BLOCK = 256
"""Number of trials that are predicted at once."""
_MOST_BYTES = 64_000_000
_CACHED_SHARE = 0.1
"""Share of its deviation by which a cached mean may differ: another machine rounds otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Expected scores of a study's trials.

    Attributes:
        of: Estimates by trial number, for trials with a reading that have not failed. Those of trials that are not
            complete are computed on access, all at once when iterated.
        difference: Function from two trial numbers to the estimate of the first score minus the second; cached.
        joint: Function from trial numbers to means and covariance of their scores.
        posterior: The same function for any configurations.
        seed_deviation: Standard deviation of the scores of a configuration over seeds of its training.
    """

    of: Mapping[int, Estimate]
    difference: "Callable[[int, int], Estimate]" = field(repr=False, compare=False)
    joint: "Callable[[Sequence[int]], tuple[Array, Array]]" = field(repr=False, compare=False)
    posterior: "Callable[[Sequence[Features]], tuple[Array, Array]]" = field(repr=False, compare=False)
    seed_deviation: float = math.nan


def _unknown(*_: object) -> Never:
    raise LookupError("a study must have estimates before it is asked for one; it has none yet.")


NO_ESTIMATES = Estimates(of=MappingProxyType({}), difference=_unknown, joint=_unknown, posterior=_unknown)
"""Estimates of a study with too few trials, and of confirmations."""


def estimates_of(ledger: "Ledger", study: StudyRecord, trials: Sequence[RankedTrial]) -> Estimates:
    """Return the estimates of a study's trials; `NO_ESTIMATES` with too few trials, and for confirmations.

    Args:
        ledger: Ledger of the study.
        study: Record of the study.
        trials: All of its trials.
    """
    if study.kind is not StudyKind.SEARCH or not are_enough(trials):
        return NO_ESTIMATES
    return cached_estimates(_query(ledger, study, trials))


def _query(ledger: "Ledger", study: StudyRecord, trials: Sequence[RankedTrial]) -> "_EstimateQuery":
    progress = repr([(one.state.value, one.steps, one.last_score) for one in trials])
    key = ledger.url, study.id, study.created_at, hashlib.sha256(progress.encode()).hexdigest()
    return _EstimateQuery(key=key, ledger=ledger, study=study, trials=tuple(trials))


def are_enough(trials: Sequence[RankedTrial]) -> bool:
    """Return whether there are enough trials for estimates."""
    complete = sum(trial.state is TrialState.COMPLETE for trial in trials)
    return complete >= FEWEST_COMPLETE and sum(trial.steps > 0 for trial in trials) >= FEWEST


def counted_examples(ledger: "Ledger", study: StudyRecord) -> ExampleCounts | None:
    """Return the numbers of examples of an accuracy; None for other scores, or if unknown."""
    return ledger.example_counts(study.id) if study.metric == ACCURACY.name else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _EstimateQuery:
    """Key of the cache; two are equal if the study is the same and has the same records."""

    key: tuple[object, ...]
    ledger: "Ledger" = field(compare=False)
    study: StudyRecord = field(compare=False)
    trials: tuple[RankedTrial, ...] = field(compare=False)


@lru_cache(maxsize=64)
def cached_estimates(asked: _EstimateQuery) -> Estimates:
    """Return the estimates of a state of a study, cached in this process."""
    found = _Estimated(asked)
    return Estimates(
        of=found,
        difference=found.difference,
        joint=lambda numbers: found.model[0].joint(found.model[1](numbers)),
        posterior=lambda views: found.model[0].joint(views),
        seed_deviation=found.seed_deviation,
    )


def cache_mismatches(ledger: "Ledger", study: StudyRecord) -> Iterator[str]:
    """Yield a line if the cached estimates of a study's state are not those of its records; nothing is written."""
    trials = ledger.outlines(study.id)
    if study.kind is not StudyKind.SEARCH or not are_enough(trials):
        return
    cached = _Estimated(_query(ledger, study, trials), predicts=False)
    kept, numbers = cached.kept, [*cached.kept]
    if numbers:
        posterior, views_of = cached.model
        means = dict(zip(numbers, posterior.predict(views_of(numbers))[0], strict=True))
        odd = [one for one in numbers if not abs(kept[one].mean - means[one]) <= _CACHED_SHARE * kept[one].deviation]
        if odd:
            yield f"cached estimates must be those of the records; got others of {odd[:10]}. Delete {cached.file}."
        found, seeds = cached.seed_deviation, posterior.seed_deviation
        if not abs(found - seeds) <= _CACHED_SHARE * seeds:
            yield f"cached deviation over seeds must be about {seeds:.4f}; got {found:.4f}. Delete {cached.file}."


class _Estimated(Mapping[int, Estimate]):
    """Estimates of the trials of a study by number.

    Complete trials are predicted at once, others in blocks on access; predictions are cached.

    Attributes:
        file: File of the cache.
        kept: Predictions so far.
        seed_deviation: Standard deviation over seeds of training; NaN before the first prediction.
    """

    def __init__(self, asked: _EstimateQuery, *, predicts: bool = True) -> None:
        """Read the cache, else predict the complete trials if ``predicts``."""
        self._query = asked
        *study, progress = map(str, asked.key)
        name = hashlib.sha256(json.dumps(study).encode()).hexdigest()
        self.file = default_cache_folder() / "estimates" / f"{name}.json"
        # state of the study, and version of the model
        model = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(Path(surrogate.__path__[0]).glob("*.py"))))
        self._made_from = f"{progress} {model.hexdigest()}"
        self.kept: dict[int, Estimate] = {}
        self.seed_deviation = math.nan
        self._leads: dict[str, Estimate] = {}
        self._read()
        # replicates are merged with their originals
        self._numbers = {
            one.number: one.state is TrialState.COMPLETE
            for one in asked.trials
            if one.steps > 0 and one.replicate_of is None and one.state is not TrialState.FAILED
        }
        self._predict([number for number, is_complete in self._numbers.items() if is_complete and predicts])

    def _read(self) -> None:
        """Read the file with the newest estimates; one of another state, a changed or a damaged one is ignored."""
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            check_regular(self.file, most_bytes=_MOST_BYTES)
            kept: Any = read_json_text(self.file.read_text(encoding="utf-8"))
            if kept.pop("sha256") == self._sha256(kept):
                known = {int(number): _estimate(one) for number, one in kept["of"].items()}
                leads = {pair: _estimate(one) for pair, one in kept["leads"].items()}
                self.seed_deviation, self._leads, self.kept = float(kept["seed_deviation"]), leads, known

    def _sha256(self, kept: Mapping[str, object]) -> str:
        """Return the hash of estimates together with the state of the study and the model."""
        return hashlib.sha256(f"{self._made_from} {json.dumps(kept)}".encode()).hexdigest()

    def _keep(self) -> None:
        """Write all estimates if the cache is writable."""
        entries: Mapping[str, Mapping[Any, Estimate]] = {"of": self.kept, "leads": self._leads}
        kept: dict[str, object] = {
            name: {key: (one.mean, one.deviation) for key, one in each.items()} for name, each in entries.items()
        }
        kept["seed_deviation"] = self.seed_deviation
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(self.file) as place:
                place.write_text(json.dumps({**kept, "sha256": self._sha256(kept)}), encoding="utf-8")

    @cached_property
    def model(self) -> "tuple[EstimatePosterior, FeaturesByNumber]":
        """Fitted posterior, and the function from trials to its inputs."""
        from studies.analysis.predictions import predictions_of

        ledger, study, count = self._query.ledger, self._query.study, len(self._query.trials)
        trials = ledger.trials(study.id)[:count]
        return predictions_of(study, trials, ledger.readings_by_trial(study.id), counted_examples(ledger, study))

    def difference(self, first: int, second: int) -> Estimate:
        """Return the estimate of the first trial's score minus the second's."""
        pair = f"{first} {second}"
        if pair not in self._leads:
            posterior, views_of = self.model
            self._leads[pair] = posterior.difference(*views_of([first, second]))
            self._keep()
        return self._leads[pair]

    def __getitem__(self, number: int) -> Estimate:
        """Return the estimate of a trial."""
        if number in self._numbers and number not in self.kept:
            others = (one for one in self._numbers if one not in self.kept and one != number)
            # a new fit predicts all trials
            self._predict([number, *islice(others, BLOCK - 1 if "model" in vars(self) else None)])
        return self.kept[number]

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers of all trials with an estimate; all are predicted."""
        self._predict(list(self._numbers))
        return iter(sorted(self._numbers))

    def _predict(self, numbers: Sequence[int]) -> None:
        new = [number for number in numbers if number not in self.kept]
        if new:
            posterior, views_of = self.model
            self.seed_deviation = posterior.seed_deviation
            for number, mean, deviation in zip(new, *posterior.predict(views_of(new)), strict=True):
                self.kept[number] = Estimate(mean=float(mean), deviation=float(deviation))
            self._keep()

    def __len__(self) -> int:
        """Return the number of trials with an estimate."""
        return len(self._numbers)

    def __contains__(self, number: object) -> bool:
        """Return whether a trial has an estimate."""
        return number in self._numbers


def _estimate(kept: Sequence[float]) -> Estimate:
    mean, deviation = map(float, kept)
    return Estimate(mean=mean, deviation=deviation)
