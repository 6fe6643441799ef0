"""Search spaces as rich renderables: dimensions, sizes, and sampled configurations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import prod

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dashboards.terminal.configurations import EditView, view_configuration
from dashboards.terminal.layout import escape, plain_table
from dashboards.terminal.text import rate_text, share_text
from search_space.forms import FORMS
from search_space.gates import FixedScale, Multiply
from search_space.parameter_counts.counts import Counts
from search_space.space.layer_choice import every_choice, stack_depth
from search_space.space.parameter_table import sides
from search_space.space.part_space import NUMBERS
from search_space.space.points import site_of
from search_space.space.product import families
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace
from search_space.space.trial_protocol import Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSize:
    """Number of structures at one part of the model, without sizes, learning rates and layers.

    Attributes:
        product: Combinations of the values of all dimensions, legal or not; pairs too, if two edits may be there.
        one_edit: Structures of one edit that can be proposed.
        two_edits: Structures of two edits that can be proposed.
    """

    product: int
    one_edit: int
    two_edits: int

    @property
    def proposed(self) -> int:
        """Number of structures that can be proposed."""
        return self.one_edit + self.two_edits


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleView:
    """A configuration drawn at random.

    Attributes:
        edits: Edits with their formulas.
        attention_learning_rate: Peak rate at attention; None without edits there.
        ffn_learning_rate: Peak rate at the FFN; None without edits there.
        share_of_budget: Stored parameters, as a fraction of the budget.
    """

    sentence: str
    edits: tuple[EditView, ...]
    counts: Counts
    attention_learning_rate: float | None
    ffn_learning_rate: float | None
    share_of_budget: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceView:
    """The search space of a study on its backbone.

    Attributes:
        backbone_parameters: Denominator of percentages.
        budget: Maximum number of stored parameters.
        dimensions: Choices at every part of the model, by dimension.
        layers: Kinds of layer choices.
        layer_choices: Number of layer choices of a side.
        placements: Parts that are edited together.
        parameters: Search parameters by name.
        sizes: Number of structures by part of the model.
        product: Configurations of the raw product: at every part a combination or nothing, with a choice of layers.
        proposed: Structures of all placements that can be proposed, with their choices of layers.
        published: Published methods and points that fit the budget.
        samples: Configurations drawn at random.
    """

    family: str
    backbone_parameters: int
    budget: int
    dimensions: Mapping[str, Mapping[str, tuple[str, ...]]]
    layers: tuple[str, ...]
    layer_choices: int
    placements: tuple[str, ...]
    parameters: Mapping[str, Parameter]
    sizes: Mapping[str, PartSize]
    product: int
    proposed: int
    published: tuple[str, ...]
    samples: tuple[SampleView, ...]


def view_space(space: SearchSpace, *, draw: int = 0, seed: int = 0) -> SpaceView:
    """Return the view of a search space.

    Args:
        draw: Number of configurations to draw.
        seed: Seed of the draws.
    """
    sizes = {part: _size(part, space) for part in space.parts}
    layer_choices = len(every_choice(space.layers, stack_depth(space.shape)))
    trial = RandomTrial(seed)
    return SpaceView(
        family=space.shape.family,
        backbone_parameters=space.shape.parameters,
        budget=space.budget,
        dimensions=_dimension_values(space),
        layers=space.layers,
        layer_choices=layer_choices,
        placements=tuple(space.placements),
        parameters=space.parameters(),
        sizes=sizes,
        product=_configurations(
            {part: size.product for part, size in sizes.items()},
            [chosen for number in range(1, len(sizes) + 1) for chosen in combinations(sizes, number)],
            layer_choices,
        ),
        proposed=_configurations(
            {part: size.proposed for part, size in sizes.items()}, space.placements.values(), layer_choices
        ),
        published=space.published_that_fit(),
        samples=tuple(_sample(space, trial) for _ in range(draw if space.is_searched else 0)),
    )


def _size(part: str, space: SearchSpace) -> PartSize:
    options = space.options
    values = options.dimensions(part)
    gates = [*values["gate"]]
    if FixedScale.name in gates:  # each scale makes a gate of its own
        gates += map(str, options.values.scales[1:])
    if any(FORMS[name].multiplies for name in options.forms(part)):
        gates.append(Multiply.name)
    product = sum(map(len, families(site_of(part), {**values, "gate": dict.fromkeys(gates)})))
    return PartSize(
        product=product if max(options.edits_per_side) == 1 else product * (product + 1) // 2,
        one_edit=len(space.structures.get(part, ())),
        two_edits=len(space.pairs.get(part, ())),
    )


def _configurations(sizes: Mapping[str, int], placements: Iterable[tuple[str, ...]], layer_choices: int) -> int:
    """Return the number of structures of all placements; the parts of a side share a choice of layers."""
    return sum(prod(sizes[part] for part in parts) * layer_choices ** len(sides(parts)) for parts in placements)


def _dimension_values(space: SearchSpace) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the choices at every part of the model by dimension, including dimensions with a single value."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for part, structures in space.structures.items():
        values: dict[str, dict[str, None]] = {}
        for point in structures:
            for dimension, value in point.path:
                values.setdefault(dimension, {})[value] = None
        if part in space.pairs:
            values["edits"] = dict.fromkeys(NUMBERS)
        found[part] = {dimension: tuple(some) for dimension, some in values.items()}
    return found


def _sample(space: SearchSpace, trial: RandomTrial) -> SampleView:
    candidate = space.suggest(trial)
    view = view_configuration(candidate.configuration, space.shape)
    return SampleView(
        sentence=view.sentence,
        edits=view.edits,
        counts=view.counts,
        attention_learning_rate=candidate.attention_learning_rate,
        ffn_learning_rate=candidate.ffn_learning_rate,
        share_of_budget=candidate.counts.stored / space.budget,
    )


def space_renderable(view: SpaceView, *, title: str) -> RenderableType:
    """Return the dimensions, the sizes and the samples as a renderable."""
    share = share_text(view.budget / view.backbone_parameters, digits=3)
    head = Text.assemble((title, "bold"), f": at most {view.budget:,} parameters, {share} of the backbone")
    parts: list[RenderableType] = [head]
    # a space of methods has no parts of the model to choose from
    for part in (_dimensions(view), _sizes(view)) if view.sizes else (_parameters(view),):
        parts += [Text(), part]
    word = "published methods that fit" if view.sizes else "tried first"
    parts += [Text(), Text(f"{word}: {', '.join(view.published) or 'none'}")]
    for number, sample in enumerate(view.samples, start=1):
        parts += [Text(), _sample_lines(number, sample, view)]
    return Group(*parts)


def _dimensions(view: SpaceView) -> Table:
    table = plain_table("at", "dimension", "choices", folds=True)
    for part, dimensions in view.dimensions.items():
        for number, (dimension, values) in enumerate(dimensions.items()):
            table.add_row("" if number else part, dimension, escape(", ".join(values)))
    table.add_row("everywhere", "layers", ", ".join(view.layers))
    table.add_row("", "placement", ", ".join(view.placements))
    forms = {form for dimensions in view.dimensions.values() for form in dimensions["form"]}
    for name, spread in view.parameters.items():
        is_rate = name.startswith("learning_rate.")
        if isinstance(spread, tuple) or (is_rate and name.partition(".")[2] not in forms):
            continue
        table.add_row("", name, _choices(spread))
    return table


def _parameters(view: SpaceView) -> Table:
    rows = [(name, _choices(one)) for name, one in view.parameters.items()]
    return plain_table("parameter", "choices", folds=True, rows=rows)


def _choices(one: Parameter) -> str:
    if isinstance(one, tuple):
        return escape(", ".join(one))
    return f"{one.low:g} to {one.high:g}{', logarithmic' if one.log else ''}"


def _sizes(view: SpaceView) -> Table:
    """Return the table of structures at each part, and of their product with the choices of layers."""
    rows = [
        *((part, size.product, size.one_edit, size.two_edits, size.proposed) for part, size in view.sizes.items()),
        ("layers", view.layer_choices, None, None, view.layer_choices),
        ("all together", view.product, None, None, view.proposed),
    ]
    cells = [(name, *("" if number is None else f"{number:,}" for number in numbers)) for name, *numbers in rows]
    heads = ("product of the dimensions", "one edit", "two edits", "can be proposed")
    return plain_table("structures", *heads, right=heads, rows=cells)


def _sample_lines(number: int, sample: SampleView, view: SpaceView) -> RenderableType:
    stored, share = sample.counts.stored, share_text(sample.share_of_budget)
    of_backbone = share_text(stored / view.backbone_parameters, digits=3)
    attention, ffn = rate_text(sample.attention_learning_rate), rate_text(sample.ffn_learning_rate)
    return Group(
        Text.assemble((f"{number}. ", "bold"), sample.sentence),
        *(Text(f"   {edit.site}, {edit.sublayers} times: {edit.formula}") for edit in sample.edits),
        Text(
            f"   stores {stored:,} parameters, {share} of the budget, {of_backbone} of the backbone; "
            f"trains {sample.counts.trained:,}; learning rates: attention {attention}, FFN {ffn}"
        ),
    )
