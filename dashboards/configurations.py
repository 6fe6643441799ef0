"""Configurations for the terminal: published methods, counts, and what a configuration does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dashboards.layout import plain_table
from dashboards.text import share_text
from search_space.backbone_shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting import Counts, count
from search_space.describe import Difference, SideView, formula, ranked_published, sentence, side_view
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.published import PUBLISHED, PublishedMethod

__all__ = [
    "ConfigurationView",
    "EditView",
    "MethodView",
    "configuration_renderable",
    "counts_table",
    "method_views",
    "methods_table",
    "view_configuration",
]

_NEAREST = 3
_CODE = ", released code"
_DIMENSIONS = {
    "functional form": "form",
    "modified representation": "write",
    "insertion form": "insertion",
    "composition function": "gate",
}
_DETAILS = ("read", "heads", "bottleneck", "activation", "scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodView:
    """A published method on a backbone.

    Attributes:
        method: The method.
        attention: Its dimensions at attention; None without edits there.
        ffn: Its dimensions at the FFN; None without edits there.
        invalid: Why it is not valid on the backbone; None if it is.
    """

    method: PublishedMethod
    attention: SideView | None
    ffn: SideView | None
    invalid: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditView:
    """An edit and what it computes.

    Attributes:
        site: Kind of sublayer.
        sublayers: How many there are (for ``stack``: norms).
        formula: With the shapes of its matrices.
    """

    site: str
    sublayers: int
    formula: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationView:
    """What a configuration does on a backbone.

    Attributes:
        sentence: In words.
        attention: Dimensions at attention; None without edits there.
        ffn: Dimensions at the FFN; None without edits there.
        edits: What every edit computes.
        counts: Parameters.
        backbone_parameters: The denominator of percentages.
        nearest: The published methods that differ least, nearest first.
    """

    sentence: str
    attention: SideView | None
    ffn: SideView | None
    edits: tuple[EditView, ...]
    counts: Counts
    backbone_parameters: int
    nearest: tuple[Difference, ...]


def method_views(shape: BackboneShape) -> tuple[MethodView, ...]:
    """Every published method on a backbone, those that are not valid there with the reason."""
    views = []
    for method in PUBLISHED:
        try:
            configuration = method.configuration(shape)
        except InvalidEditError as error:
            views.append(MethodView(method=method, attention=None, ffn=None, invalid=str(error)))
            continue
        attention, ffn = side_view(configuration.attention), side_view(configuration.ffn)
        views.append(MethodView(method=method, attention=attention, ffn=ffn, invalid=None))
    return tuple(views)


def view_configuration(configuration: Configuration, shape: BackboneShape) -> ConfigurationView:
    """What a configuration does on a backbone.

    Raises:
        InvalidEditError: If it is not valid there.
    """
    return ConfigurationView(
        sentence=sentence(configuration, shape),
        attention=side_view(configuration.attention),
        ffn=side_view(configuration.ffn),
        edits=tuple(_edit_view(edit, shape) for edit in configuration.edits),
        counts=count(configuration, shape),
        backbone_parameters=shape.parameters,
        nearest=tuple(ranked_published(configuration, shape)[:_NEAREST]),
    )


def _edit_view(edit: Edit, shape: BackboneShape) -> EditView:
    sublayers = len(shape.sublayers(edit.site)) or shape.stack_norms
    return EditView(site=edit.site.value, sublayers=sublayers, formula=formula(edit, shape))


def methods_table(views: Sequence[MethodView]) -> RenderableType:
    """The published methods, their four dimensions at either sublayer, and what can be set."""
    table = plain_table()
    table.add_column("method", no_wrap=True)
    table.add_column("at")
    for dimension in _DIMENSIONS:
        table.add_column(dimension)
    table.add_column("hyper-parameters")
    table.add_column("published in", no_wrap=True)
    for view in views:
        method = view.method
        settings = ", ".join(f"{one.alias}={_number(one.default)}" for one in method.hyperparameters)
        if view.invalid is not None:
            table.add_row(method.name, Text("not valid here", "red"), "", "", "", "", settings)
            continue
        name, citation = method.name, escape(method.citation.partition(", ")[0])
        for place, side in (("attention", view.attention), ("FFN", view.ffn)):
            if side is not None:
                table.add_row(name, place, *(getattr(side, key) for key in _DIMENSIONS.values()), settings, citation)
                name = settings = citation = ""
        if name:
            table.add_row(name, "nowhere", "", "", "", "", settings, citation)
    sources = dict.fromkeys(view.method.citation.partition(", table")[0].removesuffix(_CODE) for view in views)
    invalid = [Text(f"{view.method.name}: {view.invalid}", "red") for view in views if view.invalid is not None]
    return Group(table, Text(), *invalid, *(Text(source, "dim") for source in sources))


def counts_table(counts: Counts, backbone_parameters: int) -> Table:
    """Parameters by counting convention, and their percentage of the backbone."""
    table = plain_table()
    table.add_column("parameters")
    table.add_column("", justify="right")
    table.add_column("of the backbone", justify="right")
    for convention, name in (
        ("stored", "stored (the budget binds these)"),
        ("trained", "trained"),
        ("weights_only", "weights only"),
        ("with_bias", "weights and biases"),
    ):
        number = getattr(counts, convention)
        table.add_row(name, f"{number:,}", share_text(number / backbone_parameters, digits=4))
    return table


def configuration_renderable(view: ConfigurationView, *, title: str, subtitle: str | None = None) -> RenderableType:
    """What a configuration does: sentence, dimensions, formulas, counts, nearest published methods."""
    head = Text.assemble((title, "bold"), f": {view.sentence}")
    edits = plain_table()
    for name in ("site", "sublayers", "what it computes"):
        edits.add_column(name, overflow="fold")
    for edit in view.edits:
        edits.add_row(edit.site, str(edit.sublayers), Text(edit.formula))
    near = plain_table()
    for name in ("nearest published", "what differs"):
        near.add_column(name)
    for one in view.nearest:
        near.add_row(one.method.name, Text("; ".join(one.differences) or "nothing but sizes"))
    parts: list[RenderableType] = [head, *([Text(subtitle)] if subtitle else [])]
    for part in (_dimensions(view), edits, counts_table(view.counts, view.backbone_parameters), near):
        parts += [Text(), part]
    return Group(*parts)


def _dimensions(view: ConfigurationView) -> Table:
    table = plain_table()
    for name in ("", "attention", "FFN"):
        table.add_column(name)
    rows: Mapping[str, str] = {**_DIMENSIONS, **{name: name for name in _DETAILS}}
    for title, key in rows.items():
        cells = [getattr(side, key) if side is not None else None for side in (view.attention, view.ffn)]
        table.add_row(title, *("-" if cell is None else escape(str(cell)) for cell in cells))
    return table


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
