"""Search spaces for the terminal: dimensions, sizes, the rules that cut them, and sample configurations."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dashboards.terminal.configurations import EditView, view_configuration
from dashboards.terminal.layout import escape, plain_table
from dashboards.terminal.text import rate_text, share_text
from search_space.parameter_counts.counts import Counts
from search_space.rules import RULES
from search_space.space.census import Census, PairCensus, PartCensus, census, dimension_values
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace
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
        rules: What the rules say that refuse something.
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
    census: Census
    rules: Mapping[str, str]
    published: tuple[str, ...]
    samples: tuple[SampleView, ...]


def view_space(space: SearchSpace, *, draw: int = 0, seed: int = 0) -> SpaceView:
    """Look at a search space.

    Args:
        draw: How many configurations to draw.
    """
    counted = census(space)
    trial = RandomTrial(seed)
    return SpaceView(
        family=space.shape.family,
        backbone_parameters=space.shape.parameters,
        budget=space.budget,
        dimensions=dimension_values(space),
        layers=space.layers,
        placements=tuple(space.placements),
        parameters=space.parameters(),
        census=counted,
        rules={rule: text for rule, text in RULES.items() if any(rule in _refused(part) for part in counted.parts)},
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
    """The dimensions, the sizes, the rules, and the samples."""
    share = share_text(view.budget / view.backbone_parameters, digits=3)
    head = Text.assemble((title, "bold"), f": at most {view.budget:,} parameters, {share} of the backbone")
    parts: list[RenderableType] = [head]
    for part in (_dimensions(view), _sizes(view.census), _rules(view)):
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


def _sizes(counted: Census) -> Table:
    rows = {
        "product of the dimensions": ([part.product for part in counted.parts], counted.layers[0], counted.product),
        "refused by a rule": ([sum(part.refused.values()) for part in counted.parts], None, None),
        "several tensors at once, beside the product": ([part.together for part in counted.parts], None, None),
        "near-duplicates left out": ([part.near_duplicates for part in counted.parts], None, None),
        "too large for the budget": ([part.too_large for part in counted.parts], None, None),
        "can be proposed": ([part.proposed for part in counted.parts], counted.layers[0], counted.proposed),
        "different functions": ([part.distinct for part in counted.parts], counted.layers[1], counted.distinct),
    }
    pairs = [part.pairs for part in counted.parts]
    if any(pairs):
        for name, of in _OF_TWO.items():
            rows[f"two edits: {name}"] = ([0 if two is None else of(two) for two in pairs], None, None)
    cells = [
        (name, *("" if number is None else f"{number:,}" for number in (*of_parts, layers, together)))
        for name, (of_parts, layers, together) in rows.items()
    ]
    heads = (*(part.part for part in counted.parts), "layers", "together")
    return plain_table("structures, sizes and learning rates aside", *heads, right=heads, rows=cells)


_OF_TWO: Mapping[str, Callable[[PairCensus], int]] = {
    "combinations of two structures": lambda two: two.product,
    "that may not go together": lambda two: sum(two.refused.values()),
    "too large for the budget": lambda two: two.too_large,
    "can be proposed": lambda two: two.proposed,
    "different functions": lambda two: two.distinct,
}


def _rules(view: SpaceView) -> Table:
    parts = [part.part for part in view.census.parts]
    rows = [
        (rule, *(f"{_refused(part).get(rule, 0):,}" for part in view.census.parts), escape(text))
        for rule, text in view.rules.items()
    ]
    return plain_table("rule", *parts, "what it says", right=parts, folds=True, rows=rows)


def _refused(part: PartCensus) -> Mapping[str, int]:
    """How much each rule refuses, of one edit and of two."""
    return part.refused if part.pairs is None else Counter(part.refused) + Counter(part.pairs.refused)


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
