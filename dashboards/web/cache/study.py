"""One study as it is watched: its trials, what changed of them and when, their curves, their ranking."""

import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields

from dashboards.web.cache.background import Background, CachedResult
from dashboards.web.json_bytes import joined, listed, to_json
from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.errors import SearchSpaceError
from studies.analysis.estimates import Lead
from studies.analysis.ranks import Ranking, ranking_of
from studies.analysis.verdict import verdict
from studies.errors import StudiesError
from studies.ledger.ledger import Ledger
from studies.records import ReadingRecord, SiteDimensions, StudyKind, StudyRecord, TrialRecord, TrialState
from trial_runner.backbones.locate import config_of
from trial_runner.errors import RunnerError

REFUSALS = (SearchSpaceError, RunnerError, StudiesError)
"""Errors that are meant for a user, so that their text is an answer."""

_LEAST_SECONDS = 0.2
_AT_ONCE = 1500
"""Trials that one look reads at most, so that no answer waits for all of a large study; the next look goes on."""

_ONE_BY_ONE = 50
_ESTIMATED = 2000
"""Places up to which trials that are not complete are told their estimates; complete ones always are."""
_OPEN = (TrialState.QUEUED, TrialState.RUNNING)

_SIDES = ("attention", "ffn")
_SITE = tuple(field.name for field in fields(SiteDimensions))
_PLAIN = (
    "number",
    "state",
    "origin",
    "method",
    "description",
    "score",
    "last_score",
    "steps",
    "attempt",
    "stored_parameters",
    "attention_share",
    "replicate_of",
    "reason",
)

COLUMNS = (*_PLAIN, "ended_at", *(f"{side}_{name}" for side in _SIDES for name in _SITE))
"""What a row holds, in this order; times are seconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A trial as it was last read.

    Attributes:
        changed: The version of the study in which it became so.
        row: The same as JSON.
    """

    trial: TrialRecord
    changed: int
    row: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Board:
    """A ranking, and the same as JSON."""

    ranking: Ranking
    encoded: bytes


