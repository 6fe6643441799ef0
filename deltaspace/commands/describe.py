"""``deltaspace describe``."""

from typing import Literal

import click

from deltaspace.commands.completion import methods_and_studies
from deltaspace.commands.options import (
    TRIAL,
    TrialNumber,
    examples,
    json_option,
    parse_settings,
    set_option,
    storage_option,
)


@click.command(
    "describe",
    epilog=examples(
        "deltaspace describe mam_adapter --backbone roberta-base --set r=512",
        "deltaspace describe docstrings 17",
        "deltaspace describe docstrings best",
    ),
)
@click.argument("target", metavar="METHOD|STUDY", shell_complete=methods_and_studies)
@click.argument("number", metavar=f"[{TRIAL}]", type=TrialNumber(), required=False)
@click.option(
    "--backbone",
    metavar="NAME|FOLDER",
    help="Its config.json is read, no weights.  [default: embedded for a method, the study's own for a trial]",
)
@set_option("Hyper-parameter of the method by name or letter; repeatable.")
@storage_option
@json_option
def command(
    target: str,
    number: int | Literal["best"] | None,
    backbone: str | None,
    settings: tuple[str, ...],
    storage: str,
    as_json: bool,
) -> None:
    """Describe a published method or a trial: formula, dimensions, counts, nearest methods.

    With a NUMBER the first argument is a study, else a published method.
    """
    from dashboards.terminal.configurations import configuration_renderable
    from deltaspace.commands.output import echo_json, show
    from deltaspace.descriptions import describe

    if number is None:
        view = describe(target, backbone, **parse_settings(settings))
    else:
        from studies.study import Study

        if settings:
            raise click.UsageError("--set is for published methods; a trial is as it was recorded.")
        view = describe(Study.open(target, storage).trial(number), backbone)
    if not as_json:
        show(configuration_renderable(view))
        return
    nearest = [{"method": one.method.name, "differences": one.differences} for one in view.nearest]
    fields = ("title", "sentence", "attention", "ffn", "edits", "counts", "backbone_parameters")
    echo_json({**{name: getattr(view, name) for name in fields}, "nearest": nearest})
