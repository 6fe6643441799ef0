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
    from studies.study import Study

    page = Study.open(study, storage).best.page
    if as_json:
        echo_json(page)
    else:
        show(trial_renderable(page))
