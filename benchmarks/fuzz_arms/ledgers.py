"""A ledger that the tests have."""

from pathlib import Path

from support.earlier_ledger import Earlier

_WITH_ALL = 3
"""The version of a ledger with a study that was killed, a finished one and its confirmation, and replicates."""


def earlier_ledger(folder: Path) -> Path:
    """A database of this release's tables that an earlier one has written."""
    earlier = Earlier(folder, _WITH_ALL)
    earlier.migrate()
    return earlier.file
