"""``deltaspace rename``."""

import click

from deltaspace.commands.completion import study_names
from deltaspace.commands.options import examples, say, storage_option


@click.command("rename", epilog=examples("deltaspace rename docstrings docstrings-half-percent"))
@click.argument("study", shell_complete=study_names)
@click.argument("name", metavar="NEW-NAME")
@storage_option
def command(study: str, name: str, storage: str) -> None:
    """Give a study another name.

    Its folder is renamed with it. The study file that continues it needs the new name too. A study that a launch runs
    keeps its name.
    """
    from studies.housekeeping import rename_study
    from studies.store.ledger import Ledger

    with Ledger.open(storage, create=False) as ledger:
        renamed = rename_study(ledger, study, name)
    where = "" if renamed.folder is None else f" Its files are in {renamed.folder}."
    say(f"{study} is {name} now.{where} To continue it, set 'name: {name}' in its study file.", err=True)
