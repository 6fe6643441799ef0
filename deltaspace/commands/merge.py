"""``deltaspace merge``."""

import click

from deltaspace.commands.options import examples, say, storage_option


@click.command(
    "merge",
    epilog=examples(
        "deltaspace merge sqlite:///laptop.db",
        "deltaspace merge sqlite:///old/deltaspace.db --storage postgresql://me@host/studies",
    ),
)
@click.argument("other", metavar="URL")
@storage_option
def command(other: str, storage: str) -> None:
    """Take the studies of another database into this one.

    The other stays as it is, and the files of its studies where they are. A study that is here already is left out;
    one whose name is another's gets a name with a number.
    """
    from studies.housekeeping import merge
    from studies.store.ledger import Ledger

    Ledger.open(other, read_only=True).close()  # nothing is created here for one that is none
    with Ledger.open(storage) as ledger:
        for one in merge(ledger, other):
            if not one.is_new:
                say(f"{one.study.name}: left out; it is here already as {one.name}.", err=True)
            elif one.name != one.study.name:
                say(f"{one.study.name}: taken as {one.name}; another study has its name.", err=True)
            else:
                say(f"{one.name}: taken.", err=True)
