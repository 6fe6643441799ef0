"""``deltaspace describe``."""

import click

from deltaspace.commands.help import examples
from deltaspace.commands.options import json_option, set_option, storage_option


@click.command(
    "describe",
    epilog=examples(
        "deltaspace describe mam_adapter --backbone roberta-base --set r=512",
        "deltaspace describe docstrings 17",
    ),
)
@click.argument("target", metavar="METHOD|STUDY")
@click.argument("number", type=click.IntRange(min=0), required=False)
@click.option(
    "--backbone",
    metavar="NAME|FOLDER",
    help="Its config.json is read, no weights.  [default: embedded for a method, the study's own for a trial]",
)
@set_option("Hyper-parameter of the method by name or letter; repeatable.")
@storage_option
@json_option
def command(
    target: str, number: int | None, backbone: str | None, settings: tuple[str, ...], storage: str, as_json: bool
) -> None:
    """Describe a published method or a trial: formula, dimensions, counts, nearest methods.

    With a NUMBER the first argument is a study, else a published method.
    """
    from dashboards.terminal.configurations import configuration_renderable, view_configuration
    from deltaspace.commands.backbones import parse_settings, shape_named
    from deltaspace.commands.output import echo_json, show
    from search_space.codec import configuration_from_json
    from search_space.published import published_method
    from studies.store.ledger import Ledger

    if number is None:
        method = published_method(target)
        shape = shape_named(backbone or "embedded")
        configuration = method.configuration(shape, parse_settings(settings))
        title, subtitle = method.title, method.citation
    else:
        if settings:
            raise click.UsageError("--set is for published methods; a trial is as it was recorded.")
        with Ledger.open(storage, create=False, read_only=True) as ledger:
            study = ledger.study(target)
            trial = ledger.trial(study.id, number)
        shape = shape_named(backbone or study.backbone)
        configuration = configuration_from_json(trial.configuration)
        title = f"trial {number} of {target}"
        subtitle = f"{trial.method or 'discovered'}, {trial.state.value}"
    view = view_configuration(configuration, shape)
    if not as_json:
        show(configuration_renderable(view, title=title, subtitle=subtitle))
        return
    nearest = [{"method": one.method.name, "differences": one.differences} for one in view.nearest]
    fields = ("sentence", "attention", "ffn", "edits", "counts", "backbone_parameters")
    echo_json({"title": title, **{name: getattr(view, name) for name in fields}, "nearest": nearest})
