"""When trials ran, and on which worker."""

from datetime import UTC, datetime

from dashboards.web.pages.page import Page, PageRequest


def _timeline(asked: PageRequest) -> object:
    """Every attempt, in the order in which they began; the incarnations of a worker are one."""
    study = asked.study
    study.refresh()
    attempts = sorted(study.ledger.attempts(study.record.id), key=lambda one: (one.started_at, one.trial))
    columns = ("trial", "attempt", "worker", "started_at", "ended_at", "ending")
    rows = [
        [one.trial, one.attempt, one.worker.partition("/")[0], one.started_at, one.ended_at, one.ending]
        for one in attempts
    ]
    return {"now": datetime.now(UTC), "columns": columns, "rows": rows}


PAGE = Page(name="timeline", title="Timeline", answers={"timeline.json": _timeline})
