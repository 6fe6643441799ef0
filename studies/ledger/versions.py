"""The version of a database's tables, which is stamped in a table of our own: other programs that use it have theirs.

An empty database gets today's tables and their version at once; one of another version is refused. To change a table
is to set `NEWEST`, and to bring databases of the version before up to date here.
"""

from sqlalchemy import Connection, insert, inspect, select, text

from studies.errors import SchemaVersionError, StorageError, StorageUrlError
from studies.ledger.database import Database
from studies.ledger.tables import METADATA, VERSIONS
from studies.ledger.views import VIEWS, create_views

NEWEST = "0001"
"""The version of today's tables."""

# Any constant: two processes that create the same database take turns.
_ADVISORY_LOCK = 0x64656C7461


def prepare(database: Database, *, may_create: bool) -> None:
    """See that the tables are there and of today's version.

    Raises:
        StorageError: If there are none and they may not be created, or another program's have the same names.
        SchemaVersionError: If they are of another version.
    """
    shown = database.address.shown
    found = database.look(version_of)
    if found == NEWEST:
        return
    if found is None and may_create:
        with database.once(writes=True) as link:
            _create(link, shown)
    elif found is None:
        raise StorageUrlError(f"no studies in {shown}; launch a study first.")
    else:
        raise SchemaVersionError(
            f"the tables of {shown} must be of version {NEWEST}; got version {found}. Use the release that made them."
        )


def version_of(connection: Connection) -> str | None:
    """The version of the database's tables; None when it has none of ours."""
    if not inspect(connection).has_table(VERSIONS.name):
        return None
    return ", ".join(str(version) for version in connection.execute(select(VERSIONS.c.version_num)).scalars()) or "none"


def _create(connection: Connection, shown: str) -> None:
    """Create today's tables, unless another process has."""
    if connection.dialect.name == "postgresql":  # SQLite's own lock is held already
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    if version_of(connection) is not None:
        return
    seen = inspect(connection)
    ours = {*METADATA.tables, *(view.name for view in VIEWS)}
    taken = sorted({*seen.get_table_names(), *seen.get_view_names()} & ours)
    if taken:  # Optuna, for one, has tables of the same names
        raise StorageError(
            f"{shown} must be empty or hold studies of deltaspace; it holds tables of another program "
            f"({', '.join(taken)}). Give deltaspace a database of its own."
        )
    METADATA.create_all(connection, checkfirst=False)
    create_views(connection)
    connection.execute(insert(VERSIONS), {"version_num": NEWEST})
