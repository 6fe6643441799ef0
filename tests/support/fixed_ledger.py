"""A small ledger that never changes: two searches and a confirmation, with replicates and examples."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import insert, select

from studies.ledger.engine import Access, StorageAddress, open_engine
from studies.ledger.ledger import Ledger
from studies.ledger.tables import METADATA, VERSIONS

SCRIPT = Path(__file__).parents[1] / "data" / "ledger.sql"


def fixed_ledger(url: str, folder: Path) -> None:
    """Put it into a storage that does not exist yet (SQLite) or is empty (PostgreSQL)."""
    is_file = url.startswith("sqlite")
    file = Path(url.removeprefix("sqlite:///")) if is_file else folder / "fixed.db"
    Ledger.open(f"sqlite:///{file}").close()
    with closing(sqlite3.connect(file)) as link:
        link.executescript(SCRIPT.read_text())
    if is_file:
        return
    Ledger.open(url).close()
    source, target = (open_engine(StorageAddress.parse(one), Access.WRITE) for one in (f"sqlite:///{file}", url))
    with source.connect() as reading, target.begin() as writing:
        for table in METADATA.sorted_tables:
            rows = [dict(row._mapping) for row in reading.execute(select(table))]
            if rows and table is not VERSIONS:
                writing.execute(insert(table), rows)
    source.dispose()
    target.dispose()
