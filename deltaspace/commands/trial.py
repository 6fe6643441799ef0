"""``deltaspace trial``."""

from typing import Literal

import click

from deltaspace.commands.completion import study_names
from deltaspace.commands.options import TRIAL, TrialNumber, examples, json_option, storage_option


@click.command(
    "trial",
    epilog=examples(
        "deltaspace trial docstrings 17", "deltaspace trial docstrings best", "deltaspace trial docstrings 17 --json"
    ),
)
@click.argument("study", shell_complete=study_names)
@click.argument("number", metavar=TRIAL, type=TrialNumber())
@storage_option
@json_option
def command(study: str, number: int | Literal["best"], storage: str, as_json: bool) -> None:
    """Show one trial of a study.

    What it is, its four dimensions, its measurements, attempts and files.
    """
    from dashboards.terminal.tables import trial_renderable
    from deltaspace.commands.output import echo_json, show
    from studies.study import Study

    page = Study.open(study, storage).trial(number).page
    if as_json:
        echo_json(page)
    else:
        show(trial_renderable(page))
