"""``deltaspace studies``."""

import click

from deltaspace.commands.help import examples
from deltaspace.commands.options import json_option, storage_option


@click.command(
    "studies", epilog=examples("deltaspace studies", "deltaspace studies --storage sqlite:///other.db --json")
)
@storage_option
@json_option
def command(storage: str, as_json: bool) -> None:
    """List the studies of a storage.

    The best is the highest score that a complete trial had; 'show' has what it is expected to score if trained again.
    """
    from dashboards.terminal.tables import studies_table
    from deltaspace.commands.output import echo_json, show
    from studies.queries.summaries import study_summaries
    from studies.store.ledger import Ledger

    with Ledger.open(storage, read_only=True) as ledger:
        summaries = study_summaries(ledger)
    if as_json:
        echo_json(summaries)
    else:
        show(studies_table(summaries))
