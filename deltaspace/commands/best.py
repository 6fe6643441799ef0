"""``deltaspace best``."""

import click

from deltaspace.commands.help import examples
from deltaspace.commands.options import json_option, storage_option


@click.command("best", epilog=examples("deltaspace best docstrings", "deltaspace best docstrings --json"))
@click.argument("study")
@storage_option
@json_option
def command(study: str, storage: str, as_json: bool) -> None:
    """Show the best trial of a study."""
    from dashboards.terminal.tables import trial_renderable
    from deltaspace.commands.output import echo_json, show
    from studies.errors import StudiesError
    from studies.queries.readings import trial_page
    from studies.queries.summaries import study_summary
    from studies.store.ledger import Ledger

    with Ledger.open(storage, create=False, read_only=True) as ledger:
        summary = study_summary(ledger, study)
        if summary.best is None:
            raise StudiesError(
                f"study {study!r} must have a complete trial; got none among {summary.trials}. Launch it again."
            )
        page = trial_page(ledger, study, summary.best.number)
    if as_json:
        echo_json(page)
    else:
        show(trial_renderable(page))
