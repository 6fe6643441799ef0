"""A study as it runs: how far it is, who trains what, what was pruned and why, what happened."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from dashboards.web.cache.study import WatchedStudy
from dashboards.web.pages.page import Page, PageRequest, number_in, study_facts
from studies.errors import StudiesError
from studies.records import AttemptRecord, Reading, StudyKind, TrialOutline, TrialState
from studies.study_file.recorded_specification import recorded_specification

_MOST_CURVES = 100
_MOST_EVENTS = 100
_MOST_RUNNING = 64
_PACE = 20
"""Endings that say how fast a study is."""


def _names(study: WatchedStudy) -> dict[int, str]:
    """Names of the studies by their keys, where one is asked for."""
    return {one.id: one.name for one in study.ledger.studies()} if study.record.parent_id is not None else {}


def _rungs(study: WatchedStudy) -> list[int]:
    """Steps at which trials are measured; the last is a whole training."""
    if study.record.kind is not StudyKind.SEARCH:
        return []
    try:
        return list(recorded_specification(study.record).rung_steps)
    except StudiesError:
        return []


def _trials(asked: PageRequest) -> object:
    """All trials, or those that changed since a version; with the ranking unless it is known."""
    study, given = asked.study, asked.given
    is_known = given.get("session") == asked.storage.session
    found = study.ranking(waits=asked.waits)
    answer = {
        "session": asked.storage.session,
        "study": {**study_facts(study.record, _names(study)), "rungs": _rungs(study), "seed": study.record.seed},
        "trials": study.rows(number_in(given.get("since")) or 0 if is_known else 0),
        "ranked": found.times if found is not None else 0,
        "annotations": [{"trial": number, **asdict(one)} for number, one in study.annotations().items()],
    }
    if found is not None and found.value is not None and not (is_known and given.get("ranked") == str(found.times)):
        answer["ranking"] = found.value
    return answer


def _news(asked: PageRequest) -> object:
    return asked.study.news()


def _live(asked: PageRequest) -> object:
    study = asked.study
    study.refresh()
    trials = study.trials
    running = [trial for trial in trials if trial.state is TrialState.RUNNING]
    key, ledger = study.record.id, study.ledger
    attempts = [one for trial in running[:_MOST_RUNNING] for one in ledger.attempts(key, trial.number)[-1:]]
    events = ledger.events(key)
    now = datetime.now(UTC)
    return {
        "now": now,
        "counts": study.counts,
        "running": [
            {"number": one.trial, "worker": one.worker, "attempt": one.attempt, "started_at": one.started_at}
            for one in attempts
        ],
        "workers": _workers(attempts, now),
        "pace": _pace(trials),
        "events": [
            {"at": event.at, "kind": event.kind, "trial": event.trial, "text": event.text}
            for event in events[-_MOST_EVENTS:]
        ],
    }


def _workers(attempts: Sequence[AttemptRecord], now: datetime) -> list[dict[str, object]]:
    """Every worker that holds trials, and how long its leases last."""
    held = Counter(one.worker for one in attempts)
    lasts = {one.worker: one.lease_expires_at for one in attempts}
    return [
        {"worker": worker, "trials": count, "lease_seconds": (lasts[worker] - now).total_seconds()}
        for worker, count in sorted(held.items())
    ]


def _pace(trials: Sequence[TrialOutline]) -> float | None:
    """Seconds from one ending to the next, of the last ones; None before there are three."""
    ended = sorted(trial.ended_at for trial in trials if trial.ended_at is not None)[-_PACE:]
    return (ended[-1] - ended[0]).total_seconds() / (len(ended) - 1) if len(ended) > 2 else None


def curve(readings: Sequence[Reading]) -> dict[str, object]:
    """Readings of a trial as columns."""
    return {
        "steps": [one.step for one in readings],
        "scores": [one.score for one in readings],
        "losses": [one.train_loss for one in readings],
        "rungs": [one.rung for one in readings],
    }


def _curves(asked: PageRequest) -> object:
    """Curves of the trials that are asked for, at most a hundred; of all for an export."""
    study = asked.study
    if asked.waits:
        numbers = [trial.number for trial in study.trials]
    else:
        given = map(number_in, asked.given.get("trials", "").split(","))
        numbers = [number for number in given if number is not None][:_MOST_CURVES]
    return {number: curve(readings) for number, readings in study.curves(numbers).items()}


PAGE = Page(
    name="live",
    title="Overview",
    answers={"trials.json": _trials, "news.json": _news, "live.json": _live, "curves.json": _curves},
)
