"""``deltaspace trial``."""

import click

from deltaspace.commands.help import examples
from deltaspace.commands.options import json_option, storage_option


@click.command("trial", epilog=examples("deltaspace trial docstrings 17", "deltaspace trial docstrings 17 --json"))
@click.argument("study")
@click.argument("number", type=click.IntRange(min=0))
@storage_option
@json_option
def command(study: str, number: int, storage: str, as_json: bool) -> None:
    """Show one trial of a study.

    What it is, its four dimensions, its measurements, attempts and files.
    """
    from dashboards.terminal.tables import trial_renderable
    from deltaspace.commands.output import echo_json, show
    from studies.queries.readings import trial_page
    from studies.store.ledger import Ledger

    with Ledger.open(storage, create=False, read_only=True) as ledger:
        page = trial_page(ledger, study, number)
    if as_json:
        echo_json(page)
    else:
        show(trial_renderable(page))
