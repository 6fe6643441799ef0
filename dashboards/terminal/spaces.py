"""Search spaces for the terminal: dimensions, sizes, and sample configurations."""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dashboards.terminal.configurations import EditView, view_configuration
from dashboards.terminal.layout import escape, plain_table
from dashboards.terminal.text import rate_text, share_text
from search_space.parameter_counts.counts import Counts
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace
from search_space.space.space_size import SpaceSize, dimension_values, space_size
from search_space.space.trial_protocol import Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleView:
    """A configuration drawn at random.

    Attributes:
        edits: What every edit computes.
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
        backbone_parameters: The denominator of percentages.
        budget: Most stored parameters.
        dimensions: What can be chosen at every part of the model, by dimension.
        layers: Kinds of layer choices.
        placements: Parts that are edited together.
        parameters: Every search parameter by name.
        published: Published methods and points that fit.
        samples: Configurations drawn at random.
    """

    family: str
    backbone_parameters: int
    budget: int
    dimensions: Mapping[str, Mapping[str, tuple[str, ...]]]
    layers: tuple[str, ...]
    placements: tuple[str, ...]
    parameters: Mapping[str, Parameter]
    size: SpaceSize
    published: tuple[str, ...]
    samples: tuple[SampleView, ...]


def view_space(space: SearchSpace, *, draw: int = 0, seed: int = 0) -> SpaceView:
    """Look at a search space.

    Args:
        draw: How many configurations to draw.
    """
    trial = RandomTrial(seed)
    return SpaceView(
        family=space.shape.family,
        backbone_parameters=space.shape.parameters,
        budget=space.budget,
        dimensions=dimension_values(space),
        layers=space.layers,
        placements=tuple(space.placements),
        parameters=space.parameters(),
        size=space_size(space),
        published=space.published_that_fit(),
        samples=tuple(_sample(space, trial) for _ in range(draw if space.trees else 0)),
    )


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
    """The dimensions, the sizes, and the samples."""
    share = share_text(view.budget / view.backbone_parameters, digits=3)
    head = Text.assemble((title, "bold"), f": at most {view.budget:,} parameters, {share} of the backbone")
    parts: list[RenderableType] = [head]
    for part in (_dimensions(view), _sizes(view.size)):
        parts += [Text(), part]
    parts += [Text(), Text(f"published methods that fit: {', '.join(view.published) or 'none'}")]
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
        table.add_row("", name, f"{spread.low:g} to {spread.high:g}{', logarithmic' if spread.log else ''}")
    return table


def _sizes(size: SpaceSize) -> Table:
    rows = {
        "product of the dimensions": ([part.product for part in size.parts], size.product),
        "can be proposed": ([part.proposed for part in size.parts], size.proposed),
    }
    if any(part.pairs for part in size.parts):
        rows["can be proposed, two edits"] = ([part.pairs for part in size.parts], size.proposed)
    cells = [
        (name, *(f"{number:,}" for number in (*of_parts, size.layers, together)))
        for name, (of_parts, together) in rows.items()
    ]
    heads = (*(part.part for part in size.parts), "layers", "together")
    return plain_table("structures, sizes and learning rates aside", *heads, right=heads, rows=cells)


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
