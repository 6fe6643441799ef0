"""A ledger that the tests have."""

import sqlite3
from contextlib import closing
from pathlib import Path

from studies.store.ledger import Ledger

_SCRIPT = Path(__file__).parents[2] / "tests" / "data" / "ledgers" / "version_3" / "ledger.sql"


def earlier_ledger(folder: Path) -> Path:
    """A database with a study that was killed, a finished one and its confirmation, of this release's tables."""
    file = folder / "ledger.db"
    with closing(sqlite3.connect(file)) as link:
        link.executescript(_SCRIPT.read_text().replace("@ARTEFACTS@", str(folder)))
    Ledger.open(f"sqlite:///{file}").close()
    return file
