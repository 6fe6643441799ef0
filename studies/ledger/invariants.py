"""Invariants of the ledger after any crash and a new launch.

Constraints of the tables ensure most of them; checks of the stored rows also find mistakes in the constraints.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from sqlalchemy import Connection

from studies.ledger import reads
from studies.ledger.files import broken_files
from studies.ledger.ledger import Ledger
from studies.records.reading import ArtefactRecord, ExampleRecord
from studies.records.study import EventRecord, StudyRecord
from studies.records.trial import AttemptRecord, TrialRecord, TrialState
from trial_runner.requests import Reading

_TERMINAL_ENDINGS = frozenset(state.value for state in TrialState if state.is_terminal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """All records of a study; attempts and readings are by trial number."""

    study: StudyRecord
    trials: Sequence[TrialRecord]
    attempts: Mapping[int, Sequence[AttemptRecord]]
    readings: Mapping[int, Sequence[Reading]]
    examples: Sequence[ExampleRecord]
    artefacts: Sequence[ArtefactRecord]
    events: Sequence[EventRecord]

    @classmethod
    def of(cls, link: Connection, study_id: int) -> Self:
        """Return the records of a study at one moment; trials may be missing."""
        (study,) = (one for one in reads.studies(link) if one.id == study_id)
        attempts: dict[int, list[AttemptRecord]] = defaultdict(list)
        for attempt in reads.attempts(link, study_id):
            attempts[attempt.trial].append(attempt)
        return cls(
            study=study,
            trials=reads.trials_as_they_are(link, study_id),
            attempts=attempts,
            readings=reads.readings_by_trial(link, study_id),
            examples=reads.examples(link, study_id),
            artefacts=reads.artefacts(link, study_id),
            events=reads.events(link, study_id),
        )


def record_violations(
    records: Records, *, rung_steps: Sequence[int] | None = None, now: datetime | None = None
) -> list[str]:
    """Return a line for every violated invariant of a study.

    Args:
        rung_steps: Steps of the rungs, ascending, by which rungs are recomputed; None to check their consistency alone.
        now: Time at which leases must be live; None for the present.
    """
    now = now or datetime.now(UTC)
    found = list(_numbers(records.trials))
    for trial in records.trials:
        attempts, readings = records.attempts.get(trial.number, ()), records.readings.get(trial.number, ())
        checks = (
            _record(trial),
            _closing(trial, attempts, readings),
            _lease(trial, attempts, now),
            _attempts(trial, attempts),
            _readings(trial, readings),
        )
        found += [f"trial {trial.number}: {problem}" for check in checks for problem in check]
    found += _replicates(records.trials)
    found += _rungs(records.readings, rung_steps)
    return found + [f"trial {one.trial}: {problem}" for one, problem in broken_files(records.study, records.artefacts)]


def file_violations(link: Connection) -> list[str]:
    """Return the problems that SQLite finds in its file, including violated constraints; empty for a server."""
    if link.dialect.name != "sqlite":
        return []
    said = [str(line) for line in link.exec_driver_sql("PRAGMA integrity_check").scalars() if line != "ok"]
    broken = link.exec_driver_sql("PRAGMA foreign_key_check").all()
    return said + [
        f"a row of {table} must refer to one of {parent}; row {row} does not" for table, row, parent, _ in broken
    ]


def lost_weights(ledger: Ledger, study: StudyRecord) -> list[ArtefactRecord]:
    """Return the complete trials whose weights are missing or changed; only a new training restores them."""
    complete = {trial.number for trial in ledger.trials(study.id, states=[TrialState.COMPLETE])}
    weights = [one for one in ledger.artefacts(study.id) if one.kind == "delta" and one.trial in complete]
    return [artefact for artefact, _ in broken_files(study, weights)]


def _numbers(trials: Sequence[TrialRecord]) -> Iterator[str]:
    """Check that numbers are 0..n-1, and that no configuration occurs twice."""
    numbers = [trial.number for trial in trials]
    if numbers != list(range(len(numbers))):
        missing = sorted(set(range(len(numbers))) - set(numbers))
        repeated = sorted(number for number, count in Counter(numbers).items() if count > 1)
        yield f"trial numbers must be 0 to n-1; missing {missing}, repeated {repeated}"
    for fingerprint, count in Counter(trial.fingerprint for trial in trials).items():
        if count > 1:
            yield f"a configuration must be tried once; {fingerprint} is there {count} times"


def _record(trial: TrialRecord) -> Iterator[str]:
    """Check that state, score, reason and end are consistent."""
    if (trial.state is TrialState.COMPLETE) != (trial.score is not None):
        yield f"a score belongs to a complete trial and to no other; got {trial.state}, {trial.score}"
    if (trial.state in (TrialState.PRUNED, TrialState.FAILED)) != (trial.reason is not None):
        yield f"a reason belongs to a pruned or failed trial; got {trial.state}, {trial.reason!r}"
    if trial.state.is_terminal != (trial.ended_at is not None):
        yield f"a terminal trial has an end and no other has; got {trial.state}, {trial.ended_at}"


def _closing(trial: TrialRecord, attempts: Sequence[AttemptRecord], readings: Sequence[Reading]) -> Iterator[str]:
    """Check that a terminal trial equals its last attempt and its last reading."""
    closing = [attempt for attempt in attempts if attempt.ending in _TERMINAL_ENDINGS]
    if len(closing) != trial.state.is_terminal:
        yield f"one attempt closes a terminal trial, none another; got {trial.state}, closed {len(closing)} times"
        return
    for attempt in closing:
        closed = (attempt.attempt, attempt.ending, attempt.ended_at)
        if closed != (trial.attempt, trial.state.value, trial.ended_at):
            row = (trial.attempt, trial.state.value, trial.ended_at)
            yield f"its row changed after its end: the closing attempt says {closed}, the row {row}"
    if trial.state is TrialState.COMPLETE and readings and trial.score != readings[-1].score:
        yield f"its score must be that of its last reading, {readings[-1].score}; got {trial.score}"


def _lease(trial: TrialRecord, attempts: Sequence[AttemptRecord], now: datetime) -> Iterator[str]:
    """Check that a trial is running exactly while its newest attempt is open with a live lease."""
    open_attempts = [attempt for attempt in attempts if attempt.ended_at is None]
    if [attempt.attempt for attempt in open_attempts] != [trial.attempt] * (trial.state is TrialState.RUNNING):
        numbers = [attempt.attempt for attempt in open_attempts]
        yield f"a running trial has its newest attempt open and no other has; got {trial.state}, open {numbers}"
    for attempt in open_attempts:
        if not attempt.lease_expires_at > now:
            yield f"it runs without a live lease since {attempt.lease_expires_at.isoformat()} ({attempt.worker})"


def _attempts(trial: TrialRecord, attempts: Sequence[AttemptRecord]) -> Iterator[str]:
    """Check that attempts are 1..k, that the trial has k, and that the last one ends a terminal trial."""
    numbers = [attempt.attempt for attempt in attempts]
    if numbers != list(range(1, len(numbers) + 1)) or len(numbers) != trial.attempt:
        yield f"attempts must be 1 to {trial.attempt}; got {numbers}"


def _readings(trial: TrialRecord, readings: Sequence[Reading]) -> Iterator[str]:
    """Check that steps ascend, attempts do not decrease, and the trial's progress equals the last reading."""
    steps = [reading.step for reading in readings]
    if any(later <= earlier for earlier, later in zip([0, *steps], steps, strict=False)):
        yield f"steps of readings must ascend from 1; got {steps}"
    by = [reading.attempt for reading in readings]
    if by != sorted(by) or any(not 1 <= attempt <= trial.attempt for attempt in by):
        yield f"attempts of readings must ascend within 1 to {trial.attempt}; got {by}"
    last = (readings[-1].step, readings[-1].score) if readings else (0, None)
    if (trial.steps, trial.last_score) != last:
        yield f"its progress must be that of its last reading, {last}; got {trial.steps, trial.last_score}"


