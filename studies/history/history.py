"""Past of a study: its trials with their readings, in the order of their numbers.

A history never changes. What happens makes a new one, which shares all blocks of `BLOCK` trials that stay as they are.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import chain, islice
from typing import Any, overload

from studies.history.noise import ScoreNoise
from studies.records import Reading, TrialRecord, TrialReport, TrialState

BLOCK = 256
"""Number of trials that are copied when one of them changes."""

_NO_NOISE = ScoreNoise()
Entry = tuple[TrialRecord, tuple[Reading, ...]]
"""A trial and its readings."""


class _TrialBlock(tuple[Entry, ...]):
    """Consecutive trials that histories share."""

    @cached_property
    def fingerprints(self) -> frozenset[str]:
        """Fingerprints of the trials."""
        return frozenset(trial.fingerprint for trial, _ in self)


@dataclass(frozen=True, eq=False)
class StudyHistory(Sequence[TrialRecord]):
    """Trials of a study in their newest state, in the order of their numbers, with their readings.

    Attributes:
        noise: Precision of the readings.
    """

    noise: ScoreNoise = _NO_NOISE
    _blocks: tuple[_TrialBlock, ...] = field(default=(), repr=False)
    _scores: Mapping[int, tuple[float, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, trials: Iterable[TrialRecord], readings: Mapping[int, Sequence[Reading]], noise: ScoreNoise = _NO_NOISE
    ) -> "StudyHistory":
        """Return the history of recorded trials.

        Args:
            trials: All trials of a study, in the order of their numbers.
            readings: Readings by trial number.
            noise: Precision of the readings.
        """
        entries = [(trial, tuple(readings.get(trial.number, ()))) for trial in trials]
        blocks = tuple(_TrialBlock(entries[begin : begin + BLOCK]) for begin in range(0, len(entries), BLOCK))
        scores: dict[int, list[float]] = {}
        for trial, of_trial in entries:
            for one in of_trial if trial.replicate_of is None else ():
                scores.setdefault(one.step, []).append(one.score)
        return cls(noise, blocks, {step: tuple(sorted(at_step)) for step, at_step in scores.items()})

    def __len__(self) -> int:
        """Return the number of trials, which is the number of the next one."""
        return BLOCK * (len(self._blocks) - 1) + len(self._blocks[-1]) if self._blocks else 0

    @overload
    def __getitem__(self, place: int) -> TrialRecord: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[TrialRecord]: ...

    def __getitem__(self, place: int | slice) -> TrialRecord | Sequence[TrialRecord]:
        """Return the trial of a number, or some trials."""
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        return self._entry(place)[0]

    def __iter__(self) -> Iterator[TrialRecord]:
        """Yield the trials."""
        return (trial for trial, _ in self.entries())

    def entries(self, begin: int = 0) -> Iterator[Entry]:
        """Yield each trial with its readings, from a number on."""
        return islice(chain.from_iterable(self._blocks[begin // BLOCK :]), begin % BLOCK, None)

    def readings(self, number: int) -> tuple[Reading, ...]:
        """Return the readings of a trial, in the order in which they arrived or of their steps."""
        return self._entry(number)[1]

    def reading_at(self, number: int, step: int) -> Reading | None:
        """Return the reading of a trial at a step; None if there is none."""
        return next((one for one in self.readings(number) if one.step == step), None)

    def scores_at(self, step: int) -> tuple[float, ...]:
        """Return the scores of all trials but replicates at a step, in ascending order."""
        return self._scores.get(step, ())

    def has_fingerprint(self, fingerprint: str) -> bool:
        """Return whether a trial has a fingerprint."""
        return any(fingerprint in block.fingerprints for block in self._blocks)

    def _entry(self, number: int) -> Entry:
        block, place = divmod(range(len(self))[number], BLOCK)
        return self._blocks[block][place]

    @cached_property
    def counts(self) -> Mapping[TrialState, int]:
        """Number of trials in each state, zeros included."""
        counts = dict.fromkeys(TrialState, 0)
        for trial in self:
            counts[trial.state] += 1
        return counts

    def added(self, trials: Iterable[TrialRecord]) -> "StudyHistory":
        """Return the history after new trials, whose numbers continue it."""
        blocks = self._blocks
        for trial in trials:
            is_open = bool(blocks) and len(blocks[-1]) < BLOCK
            last = blocks[-1] if is_open else ()
            blocks = (*(blocks[:-1] if is_open else blocks), _TrialBlock((*last, (trial, ()))))
        return replace(self, _blocks=blocks)

    def changed(self, number: int, **fields: Any) -> "StudyHistory":
        """Return the history after a change of some fields of a trial."""
        trial, readings = self._entry(number)
        return self._with(number, (replace(trial, **fields), readings))

    def reported(self, report: TrialReport, ended_at: datetime | None = None) -> "StudyHistory":
        """Return the history after a report, as the ledger records it.

        A second reading of a step is ignored, and a reading at an earlier step than the newest one is no progress.

        Args:
            report: Report of the running attempt at a trial.
            ended_at: Time of the end, if the report ends the trial.
        """
        (trial, readings), scores = self._entry(report.trial), self._scores
        if (reading := report.reading) is not None:
            if all(one.step != reading.step for one in readings):
                readings = (*readings, replace(reading, examples=None))
                if trial.replicate_of is None:
                    at_step = self.scores_at(reading.step)
                    place = bisect_left(at_step, reading.score)
                    scores = {**scores, reading.step: (*at_step[:place], reading.score, *at_step[place:])}
            if reading.step > trial.steps:
                trial = replace(trial, steps=reading.step, last_score=reading.score)
        if report.state.is_terminal:
            trial = replace(trial, state=report.state, score=report.score, reason=report.reason, ended_at=ended_at)
        return self._with(report.trial, (trial, readings), _scores=scores)

    def _with(self, number: int, entry: Entry, **changed: Any) -> "StudyHistory":
        block, place = divmod(range(len(self))[number], BLOCK)
        old = self._blocks[block]
        new = _TrialBlock((*old[:place], entry, *old[place + 1 :]))
        return replace(self, _blocks=(*self._blocks[:block], new, *self._blocks[block + 1 :]), **changed)


def at_end(trial: TrialRecord) -> tuple[float, int]:
    """Return the sort key of ended trials: by the time of their end, then by number."""
    return 0.0 if trial.ended_at is None else trial.ended_at.timestamp(), trial.number
