"""How long a proposal takes after so many trials, and how long it takes to take a ledger in, in processor time."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median

from search_arms.readings import Measurements
from search_arms.simulation import STEPS
from search_arms.truth import PlantedTruth
from search_space.space.space import SearchSpace
from studies.records import NewTrial, ReadingRecord, TrialRecord, TrialState
from studies.search.candidates import new_trial
from studies.search.proposer import Proposer
from studies.search.samplers import SAMPLERS
from studies.surrogate.recorded_observations import ObservationModel

SIZES = (100, 1_000, 20_000)
SEARCHES = ("factored", "tpe", "nsga2")
_PROPOSALS = 11
_NOISE = 2.2
_FIRST_AT = datetime(2026, 1, 1, tzinfo=UTC)

Ledger = tuple[Sequence[TrialRecord], Mapping[int, Sequence[ReadingRecord]]]


def ledger_of(space: SearchSpace, trials: int) -> Ledger:
    """Draws uniform over structures, three in five of them pruned at a rung."""
    truth, measurements = PlantedTruth(space, 0), Measurements(0, noise=_NOISE, steps=STEPS)
    proposer = Proposer(space, sampler=SAMPLERS["random"], seed=0)
    records, readings = [], {}
    for number in range(trials):
        candidate = proposer.propose()
        proposer.close(number, TrialState.PRUNED)
        last = (STEPS // 4, STEPS // 2, STEPS)[(2, 0, 1, 0, 2)[number % 5]]
        points = truth.score(candidate)
        read = [
            measurements.read(number, candidate.fingerprint, points, step)
            for step in (STEPS // 4, STEPS // 2, STEPS)
            if step <= last
        ]
        readings[number] = [
            ReadingRecord(
                trial=number,
                step=one.step,
                score=one.score,
                metrics={"validation_loss": one.loss},
                train_loss=one.loss,
                seconds=1.0,
                attempt=1,
                rung=None,
            )
            for one in read
        ]
        trial = new_trial(candidate, space.shape, number=number, head_parameters=0)
        records.append(_ended(trial, last, read[-1].score))
    return records, readings


def _ended(trial: NewTrial, steps: int, score: float) -> TrialRecord:
    given = {name: getattr(trial, name) for name in NewTrial.__dataclass_fields__}
    is_complete = steps == STEPS
    at = _FIRST_AT + timedelta(seconds=trial.number)
    return TrialRecord(
        **given,
        study_id=0,
        state=TrialState.COMPLETE if is_complete else TrialState.PRUNED,
        score=score if is_complete else None,
        steps=steps,
        last_score=score,
        reason=None if is_complete else "pruned",
        attempt=1,
        created_at=at,
        ended_at=at,
    )


def time_lines(space: SearchSpace, sizes: Sequence[int] = SIZES) -> Iterator[str]:
    """A line for each sampler and number of trials."""
    records, readings = ledger_of(space, max(sizes))
    yield f"{'':<12}{'trials':>8}{'taken in':>12}{'first proposal':>17}{'a proposal':>14}{'longest':>12}"
    for name in SEARCHES:
        for size in sizes:
            replay, times = _timed(name, space, records[:size], readings)
            yield (
                f"{name:<12}{size:>8,}{replay:>10.2f} s{times[0]:>14.0f} ms{median(times[1:]):>11.1f} ms"
                f"{max(times[1:]):>9.0f} ms"
            )
    yield "a proposal: the median of ten, each told of the one before; the first fits what is fitted at checkpoints"


def _timed(
    name: str, space: SearchSpace, records: Sequence[TrialRecord], readings: Mapping[int, Sequence[ReadingRecord]]
) -> tuple[float, list[float]]:
    """Seconds to take the trials in, and milliseconds of each proposal."""
    course = ObservationModel(steps=STEPS, examples=round(2500 / _NOISE**2))
    proposer = Proposer(space, sampler=name, seed=0, course=course)
    began_at = time.process_time()
    proposer.replay(records, readings)
    replay = time.process_time() - began_at
    times = []
    for _ in range(_PROPOSALS):
        began_at = time.process_time()
        number = proposer.propose().number
        times.append(1000 * (time.process_time() - began_at))
        proposer.report(number, STEPS // 4, 0.4)
        proposer.close(number, TrialState.PRUNED)
    return replay, times
