"""``deltaspace space``."""

import click

from deltaspace.commands.completion import study_files
from deltaspace.commands.options import MOST_SEED, examples, json_option, set_option


@click.command(
    "space",
    epilog=examples(
        "deltaspace space docstrings",
        "deltaspace space study.yaml --draw 5",
        "deltaspace space study.yaml --set space.sites=separate --json",
    ),
)
@click.argument("study", metavar="STUDY.yaml", shell_complete=study_files)
@click.option("--draw", metavar="N", type=click.IntRange(0, 1000), default=0, help="Sample configurations to draw.")
@click.option("--seed", metavar="N", type=click.IntRange(0, MOST_SEED), default=0, help="Of the samples.")
@set_option("Any key of the study file, such as space.sites=separate; repeatable.")
@json_option
def command(study: str, draw: int, seed: int, settings: tuple[str, ...], as_json: bool) -> None:
    """Show the search space of a study: dimensions, size, rules, sample configurations.

    STUDY.yaml is a study file or the name of a shipped example. The size counts structures exactly, after unifying
    what is the same function; sizes and learning rates are left aside. No weights are read.
    """
    from dataclasses import fields

    from dashboards.terminal.spaces import space_renderable, view_space
    from deltaspace.commands.output import echo_json, show
    from deltaspace.descriptions import shape_of
    from search_space.space.space import SearchSpace
    from studies.study_file import parse_override, specification_of

    specification = specification_of(study, dict(parse_override(setting) for setting in settings))
    shape = shape_of(specification.backbone.name)
    budget = specification.parameter_budget().parameters(shape)
    space = SearchSpace(shape=shape, budget=budget, options=specification.space_options)
    view = view_space(space, draw=draw, seed=seed)
    if as_json:
        shown = {field.name: getattr(view, field.name) for field in fields(view)}
        echo_json({"study": specification.name, "backbone": specification.backbone.as_json(), **shown})
    else:
        show(space_renderable(view, title=f"{specification.name} on {specification.backbone}"))
