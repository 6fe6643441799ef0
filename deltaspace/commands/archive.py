"""``deltaspace archive``."""

from pathlib import Path

import click

from deltaspace.commands.completion import study_names
from deltaspace.commands.options import ask, examples, say, storage_option, yes_option


@click.command("archive", epilog=examples("deltaspace archive docstrings old/docstrings"))
@click.argument("study", shell_complete=study_names)
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@yes_option
@storage_option
def command(study: str, folder: Path, yes: bool, storage: str) -> int:
    """Move a study to a new folder: its records, its confirmations, its files.

    FOLDER gets a database of its own with the files beside it, and can be moved. Every command reads it with
    --storage, and 'merge' takes its records back. A study that a launch runs is not moved.
    """
    from studies.housekeeping import ARCHIVE, archive_study
    from studies.store.ledger import Ledger

    with Ledger.open(storage, create=False) as ledger:
        ledger.study(study)
        ask(f"Move {study} out of {ledger.url} to {folder}?", yes=yes)
        removal = archive_study(ledger, study, folder)
    for line in removal.left:
        say(line, err=True)
    say(f"archived: {', '.join(removal.studies)}; see --storage sqlite:///{folder / ARCHIVE}.", err=True)
    return 1 if removal.left else 0
