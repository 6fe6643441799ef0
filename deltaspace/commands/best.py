"""``deltaspace best``."""

import click

from deltaspace.commands.completion import study_names
from deltaspace.commands.options import examples, json_option, size_option, storage_option


@click.command(
    "best",
    epilog=examples(
        "deltaspace best docstrings",
        "deltaspace best docstrings --size 0.1%",
        "deltaspace best docstrings --json",
    ),
)
@click.argument("study", shell_complete=study_names)
@size_option
@storage_option
@json_option
def command(study: str, size: str | None, storage: str, as_json: bool) -> None:
    """Show the best trial of a study: the complete one that is expected to score most.

    Of a study that wants few parameters or extra FLOPs, too, that is the largest of its front; with --size it is the
    best of those that are small enough.
    """
    from dashboards.terminal.tables import trial_renderable
    from deltaspace.commands.output import echo_json, show
    from studies.study import Study

    opened = Study.open(study, storage)
    page = (opened.best if size is None else opened.best_within(size)).page
    if as_json:
        echo_json(page)
    else:
        show(trial_renderable(page))
