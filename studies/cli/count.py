"""``deltaspace count``."""

import click

from studies.cli.help import examples
from studies.cli.options import backbone_option, json_option, set_option

__all__ = ["command"]


@click.command(
    "count",
    epilog=examples(
        "deltaspace count mam_adapter --backbone roberta-base --set l=30 --set r=512",
        "deltaspace count lora_qv --backbone ./my-backbone --set r=16 --json",
    ),
)
@click.argument("method")
@backbone_option
@set_option("Hyper-parameter of the method by name or letter; repeatable. 'deltaspace methods' lists them.")
@json_option
def command(method: str, backbone: str, settings: tuple[str, ...], as_json: bool) -> None:
    """Count the parameters of a published method on a backbone.

    Stored: what must be kept after training, which the budget binds. Trained: with what is dropped afterwards.
    Weights only: matrices, the accounting of He et al. 2022. The task head is not counted.
    """
    from rich.console import Group
    from rich.text import Text

    from dashboards.configurations import counts_table
    from search_space.counting import count
    from search_space.published import published_method
    from studies.cli.backbones import parse_settings, shape_named
    from studies.cli.output import echo_json, jsonable, show

    published = published_method(method)
    values = parse_settings(settings)
    shape = shape_named(backbone)
    counts = count(published.configuration(shape, values), shape)
    by_alias = {one.alias: one.name for one in published.hyperparameters}
    used = {one.name: one.default for one in published.hyperparameters}
    used |= {by_alias.get(key, key): value for key, value in values.items()}
    if as_json:
        echo_json(
            {
                "method": published.name,
                "backbone": backbone,
                "family": shape.family,
                "settings": used,
                **dict(jsonable(counts)),  # type: ignore[call-overload]
                "backbone_parameters": shape.parameters,
                "percent": 100 * counts.stored / shape.parameters,
            }
        )
        return
    shown = ", ".join(f"{name}={value:g}" for name, value in used.items() if value is not None)
    head = f"{published.title} ({shown or 'nothing to set'}) on {backbone}, {shape.parameters:,} parameters"
    show(Group(Text(head, "bold"), Text(), counts_table(counts, shape.parameters)))
