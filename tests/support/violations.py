"""Broken invariants of a study in its ledger."""

from collections.abc import Sequence
from datetime import datetime

from studies.ledger.invariants import Records, record_violations
from studies.ledger.ledger import Ledger


def violations(
    ledger: Ledger, study_id: int, *, rung_steps: Sequence[int] | None = None, now: datetime | None = None
) -> list[str]:
    """Return every broken invariant of a study; see `record_violations`."""
    return record_violations(ledger.read(lambda link: Records.of(link, study_id)), rung_steps=rung_steps, now=now)
