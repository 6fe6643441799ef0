"""Broken invariants of a study in its ledger."""

from collections.abc import Sequence
from datetime import datetime

from studies.consistency import record_violations
from studies.ledger.invariants import Records, database_violations
from studies.ledger.ledger import Ledger


def violations(
    ledger: Ledger, study_id: int, *, rung_steps: Sequence[int] | None = None, now: datetime | None = None
) -> list[str]:
    """Return every broken invariant of a study; see `record_violations`."""
    records = ledger.read(lambda link: Records.of(link, study_id))
    return [*ledger.read(database_violations), *record_violations(records, rung_steps=rung_steps, now=now)]
