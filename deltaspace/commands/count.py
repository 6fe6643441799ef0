"""``deltaspace count``."""

import click

from deltaspace.commands.completion import method_names
from deltaspace.commands.options import backbone_option, examples, json_option, parse_settings, set_option


@click.command(
    "count",
    epilog=examples(
        "deltaspace count mam_adapter --backbone roberta-base --set l=30 --set r=512",
        "deltaspace count parallel_adapter_ffn --backbone roberta-base --set r=64 --set read=res_f",
        "deltaspace count lora_qv --backbone ./my-backbone --set r=16 --json",
    ),
)
@click.argument("method", shell_complete=method_names)
@backbone_option
@set_option("Hyper-parameter of the method by name or letter; repeatable. 'deltaspace methods' lists them.")
@json_option
def command(method: str, backbone: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Count the parameters of a published method on a backbone.

    Stored: what must be kept after training, which the budget binds. Trained: with what is dropped afterwards.
    Weights only: matrices, the accounting of He et al. 2022. Below them every other convention that papers and
    released codes count the method by. The task head is not counted unless a convention says so.
    """
    from dataclasses import asdict

    from dashboards.terminal.configurations import count_renderable, view_count
    from deltaspace.commands.output import echo_json, show
    from deltaspace.descriptions import shape_of
    from search_space.published.point import PublishedPoint

    point = PublishedPoint(method)
    published, values = point.method, {**point.settings, **parse_settings(settings)}
    shape = shape_of(backbone)
    view = view_count(published, shape, values)
    if not as_json:
        show(count_renderable(view, backbone=backbone))
        return
    echo_json(
        {
            "method": published.name,
            "backbone": backbone,
            "family": shape.family,
            "settings": view.settings,
            **asdict(view.counts),
            "backbone_parameters": shape.parameters,
            "percent": 100 * view.counts.stored / shape.parameters,
            "conventions": view.conventions,
            "percentages": {name: 100 * number / shape.parameters for name, number in view.conventions.items()},
            "meanings": view.meanings,
            "invalid": view.invalid,
        }
    )
