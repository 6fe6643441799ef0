"""Versions of a database's tables, as Alembic revisions.

An empty database gets the current tables with the stamp of the newest revision. One of an earlier release is backed up,
and its missing revisions are applied in one transaction; any other is refused. To change a table: change the mapping,
add a revision with ``op.batch_alter_table``, and set `NEWEST`. Views and triggers are recreated after the revisions.

The stamp has a table of its own, since other programs in the same database have theirs.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, event, insert, inspect, select, text

from studies.errors import SchemaVersionError, StorageError, StorageUrlError
from studies.ledger.database import Database
from studies.ledger.engine import Access, StorageAddress, open_engine
from studies.ledger.tables import METADATA, VERSIONS, create_triggers
from studies.ledger.views import VIEWS, create_views, drop_views

if TYPE_CHECKING:
    from alembic.config import Config

NEWEST = "0001"
"""Revision of the current tables."""

# any constant, by which processes that create the same database take turns
_ADVISORY_LOCK = 0x64656C7461


def prepare(database: Database, *, may_create: bool) -> None:
    """Create or upgrade the tables if needed and permitted.

    Raises:
        StorageError: If there are none and they may not be created, or another program's have the same names.
        SchemaVersionError: If they are of another version and may not be upgraded.
    """
    shown = database.address.shown
    version = database.look(version_of)
    if version == NEWEST:
        return
    if version is None and may_create:
        with database.once(writes=True) as link:
            _create(link, shown)
    elif version is None:
        raise StorageUrlError(f"no studies in {shown}; launch a study first.")
    elif may_create and version in _earlier(config()):
        upgrade(database.address, config())
    else:
        raise SchemaVersionError(
            f"the tables of {shown} must be of version {NEWEST}; got version {version}. Use the release that made them."
        )


def version_of(connection: Connection) -> str | None:
    """Return the version of the database's tables; None without tables of this project."""
    if not inspect(connection).has_table(VERSIONS.name):
        return None
    return ", ".join(str(version) for version in connection.execute(select(VERSIONS.c.version_num)).scalars()) or "none"


def config() -> "Config":
    """Return the configuration of Alembic, to which other folders of revisions may be added."""
    from alembic.config import Config

    alembic, folder = Config(), Path(__file__).parent / "revisions"
    alembic.set_main_option("script_location", str(folder).replace("%", "%%"))
    alembic.set_main_option("path_separator", "newline")
    alembic.set_main_option("version_locations", str(folder / "versions").replace("%", "%%"))
    return alembic


def upgrade(address: StorageAddress, revisions: "Config") -> None:
    """Back up a database beside itself and apply all missing revisions atomically.

    The backup of a file is ``FILE.VERSION.bak``, that of a server's tables the schema ``before_VERSION``.

    Raises:
        StorageError: If the database refuses.
    """
    from alembic import command

    engine = open_engine(address, Access.WRITE)
    if address.file is not None:  # recreated tables are referenced meanwhile
        event.listen(engine, "connect", lambda driver, _: driver.execute("PRAGMA foreign_keys = OFF"))
    database = Database(engine, address)
    try:
        with database.once(writes=True) as link:
            _take_turns(link)
            _back_up(link, address, str(version_of(link)))
            drop_views(link)
            revisions.attributes["connection"] = link
            command.upgrade(revisions, "heads")
            if address.file is not None:
                create_triggers(link)
                broken = link.exec_driver_sql("PRAGMA foreign_key_check").all()
                if broken:
                    raise StorageError(f"the revision of {address.shown} must keep every reference; {broken[0]}.")
            create_views(link)
    finally:
        database.close()


def _earlier(revisions: "Config") -> set[str]:
    """Return the versions that can be upgraded."""
    from alembic.script import ScriptDirectory

    return {one.revision for one in ScriptDirectory.from_config(revisions).walk_revisions()} - {NEWEST}


def _take_turns(connection: Connection) -> None:
    """Wait for other processes that change the tables; SQLite has its own lock."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})


def _create(connection: Connection, shown: str) -> None:
    """Create the current tables, unless another process has."""
    _take_turns(connection)
    if version_of(connection) is not None:
        return
    inspector = inspect(connection)
    ours = {*METADATA.tables, *VIEWS}
    taken = sorted({*inspector.get_table_names(), *inspector.get_view_names()} & ours)
    if taken:  # Optuna, for one, has tables of the same names
        raise StorageError(
            f"{shown} must be empty or hold studies of deltaspace; it has tables of another program "
            f"({', '.join(taken)}). Use a separate database."
        )
    METADATA.create_all(connection, checkfirst=False)
    create_views(connection)
    connection.execute(insert(VERSIONS), {"version_num": NEWEST})


def _back_up(connection: Connection, address: StorageAddress, version: str) -> None:
    """Copy the tables unchanged."""
    if address.file is not None:
        copy = address.file.with_name(f"{address.file.name}.{version}.bak")
        with closing(sqlite3.connect(address.file)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        return
    connection.execute(text(f"CREATE SCHEMA before_{version}"))
    for table in inspect(connection).get_table_names():
        connection.execute(text(f"CREATE TABLE before_{version}.{table} AS TABLE {table}"))
