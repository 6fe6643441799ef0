"""Commands ``methods``, ``count``, ``describe`` and ``space``, which need neither a launch nor weights."""

from typing import TYPE_CHECKING, Literal

import click

from deltaspace.commands import options
from deltaspace.commands.options import command
from deltaspace.commands.output import answer
from deltaspace.commands.shell_completion import method_names, methods_and_studies, study_files

if TYPE_CHECKING:
    from dashboards.terminal.configurations import ConfigurationView, CountView, MethodView


@command("methods", "deltaspace methods", "deltaspace methods --backbone roberta-base --json")
@options.backbone_option
@options.json_option
def list_methods(backbone: str, as_json: bool) -> None:
    """List the published methods and their four dimensions.

    Functional form, modified representation, insertion form and composition function, as in He et al. 2022; with the
    citation, the hyper-parameters and their defaults. Methods that are not valid on the backbone are marked with the
    reason.
    """
    from dashboards.terminal.configurations import method_views, methods_table
    from deltaspace.descriptions import shape_of

    views = method_views(shape_of(backbone))
    answer(views, methods_table, as_json=as_json, entries=lambda views: [*map(_method_entry, views)])


def _method_entry(view: "MethodView") -> dict[str, object]:
    method = {name: getattr(view.method, name) for name in ("name", "title", "citation", "hyperparameters")}
    return {**method, "attention": view.attention, "ffn": view.ffn, "invalid": view.invalid}


@command(
    "count",
    "deltaspace count mam_adapter --backbone roberta-base --set l=30 --set r=512",
    "deltaspace count parallel_adapter_ffn --backbone roberta-base --set r=64 --set read=res_f",
    "deltaspace count lora_qv --backbone ./my-backbone --set r=16 --json",
)
@click.argument("method", shell_complete=method_names)
@options.backbone_option
@options.setting_option("Hyper-parameter of the method by name or letter; repeatable. 'deltaspace methods' lists them.")
@options.json_option
def count(method: str, backbone: str, settings: dict[str, float | str], as_json: bool) -> None:
    """Count the parameters of a published method on a backbone.

    Stored: parameters kept after training, which the budget limits. Trained: with those that are dropped afterwards.
    Weights only: matrices, the accounting of He et al. 2022. As PEFT counts, where its modules are others: (IA)³ at its
    defaults; of an encoder-decoder two prompts, and prefixes at the decoder's self-attention. The task head is not
    counted.
    """
    from dashboards.terminal.configurations import count_renderable, view_count
    from deltaspace.descriptions import shape_of
    from search_space.published.point import PublishedPoint

    point, shape = PublishedPoint(method), shape_of(backbone)
    view = view_count(point.method, shape, {**point.settings, **settings})
    named = {"method": view.method.name, "backbone": backbone, "family": shape.family}
    answer(
        view,
        lambda view: count_renderable(view, backbone=backbone),
        as_json=as_json,
        entries=lambda view: {**named, **_count_entries(view)},
    )


def _count_entries(view: "CountView") -> dict[str, object]:
    from search_space.conventions import CONVENTIONS

    total, counts = view.backbone_parameters, view.conventions
    return {
        "settings": view.settings,
        **{name: number for name, number in counts.items() if name != "peft"},
        "backbone_parameters": total,
        "percent": 100 * counts["stored"] / total,
        "conventions": counts,
        "percentages": {name: 100 * number / total for name, number in counts.items()},
        "meanings": {name: CONVENTIONS[name] for name in counts},
        "invalid": view.invalid,
    }


@command(
    "describe",
    "deltaspace describe mam_adapter --backbone roberta-base --set r=512",
    "deltaspace describe docstrings 17",
    "deltaspace describe docstrings best",
)
@click.argument("target", metavar="METHOD|STUDY", shell_complete=methods_and_studies)
@click.argument("number", metavar=f"[{options.TRIAL}]", type=options.TrialNumber(), required=False)
@click.option(
    "--backbone",
    metavar="NAME|FOLDER",
    help="Its config.json is read, no weights.  [default: embedded for a method, the study's own for a trial]",
)
@options.setting_option("Hyper-parameter of the method by name or letter; repeatable.")
@options.answer_options
def describe(
    target: str,
    number: int | Literal["best"] | None,
    backbone: str | None,
    settings: dict[str, float | str],
    storage: str,
    as_json: bool,
) -> None:
    """Describe a published method or a trial: formula, dimensions, counts, nearest methods.

    With a NUMBER the first argument is a study, else a published method.
    """
    from dashboards.terminal.configurations import configuration_renderable
    from deltaspace import descriptions

    if number is None:
        view = descriptions.describe(target, backbone, **settings)
    elif settings:
        raise click.UsageError("--set is for published methods; a trial is as it was recorded.")
    else:
        from studies.study import Study

        view = descriptions.describe(Study.open(target, storage).trial(number), backbone)
    answer(view, configuration_renderable, as_json=as_json, entries=_described)


def _described(view: "ConfigurationView") -> dict[str, object]:
    nearest = [{"method": one.method.name, "differences": one.differences} for one in view.nearest]
    fields = ("title", "sentence", "attention", "ffn", "edits", "counts", "backbone_parameters")
    return {**{name: getattr(view, name) for name in fields}, "nearest": nearest}


@command(
    "space",
    "deltaspace space docstrings",
    "deltaspace space study.yaml --draw 5",
    "deltaspace space study.yaml --set space.sites=separate --json",
)
@click.argument("study", metavar="STUDY.yaml", shell_complete=study_files)
@click.option("--draw", metavar="N", type=click.IntRange(0, 1000), default=0, help="Sample configurations to draw.")
@click.option("--seed", metavar="N", type=click.IntRange(0, options.MOST_SEED), default=0, help="Of the samples.")
@options.override_option("Any key of the study file, such as space.sites=separate; repeatable.")
@options.json_option
def show_space(study: str, draw: int, seed: int, overrides: dict[str, object], as_json: bool) -> None:
    """Show the search space of a study: dimensions, size, sample configurations.

    STUDY.yaml is a study file or the name of a shipped example. The size is the product of all dimensions, and the
    number of structures of one edit and of two, sizes and learning rates aside. No weights are read.
    """
    from dashboards.terminal.spaces import space_renderable, view_space
    from deltaspace.descriptions import shape_of
    from search_space.space.space import SearchSpace
    from studies.study_file import specification_of

    specification = specification_of(study, overrides)
    shape = shape_of(specification.backbone.name)
    budget = specification.budget_parameters(shape)
    space = SearchSpace(shape=shape, budget=budget, options=specification.space_options)
    named = {"study": specification.name, "backbone": specification.backbone.as_json()}
    answer(
        view_space(space, draw=draw, seed=seed),
        lambda view: space_renderable(view, title=f"{specification.name} on {specification.backbone}"),
        as_json=as_json,
        entries=lambda view: {**named, **{name: getattr(view, name) for name in view.__slots__}},
    )
