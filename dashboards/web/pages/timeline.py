"""Trials over time, by worker."""

from datetime import UTC, datetime

from dashboards.web.pages.page import Page, PageRequest


def _timeline(request: PageRequest) -> object:
    """Return all attempts, oldest first; a worker keeps its name when its process restarts."""
    study = request.study
    study.refresh()
    attempts = sorted(study.ledger.attempts(study.record.id), key=lambda one: (one.started_at, one.trial))
    columns = ("trial", "attempt", "worker", "started_at", "ended_at", "ending")
    rows = [
        [one.trial, one.attempt, one.worker.partition("/")[0], one.started_at, one.ended_at, one.ending]
        for one in attempts
    ]
    return {"now": datetime.now(UTC), "columns": columns, "rows": rows}


PAGE = Page(name="timeline", title="Timeline", answers={"timeline.json": _timeline})
