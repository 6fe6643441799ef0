"""Published methods, parameter counts and configurations, as rich renderables."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dashboards.terminal.layout import Fitted, escape, plain_table, terminal_text
from dashboards.terminal.text import share_text
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.conventions import conventions
from search_space.parameter_counts.counts import Counts, count, instance_count
from search_space.published import METHODS, HyperParameterValues, PublishedMethod
from search_space.words.describe import Difference, SideView, phrase, ranked_published, sentence, side_view
from search_space.words.ports import tensor_names

_NEAREST = 3
_MIDDLE_WIDTH, _FULL_WIDTH = 118, 150
_CODE = ", released code"
_DIMENSIONS = {
    "functional form": "form",
    "modified representation": "write",
    "insertion form": "insertion",
    "composition function": "gate",
}
_DETAILS = ("read", "heads", "bottleneck", "activation", "scale", "variant", "site", "layers")
_TENSORS = ("write", "read")
_CONVENTIONS = {
    "stored": "stored (the budget binds these)",
    "trained": "trained",
    "weights_only": "weights only",
    "with_bias": "weights and biases",
    "peft": "as PEFT counts",
}
_OUTSIDE = {"embed": "input", "global": "weights"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodView:
    """A published method on a backbone.

    Attributes:
        attention: Dimensions at attention; None without edits there.
        ffn: Dimensions at the FFN; None without edits there.
        invalid: Reason why the method is not valid on the backbone; None if it is.
    """

    method: PublishedMethod
    attention: SideView | None = None
    ffn: SideView | None = None
    invalid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditView:
    """An edit with its formula.

    Attributes:
        site: Kind of sublayer.
        sublayers: Number of sublayers with the edit (for ``stack``: norms; outside of the sublayers: one).
        formula: Formula with the shapes of its matrices.
    """

    site: str
    sublayers: int
    formula: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConfigurationView:
    """A configuration on a backbone: dimensions, formulas, counts and nearest published methods.

    Attributes:
        attention: Dimensions at attention; None without edits there.
        ffn: Dimensions at the FFN; None without edits there.
        edits: Edits with their formulas.
        backbone_parameters: Denominator of percentages.
        nearest: Published methods with the fewest differences, nearest first.
        title: Name of the configuration; empty for none.
        subtitle: Origin of the configuration; empty for none.
    """

    sentence: str
    attention: SideView | None
    ffn: SideView | None
    edits: tuple[EditView, ...]
    counts: Counts
    backbone_parameters: int
    nearest: tuple[Difference, ...]
    title: str = ""
    subtitle: str = ""

    def __str__(self) -> str:
        """Return sentence, dimensions, formulas, counts and nearest methods as text."""
        return terminal_text(configuration_renderable(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountView:
    """Parameter counts of a published method on a backbone.

    Attributes:
        settings: Values of all hyper-parameters by full name; None for one without a value.
        conventions: Parameters by each counting convention that applies to the method; zero if it is not valid.
        backbone_parameters: Denominator of percentages.
        invalid: Reason why the method is not valid on the backbone; None if it is.
    """

    method: PublishedMethod
    settings: Mapping[str, float | str | None]
    conventions: Mapping[str, int]
    backbone_parameters: int
    invalid: str | None


def view_count(method: PublishedMethod, shape: BackboneShape, settings: HyperParameterValues) -> CountView:
    """Return the counts of a published method on a backbone.

    Raises:
        UnknownMethodError: If there is no such setting, or its value is invalid.
    """
    found = conventions(method.name, shape, settings)
    return CountView(
        method=method,
        settings=method.values(settings),
        conventions=found,
        backbone_parameters=shape.parameters,
        invalid=None if any(found.values()) else method.invalid_reason(shape),
    )


def method_views(shape: BackboneShape) -> tuple[MethodView, ...]:
    """Return all published methods on a backbone; those that are not valid have the reason."""
    return tuple(_method_view(method, shape) for method in METHODS.values())


def _method_view(method: PublishedMethod, shape: BackboneShape) -> MethodView:
    invalid = method.invalid_reason(shape)
    if invalid is not None:
        return MethodView(method=method, invalid=invalid)
    configuration = method.configuration(shape)
    return MethodView(method=method, attention=side_view(configuration.attention), ffn=side_view(configuration.ffn))


def view_configuration(
    configuration: Configuration,
    shape: BackboneShape,
    *,
    title: str = "",
    subtitle: str = "",
    is_published: bool = False,
) -> ConfigurationView:
    """Return the view of a configuration on a backbone.

    Args:
        title: Name of the configuration.
        subtitle: Origin of the configuration.
        is_published: Whether title or subtitle name the published method, so that the sentence omits it.

    Raises:
        InvalidEditError: If the configuration is not valid on the backbone.
    """
    return ConfigurationView(
        sentence=(phrase if is_published else sentence)(configuration, shape),
        attention=side_view(configuration.attention),
        ffn=side_view(configuration.ffn),
        edits=tuple(
            EditView(site=edit.site.value, sublayers=instance_count(edit, shape), formula=edit.formula(shape))
            for edit in configuration.edits
        ),
        counts=count(configuration, shape),
        backbone_parameters=shape.parameters,
        nearest=tuple(ranked_published(configuration, shape)[:_NEAREST]),
        title=title,
        subtitle=subtitle,
    )


def methods_table(views: Sequence[MethodView]) -> RenderableType:
    """Return a table of published methods: their four dimensions at each sublayer, and their hyper-parameters."""
    sources = dict.fromkeys(view.method.citation.partition(", table")[0].removesuffix(_CODE) for view in views)
    parameters = [one for view in views for one in view.method.hyperparameters if one.choices]
    choices = dict.fromkeys(f"{one.alias}: {', '.join(one.choices)} ({one.meaning})" for one in parameters)
    invalid = [Text(f"{view.method.name}: {view.invalid}", "red") for view in views if view.invalid is not None]
    return Group(Fitted(_method_rows, views), Text(), *invalid, *(Text(line, "dim") for line in (*choices, *sources)))


def _method_rows(views: Sequence[MethodView], width: int) -> Table:
    """Return the rows of published methods for a width; a narrow table has the dimensions in one column."""
    is_narrow, is_full = width < _MIDDLE_WIDTH, width >= _FULL_WIDTH
    dimensions = ("the four dimensions",) if is_narrow else tuple(_DIMENSIONS)
    table = plain_table()
    table.add_column("method", no_wrap=True)
    table.add_column("at", no_wrap=not is_full)
    for dimension in dimensions:
        table.add_column(dimension, overflow="fold")
    if is_full:
        table.add_column("hyper-parameters")
        table.add_column("published in", no_wrap=True)
    for view in views:
        method = view.method
        settings = ", ".join(f"{one.alias}={_number(one.default)}" for one in method.hyperparameters)
        details: tuple[str, ...] = (settings, escape(method.citation.partition(", ")[0])) if is_full else ()
        name = method.name
        for place, side in _method_places(view):
            cells = [_dimension(side, key) or "" for key in _DIMENSIONS.values()]
            table.add_row(name, place, *([", ".join(filter(None, cells))] if is_narrow else cells), *details)
            name, details = "", ("",) * len(details)
    return table


def _method_places(view: MethodView) -> list[tuple[str | Text, SideView | None]]:
    """Return the sites of a method with the dimensions there; one entry if it has no edits."""
    if view.invalid is not None:
        return [(Text("not valid here", "red"), None)]
    sides = (("attention", view.attention), (_second_site(view.ffn), view.ffn))
    return [(place, side) for place, side in sides if side is not None] or [("nowhere", None)]


def counts_table(counts: Mapping[str, int], backbone_parameters: int) -> Table:
    """Return the parameters by counting convention, and their percentage of the backbone."""
    rows = [
        [title, f"{counts[name]:,}", share_text(counts[name] / backbone_parameters, digits=4)]
        for name, title in _CONVENTIONS.items()
        if name in counts
    ]
    return plain_table("parameters", "", "of the backbone", right=("", "of the backbone"), rows=rows)


def count_renderable(view: CountView, *, backbone: str) -> RenderableType:
    """Return the counts of a published method, by every counting convention that applies to it."""
    total = view.backbone_parameters
    shown = ", ".join(f"{name}={_number(value)}" for name, value in view.settings.items() if value is not None)
    head = f"{view.method.title} ({shown or 'nothing to set'}) on {backbone}, {total:,} parameters"
    parts: list[RenderableType] = [Text(head, "bold"), *([] if view.invalid is None else [Text(view.invalid, "red")])]
    return Group(*parts, Text(), counts_table(view.conventions, total))


def configuration_renderable(view: ConfigurationView) -> RenderableType:
    """Return a configuration as a renderable: sentence, dimensions, formulas, counts, nearest published methods."""
    head = Text.assemble((view.title, "bold"), f": {view.sentence}") if view.title else Text(view.sentence)
    formulas = [(edit.site, str(edit.sublayers), Text(edit.formula)) for edit in view.edits]
    edits = plain_table("site", "sublayers", "what it computes", folds=True, rows=formulas)
    nearest = [(one.method.name, Text("; ".join(one.differences) or "nothing but sizes")) for one in view.nearest]
    near = plain_table("nearest published", "what differs", rows=nearest)
    parts: list[RenderableType] = [head, *([Text(view.subtitle)] if view.subtitle else [])]
    for part in (_dimensions(view), edits, counts_table(asdict(view.counts), view.backbone_parameters), near):
        parts += [Text(), part]
    return Group(*parts)


def _dimensions(view: ConfigurationView) -> Table:
    rows = []
    for title, key in {**_DIMENSIONS, **{name: name for name in _DETAILS}}.items():
        cells = [_dimension(side, key) for side in (view.attention, view.ffn)]
        rows.append([title, *("-" if cell is None else escape(cell) for cell in cells)])
    return plain_table("", "attention", _second_site(view.ffn), rows=rows)


def _dimension(side: SideView | None, name: str) -> str | None:
    """Return a dimension as text, tensors by name; None without one."""
    value = getattr(side, name, None)
    if value is None:
        return None
    return tensor_names(value) if name in _TENSORS else str(value)


def _second_site(side: SideView | None) -> str:
    """Return the name of the site of edits that are not at attention."""
    return _OUTSIDE.get(side.site or "", "FFN") if side is not None else "FFN"


def _number(value: float | str | None) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:g}"
