"""``deltaspace delete``."""

import click

from deltaspace.commands.completion import study_names
from deltaspace.commands.options import ask, examples, say, storage_option, yes_option


@click.command("delete", epilog=examples("deltaspace delete docstrings", "deltaspace delete docstrings --yes"))
@click.argument("study", shell_complete=study_names)
@yes_option
@storage_option
def command(study: str, yes: bool, storage: str) -> int:
    """Delete a study: its records, its confirmations, its files.

    This cannot be taken back. A study that a launch runs is not deleted.
    """
    from studies.housekeeping import delete_study, family
    from studies.store.ledger import Ledger

    with Ledger.open(storage, create=False) as ledger:
        *others, _ = names = [one.name for one in family(ledger, study)]
        trials = sum(sum(ledger.state_counts(ledger.study(name).id).values()) for name in names)
        with_them = f" and {', '.join(others)}" if others else ""
        ask(f"Delete {study}{with_them}: {trials} trials and their files?", yes=yes)
        removal = delete_study(ledger, study)
    for line in removal.left:
        say(line, err=True)
    say(f"deleted: {', '.join(removal.studies)}.", err=True)
    return 1 if removal.left else 0
