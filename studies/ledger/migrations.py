"""The version of a database's tables is an Alembic revision.

An empty database gets today's tables and the stamp of the newest revision at once. One that an earlier release made is
backed up, and the revisions that it lacks are applied, in one transaction; any other is refused. To change a table:
change the mapping, add a revision that does so with ``op.batch_alter_table``, and set `NEWEST`. Views and triggers are
made anew after the revisions.

The stamp is in a table of our own, because other programs that use the same database have theirs.
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
"""The revision of today's tables."""

# Any constant: two processes that create the same database take turns.
_ADVISORY_LOCK = 0x64656C7461


def prepare(database: Database, *, may_create: bool) -> None:
    """See that the tables are there and of today's version.

    Raises:
        StorageError: If there are none and they may not be created, or another program's have the same names.
        SchemaVersionError: If they are of another version and may not be upgraded.
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
    elif may_create and found in _earlier(config()):
        upgrade(database.address, config())
    else:
        raise SchemaVersionError(
            f"the tables of {shown} must be of version {NEWEST}; got version {found}. Use the release that made them."
        )


def version_of(connection: Connection) -> str | None:
    """The version of the database's tables; None when it has none of ours."""
    if not inspect(connection).has_table(VERSIONS.name):
        return None
    return ", ".join(str(version) for version in connection.execute(select(VERSIONS.c.version_num)).scalars()) or "none"


def config() -> "Config":
    """What Alembic needs to know; revisions of other folders may be added to it."""
    from alembic.config import Config

    made, folder = Config(), Path(__file__).parent / "revisions"
    made.set_main_option("script_location", str(folder).replace("%", "%%"))
    made.set_main_option("path_separator", "newline")
    made.set_main_option("version_locations", str(folder / "versions").replace("%", "%%"))
    return made


def upgrade(address: StorageAddress, revisions: "Config") -> None:
    """Back a database up beside itself and apply all revisions that it lacks: all of it or nothing.

    The backup of a file is ``FILE.VERSION.bak``, that of a server's tables the schema ``before_VERSION``.

    Raises:
        StorageError: If the database refuses.
    """
    from alembic import command

    engine = open_engine(address, Access.WRITE)
    if address.file is not None:  # a table that is made anew is referred to meanwhile
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
    """The versions that can be brought up to date."""
    from alembic.script import ScriptDirectory

    return {one.revision for one in ScriptDirectory.from_config(revisions).walk_revisions()} - {NEWEST}


def _take_turns(connection: Connection) -> None:
    """Wait for other processes that change the tables; SQLite's own lock is held already."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})


def _create(connection: Connection, shown: str) -> None:
    """Create today's tables, unless another process has."""
    _take_turns(connection)
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


def _back_up(connection: Connection, address: StorageAddress, version: str) -> None:
    """Copy the tables as they are."""
    if address.file is not None:
        copy = address.file.with_name(f"{address.file.name}.{version}.bak")
        with closing(sqlite3.connect(address.file)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        return
    connection.execute(text(f"CREATE SCHEMA before_{version}"))
    for table in inspect(connection).get_table_names():
        connection.execute(text(f"CREATE TABLE before_{version}.{table} AS TABLE {table}"))