def _rungs(readings: Mapping[int, Sequence[Reading]], rung_steps: Sequence[int] | None) -> Iterator[str]:
    """Check that the rung of each reading follows from its step."""
    expected: dict[int, int | None] = {step: rung for rung, step in enumerate(rung_steps or ())}
    for number, of_trial in readings.items():
        for reading in of_trial:
            if rung_steps is None:
                expected.setdefault(reading.step, reading.rung)
            if reading.rung != expected.get(reading.step):
                yield (
                    f"trial {number}: the reading at step {reading.step} must be of rung "
                    f"{expected.get(reading.step)}; got {reading.rung}"
                )


def _replicates(all_trials: Sequence[TrialRecord]) -> Iterator[str]:
    """Check that a replicate repeats an earlier complete trial with another seed and is never pruned."""
    trials = {trial.number: trial for trial in all_trials}
    for trial in trials.values():
        if (trial.origin == "replicate") != (trial.replicate_of is not None):
            yield f"trial {trial.number}: a replicate names its original; got {trial.origin}, {trial.replicate_of}"
        if trial.replicate_of is None:
            continue
        original = trials.get(trial.replicate_of)
        if original is None or original.number >= trial.number or original.replicate_of is not None:
            yield f"trial {trial.number}: it must repeat an earlier trial; got {trial.replicate_of}"
            continue
        if original.state is not TrialState.COMPLETE or trial.state is TrialState.PRUNED:
            yield f"trial {trial.number}: only complete trials are repeated, to the end; it is {trial.state}"
        same = ("configuration", "attention", "ffn", "method")
        if any(getattr(trial, name) != getattr(original, name) for name in same) or trial.seed == original.seed:
            yield f"trial {trial.number}: it must be trial {original.number} but for the seed; it is not"
