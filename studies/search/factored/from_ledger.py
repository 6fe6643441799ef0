"""What a ledger holds as observations."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from search_space.codec import configuration_from_json
from studies.search.factored.observation import Measured, Observation
from studies.store.records import ReadingRecord, TrialRecord


def observations(
    trials: Iterable[TrialRecord],
    readings: Mapping[int, Sequence[ReadingRecord]],
    *,
    steps: int,
    standard_error: Callable[[float], float] | None = None,
) -> list[Observation]:
    """The trials of a study as the factored sampler is told of them.

    A ledger has no times of readings: those of a trial are heard when it ended, those of running trials last.

    Args:
        trials: In the order of their numbers.
        readings: By number of the trial.
        steps: Of a whole trial.
        standard_error: Of a score; None where it is not known.
    """
    return [_observation(trial, readings.get(trial.number, ()), steps, standard_error) for trial in trials]


def _observation(
    trial: TrialRecord,
    readings: Sequence[ReadingRecord],
    steps: int,
    standard_error: Callable[[float], float] | None,
) -> Observation:
    time = math.inf if trial.ended_at is None else trial.ended_at.timestamp()
    return Observation(
        number=trial.number,
        configuration=configuration_from_json(trial.configuration),
        attention_learning_rate=None if trial.attention is None else trial.attention.learning_rate,
        ffn_learning_rate=None if trial.ffn is None else trial.ffn.learning_rate,
        fingerprint=trial.fingerprint,
        method=trial.method,
        origin=trial.origin,
        state=trial.state,
        readings=tuple(
            Measured(
                fraction=reading.step / steps,
                score=reading.score,
                standard_error=0.0 if standard_error is None else standard_error(reading.score),
                time=time,
            )
            for reading in readings
            if 0 < reading.step <= steps
        ),
    )


def share_error(examples: int) -> Callable[[float], float]:
    """The standard error of a share of right answers, such as an accuracy.

    Half an example more or less keeps it above 0 where all or none were right.

    Args:
        examples: That were asked.
    """

    def error(score: float) -> float:
        right = min(max(score, 0.5 / examples), 1 - 0.5 / examples)
        return math.sqrt(right * (1 - right) / examples)

    return error
