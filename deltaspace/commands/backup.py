"""``deltaspace backup``."""

from pathlib import Path

import click

from deltaspace.commands.options import examples, say, storage_option


@click.command(
    "backup", epilog=examples("deltaspace backup monday.db", "deltaspace show docstrings --storage sqlite:///monday.db")
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@storage_option
def command(file: Path, storage: str) -> None:
    """Write all studies of a database to a new SQLite file.

    The backup is one consistent state, also while a launch writes and also of PostgreSQL. Files of trials are not
    copied; the backup knows where they lie. Do not continue both it and the database that it is of.
    """
    from studies.housekeeping import back_up
    from studies.store.ledger import Ledger

    with Ledger.open(storage, read_only=True) as ledger:
        copied = back_up(ledger, file)
        say(
            f"{file} holds what {ledger.url} holds: {len(copied)} {'study' if len(copied) == 1 else 'studies'}.",
            err=True,
        )
