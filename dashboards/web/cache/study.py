"""Cache of one study: its trials with the versions in which they changed, curves, ranking, views."""

import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import fields
from functools import cached_property

from dashboards.web.cache.background import Background, CachedResult
from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.errors import SearchSpaceError
from search_space.words.dimensions import SideDimensions
from studies.analysis.ranks import Ranking, ranking_of
from studies.analysis.verdict import verdict
from studies.errors import StudiesError
from studies.ledger.ledger import Ledger
from studies.records.study import Annotation, EventRecord, StudyKind, StudyRecord, annotations_of
from studies.records.trial import RankedTrial, TrialOutline, TrialState
from trial_runner.backbones.locate import config_of
from trial_runner.errors import RunnerError
from trial_runner.requests import Reading

REFUSALS = (SearchSpaceError, RunnerError, StudiesError)
"""User-facing errors, whose text is the response."""

MIN_SECONDS = 0.2
"""Smallest interval between two looks at a study."""
_ESTIMATED = 2000
"""Number of ranks up to which incomplete trials get estimates; complete trials always do."""
_OPEN = (TrialState.QUEUED, TrialState.RUNNING)

_SIDES = ("attention", "ffn")
_SITE = tuple(field.name for field in fields(SideDimensions))
_PLAIN = tuple(field.name for field in fields(TrialOutline) if field.name not in (*_SIDES, "ended_at"))

COLUMNS = (*_PLAIN, "ended_at", *(f"{side}_{name}" for side in _SIDES for name in _SITE))
"""Columns of a row, in order; times are seconds since 1970."""


class WatchedStudy:
    """A study whose open trials are read again; ended trials never change.

    Args:
        ledger: Storage that contains it.
        record: Record of the study.
        executor: Thread for slow computations.
    """

    def __init__(self, ledger: Ledger, record: StudyRecord, executor: Executor) -> None:
        """Read nothing yet."""
        self.ledger = ledger
        self.record = record
        self.counts = dict.fromkeys(TrialState, 0)
        """Number of trials in each state."""
        self._executor = executor
        self._lock = threading.RLock()
        self._trials: list[tuple[int, TrialOutline]] = []
        """Trials by number, each with the version of the study in which it last changed."""
        self._version = 0
        self._annotation_events: list[EventRecord] = []
        self._annotation_key = 0
        self._read_at = float("-inf")
        self._views: dict[str, Background] = {}

    @property
    def trials(self) -> tuple[TrialOutline, ...]:
        """Outlines of all trials by number, as last read."""
        with self._lock:
            return tuple(trial for _, trial in self._trials)

    @cached_property
    def shape(self) -> BackboneShape | None:
        """Shape of the backbone; None if this machine does not have it."""
        try:
            return shape_of(config_of(self.record.backbone))
        except REFUSALS:
            return None

    def refresh(self) -> int:
        """Read possible changes, unless that was just done, and return the version, which grows with every change."""
        with self._lock:
            if time.monotonic() - self._read_at >= MIN_SECONDS:
                self._read()
                self._read_at = time.monotonic()
            return self._version

    def forget(self) -> None:
        """Read again at the next request, because an annotation was written."""
        with self._lock:
            self._read_at = float("-inf")

    def annotations(self) -> dict[int | None, Annotation]:
        """Return the annotations by number of the trial; that of the study has None."""
        return annotations_of(self._annotation_events)

    def _read(self) -> None:
        key, known = self.record.id, len(self._trials)
        self._annotation_key, newer = self.ledger.user_events_after(key, self._annotation_key)
        self._annotation_events += newer
        self.counts = self.ledger.state_counts(key)
        total = sum(self.counts.values())
        running = self.ledger.trials(key, states=_OPEN)
        ended = {trial.number for _, trial in self._trials if trial.state in _OPEN} - {one.number for one in running}
        changed = [*running, *(self.ledger.trial(key, number) for number in ended)]
        outlines = [TrialOutline.of(trial) for trial in changed]
        if total > known:
            outlines += self.ledger.outlines(key, known)
        # Trials created after the count are read next time; numbers have no gaps.
        by_number = {trial.number: trial for trial in outlines if trial.number < total}
        updated = [
            one for number, one in sorted(by_number.items()) if number >= known or one != self._trials[number][1]
        ]
        self._version += bool(updated)
        for trial in updated:
            self._trials[trial.number : trial.number + 1] = [(self._version, trial)]

    def rows(self, since: int) -> dict[str, object]:
        """Return the version, and the rows of all trials that changed after an earlier one."""
        version = self.refresh()
        with self._lock:
            changed = [one for became, one in self._trials if became > since]
        return {"version": version, "columns": COLUMNS, "rows": [*map(_row, changed)]}

    def curves(self, numbers: Collection[int]) -> dict[int, list[Reading]]:
        """Return the readings by number of the trial; unknown numbers are left out."""
        self.refresh()
        existing = range(len(self._trials))
        return {number: self.ledger.readings(self.record.id, number) for number in numbers if number in existing}

    def ranking(self, *, waits: bool = False) -> CachedResult | None:
        """Return the newest ranking; None if there is none yet and `waits` is false."""
        return self.view("ranking", lambda: self._ranked(self.trials), waits=waits)

    def _ranked(self, trials: Sequence[RankedTrial]) -> object:
        ranking = ranking_of(self.ledger, self.record, trials)
        estimates = ranking.estimates.of
        return {
            "order": [trial.number for trial in ranking.trials],
            "estimates": [
                [trial.number, one.mean, one.reach]
                for trial in _estimated(ranking, trials)
                if (one := estimates.get(trial.number)) is not None
            ],
            "repeated": {
                number: {"seeds": count, "score": ranking.scores[number]}
                for number, count in ranking.seeds.items()
                if count > 1
            },
            "verdict": verdict(ranking, self.record).splitlines() if self.record.kind is StudyKind.SEARCH else [],
        }

    def view(
        self, name: str, work: Callable[[], object], *, state: Hashable = None, waits: bool = False
    ) -> CachedResult | None:
        """Return the newest result of a view; see `Background`.

        Args:
            state: State of everything else that the view depends on.
        """
        version = self.refresh()
        with self._lock:
            view = self._views.setdefault(name, Background(self._executor, REFUSALS))
        return view.ask((version, state), work, waits=waits)

    def news(self) -> dict[str, int]:
        """Return counters that grow with every change of trials, annotations and computed views."""
        version = self.refresh()
        with self._lock:
            return {
                "version": version,
                "said": len(self._annotation_events),
                "views": sum(one.newest.number for one in self._views.values() if one.newest),
            }


def _estimated(ranking: Ranking, trials: Sequence[RankedTrial]) -> Iterator[RankedTrial]:
    """Yield the trials whose estimates are shown; predictions for thousands of low ranks would be too slow."""
    yield from (trial for trial in trials if not trial.state.is_terminal)
    for place, trial in enumerate(ranking.trials):
        if place < _ESTIMATED or trial.state is TrialState.COMPLETE:
            yield trial


def _row(trial: TrialOutline) -> list[object]:
    """Return the values of a trial that tables, filters and plots need."""
    row: list[object] = [getattr(trial, name) for name in _PLAIN]
    row.append(None if trial.ended_at is None else round(trial.ended_at.timestamp()))
    for site in (trial.attention, trial.ffn):
        row += [None if site is None else getattr(site, name) for name in _SITE]
    return row