class WatchedStudy:
    """A study that is read again where it may have changed; ended trials never do.

    Args:
        ledger: Where it is.
        record: Of the study.
        executor: Works out what takes long.
    """

    def __init__(self, ledger: Ledger, record: StudyRecord, executor: Executor) -> None:
        """Read nothing yet."""
        self.ledger = ledger
        self.record = record
        self.executor = executor
        self._lock = threading.RLock()
        self._kept: list[_Kept] = []
        self._open: set[int] = set()
        self._counts = dict.fromkeys(TrialState, 0)
        self._is_whole = False
        self._version = 0
        self._read_at = float("-inf")
        self._curves: dict[int, tuple[int, tuple[ReadingRecord, ...]]] = {}
        self._board: Background[_Board] = Background(executor, REFUSALS)
        self._views: dict[str, Background[object]] = {}
        self._shape: tuple[BackboneShape | None] | None = None

    @property
    def trials(self) -> tuple[TrialRecord, ...]:
        """All trials by number, as they were last read."""
        with self._lock:
            return tuple(kept.trial for kept in self._kept)

    @property
    def shape(self) -> BackboneShape | None:
        """Of its backbone; None where the machine does not have it."""
        if self._shape is None:
            try:
                self._shape = (shape_of(config_of(self.record.backbone)),)
            except REFUSALS:
                self._shape = (None,)
        return self._shape[0]

    def refresh(self) -> int:
        """Read what may have changed, unless that was just done; returns the version, which grows with every change.

        A study of many trials is not whole after the first time.
        """
        with self._lock:
            if not self._is_whole or time.monotonic() - self._read_at >= _LEAST_SECONDS:
                self._refresh()
                self._read_at = time.monotonic()
            return self._version

    def read_all(self) -> int:
        """The same, until every trial has been read that there is."""
        with self._lock:
            version = self.refresh()
            while not self._is_whole:
                version = self.refresh()
            return version

    def _refresh(self) -> None:
        key = self.record.id
        self._counts = self.ledger.state_counts(key)
        total = sum(self._counts.values())
        still_open = {trial.number: trial for trial in self.ledger.trials(key, states=_OPEN)}
        known = len(self._kept)
        end = min(total, known + _AT_ONCE)
        asked = {*self._open, *range(known, end)} - still_open.keys()
        if len(asked) > _ONE_BY_ONE:
            read = still_open | {one.number: one for one in self.ledger.trials_from(key, min(asked), end)}
        else:
            read = still_open | {number: self.ledger.trial(key, number) for number in asked}
        # A trial that is newer than the count follows with the next look; numbers have no gaps.
        news = [read[number] for number in sorted(read) if number >= known or read[number] != self._kept[number].trial]
        news = [trial for trial in news if trial.number < end]
        if news:
            self._version += 1
        for trial in news:
            kept = _Kept(trial=trial, changed=self._version, row=_encoded(trial))
            if trial.number < len(self._kept):
                self._kept[trial.number] = kept
            else:
                self._kept.append(kept)
            (self._open.discard if trial.state.is_terminal else self._open.add)(trial.number)
        self._is_whole = end == total

    def counts(self) -> dict[TrialState, int]:
        """How many trials are in every state, those among them that have not been read yet."""
        return dict(self._counts)

    def open_trials(self) -> list[TrialRecord]:
        """Those that are queued or running."""
        with self._lock:
            return [self._kept[number].trial for number in sorted(self._open)]

    def rows(self, since: int) -> tuple[int, bytes]:
        """The version, and rows of all trials that changed after an earlier one."""
        version = self.refresh()
        with self._lock:
            changed = [kept.row for kept in self._kept if kept.changed > since]
        return version, joined(
            [
                ("version", to_json(version)),
                ("columns", to_json(COLUMNS)),
                ("rows", listed(changed)),
            ]
        )

    def curves(self, numbers: Collection[int]) -> dict[int, tuple[ReadingRecord, ...]]:
        """Readings by number of the trial, of those that there are."""
        self.refresh()
        with self._lock:
            steps = {number: self._kept[number].trial.steps for number in numbers if number < len(self._kept)}
            missing = [number for number, step in steps.items() if self._curves.get(number, (-1,))[0] != step]
        if len(missing) > _ONE_BY_ONE:
            self._curves |= {
                number: (readings[-1].step, tuple(readings))
                for number, readings in self.ledger.readings_by_trial(self.record.id).items()
            }
        for number in missing if len(missing) <= _ONE_BY_ONE else ():
            self._curves[number] = (steps[number], tuple(self.ledger.readings(self.record.id, number)))
        return {number: self._curves.get(number, (0, ()))[1] for number in steps}

    def ranking(self, *, wait: bool = False) -> CachedResult[_Board] | None:
        """The newest ranking; None before there is one, unless it is to be waited for."""
        version = self.read_all() if wait else self.refresh()
        if not self._is_whole:
            return self._board.found
        ask = self._board.now if wait else self._board.ask
        return ask(version, lambda: self._ranked(self.trials))

    def _ranked(self, trials: Sequence[TrialRecord]) -> _Board:
        ranking = ranking_of(self.ledger, self.record, trials)
        estimates = {} if ranking.estimates is None else ranking.estimates.of
        lead: Lead | None = None if ranking.estimates is None else ranking.estimates.lead
        said = verdict(ranking, self.record.metric) if self.record.kind is StudyKind.SEARCH else ""
        shown = {
            "order": [trial.number for trial in ranking.trials],
            "estimates": [
                [trial.number, one.mean, one.reach]
                for trial in _estimated(ranking, trials)
                if (one := estimates.get(trial.number)) is not None
            ],
            "seeds": {number: count for number, count in ranking.seeds.items() if count > 1},
            "lead": lead,
            "verdict": said,
        }
        return _Board(ranking=ranking, encoded=to_json(shown))

    def view(
        self, name: str, work: Callable[[], object], *, state: Hashable = None, wait: bool = False
    ) -> CachedResult[object] | None:
        """The newest result of a view; see `Background`.

        Args:
            state: Of what else it is about beside the study.
        """
        version = self.read_all() if wait else self.refresh()
        with self._lock:
            view = self._views.setdefault(name, Background(self.executor, REFUSALS))
        if not self._is_whole:
            return view.found
        return (view.now if wait else view.ask)((version, state), work)

    def news(self) -> dict[str, int]:
        """What has become new, as numbers that grow: of the trials, the ranking, the views."""
        version = self.refresh()
        with self._lock:
            views = sum(view.found.times for view in self._views.values() if view.found is not None)
        board = self._board.found
        return {"version": version, "ranked": 0 if board is None else board.times, "views": views}


def _estimated(ranking: Ranking, trials: Sequence[TrialRecord]) -> Iterator[TrialRecord]:
    """Those whose estimates are shown: a model is not asked about the thousands that nobody gets to."""
    yield from (trial for trial in trials if not trial.state.is_terminal)
    for place, trial in enumerate(ranking.trials):
        if place < _ESTIMATED or trial.state is TrialState.COMPLETE:
            yield trial


def _encoded(trial: TrialRecord) -> bytes:
    """A trial as a row of JSON: what tables, filters and plots of all trials need of it."""
    row: list[object] = [getattr(trial, name) for name in _PLAIN]
    row.append(None if trial.ended_at is None else round(trial.ended_at.timestamp()))
    for site in (trial.attention, trial.ffn):
        row += [None] * len(_SITE) if site is None else [getattr(site, name) for name in _SITE]
    return to_json(row)
