"""``deltaspace methods``."""

import click

from deltaspace.commands.options import backbone_option, examples, json_option


@click.command("methods", epilog=examples("deltaspace methods", "deltaspace methods --backbone roberta-base --json"))
@backbone_option
@json_option
def command(backbone: str, as_json: bool) -> None:
    """List the published methods and their four dimensions.

    Functional form, modified representation, insertion form and composition function, as in He et al. 2022; with the
    citation, the hyper-parameters and their defaults. What is not valid on the backbone is marked with the reason.
    """
    from dashboards.terminal.configurations import MethodView, method_views, methods_table
    from deltaspace.commands.output import echo_json, show
    from deltaspace.descriptions import shape_of

    def entry(view: MethodView) -> dict[str, object]:
        method = view.method
        return {
            "name": method.name,
            "title": method.title,
            "citation": method.citation,
            "hyperparameters": method.hyperparameters,
            "attention": view.attention,
            "ffn": view.ffn,
            "invalid": view.invalid,
        }

    views = method_views(shape_of(backbone))
    if as_json:
        echo_json([entry(view) for view in views])
    else:
        show(methods_table(views))
