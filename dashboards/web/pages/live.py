"""Overview of a study: progress, workers, pruned trials, events."""

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
"""Number of recently ended trials from which the pace is computed."""


def _names(study: WatchedStudy) -> dict[int, str]:
    """Return the names of the studies by key, if this one confirms another."""
    return {one.id: one.name for one in study.ledger.studies()} if study.record.parent_id is not None else {}


def _rungs(study: WatchedStudy) -> list[int]:
    """Return the steps of the rungs; the last is a full training."""
    if study.record.kind is not StudyKind.SEARCH:
        return []
    try:
        return list(recorded_specification(study.record).rung_steps)
    except StudiesError:
        return []


def _trials(request: PageRequest) -> object:
    """Return all trials, or those that changed since a version; with the ranking if the client lacks it."""
    study, given = request.study, request.given
    is_known = given.get("session") == request.storage.session
    found = study.ranking(waits=request.waits)
    answer = {
        "session": request.storage.session,
        "study": {
            **study_facts(study.record, _names(study)),
            "rungs": _rungs(study),
            "seed": study.record.seed,
            "objectives": study.record.section("search").get("objectives") or [],
        },
        "trials": study.rows(number_in(given.get("since")) or 0 if is_known else 0),
        "ranked": found.number if found is not None else 0,
    }
    answer["said"] = study.news()["said"]
    if not (is_known and given.get("said") == str(answer["said"])):
        answer["annotations"] = [{"trial": number, **asdict(one)} for number, one in study.annotations().items()]
    if found is not None and found.value is not None and not (is_known and given.get("ranked") == str(found.number)):
        answer["ranking"] = found.value
    return answer


def _news(request: PageRequest) -> object:
    return request.study.news()


def _live(request: PageRequest) -> object:
    study = request.study
    study.refresh()
    trials = study.trials
    running = [trial for trial in trials if trial.state is TrialState.RUNNING]
    key, ledger = study.record.id, study.ledger
    attempts = [one for trial in running[:_MOST_RUNNING] for one in ledger.attempts(key, trial.number)[-1:]]
    events = ledger.events(key, newest=_MOST_EVENTS)
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
        "events": [{"at": event.at, "kind": event.kind, "trial": event.trial, "text": event.text} for event in events],
    }


def _workers(attempts: Sequence[AttemptRecord], now: datetime) -> list[dict[str, object]]:
    """Return every worker that holds trials, with the remaining seconds of its leases."""
    held = Counter(one.worker for one in attempts)
    lasts = {one.worker: one.lease_expires_at for one in attempts}
    return [
        {"worker": worker, "trials": count, "lease_seconds": (lasts[worker] - now).total_seconds()}
        for worker, count in sorted(held.items())
    ]


def _pace(trials: Sequence[TrialOutline]) -> float | None:
    """Return the mean seconds between the last ended trials; None for fewer than three."""
    ended = sorted(trial.ended_at for trial in trials if trial.ended_at is not None)[-_PACE:]
    return (ended[-1] - ended[0]).total_seconds() / (len(ended) - 1) if len(ended) > 2 else None


def curve(readings: Sequence[Reading]) -> dict[str, object]:
    """Return the readings of a trial as columns."""
    return {
        "steps": [one.step for one in readings],
        "scores": [one.score for one in readings],
        "losses": [one.train_loss for one in readings],
        "rungs": [one.rung for one in readings],
    }


def _curves(request: PageRequest) -> object:
    """Return the curves of the requested trials, at most a hundred; of all trials for an export."""
    study = request.study
    if request.waits:
        numbers = [trial.number for trial in study.trials]
    else:
        given = map(number_in, request.given.get("trials", "").split(","))
        numbers = [number for number in given if number is not None][:_MOST_CURVES]
    return {number: curve(readings) for number, readings in study.curves(numbers).items()}


PAGE = Page(
    name="live",
    title="Overview",
    answers={"trials.json": _trials, "news.json": _news, "live.json": _live, "curves.json": _curves},
)
