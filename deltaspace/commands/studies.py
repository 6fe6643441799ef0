"""``deltaspace studies``."""

import click

from deltaspace.commands.options import examples, json_option, storage_option, table_options


@click.command(
    "studies", epilog=examples("deltaspace studies", "deltaspace studies --storage sqlite:///other.db --json")
)
@table_options
@storage_option
@json_option
def command(columns: str | None, fmt: str | None, storage: str, as_json: bool) -> None:
    """List the studies of a storage.

    The best trial is that of 'show', by what it is expected to score if trained again, with the score it had. What a
    confirmation found is printed by 'show'.
    """
    from dashboards.terminal.tables import studies_table
    from deltaspace.commands.output import echo_json, show, show_table
    from studies.analysis.summaries import study_summaries, summaries_table
    from studies.ledger.ledger import Ledger

    with Ledger.open(storage, read_only=True) as ledger:
        summaries = study_summaries(ledger)
    if columns is not None or fmt is not None:
        show_table(summaries_table(summaries), columns, fmt)
    elif as_json:
        echo_json(summaries)
    else:
        show(studies_table(summaries))
