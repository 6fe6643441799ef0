"""Table of a search space's parameters, which a study receives before any proposal."""

from collections.abc import Iterable, Mapping, Sequence

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.forms import FORMS, PeftKind
from search_space.layers import LayerPattern, LayerRange, Layers, SpindleGroups
from search_space.space.layer_choice import BITS, group_choices, sixth_names
from search_space.space.options import SpaceOptions
from search_space.space.part_space import PartSpace
from search_space.space.points import ATTENTION, FFN
from search_space.space.product import Structure
from search_space.space.trial_protocol import FloatRange, Parameter

HEAD_RATE = "learning_rate.head"
"""Name of the parameter of the task head's learning rate, if that is searched."""

METHOD = "method"
"""User attribute of a trial with a published method or point, and parameter if some are searched: its name."""

LORA_DROPOUT = "lora_dropout"
"""Name of the parameter of the dropout of low-rank maps, if that is searched."""

_LOW_RANK = frozenset({PeftKind.LORA, PeftKind.DORA, PeftKind.VERA})

OF_TRAINING = frozenset({HEAD_RATE, LORA_DROPOUT})
"""Names of the parameters that are in no record of a trial but its proposal."""

SCALE = "scale"
"""Name of the parameter of the fixed scale, if published methods are searched."""

SIZE = "size"
"""Name of the parameter of the used share of the budget."""


def parameters_of_space(
    part_spaces: Mapping[str, PartSpace],
    placements: Mapping[str, Sequence[str]],
    layers: Sequence[str],
    options: SpaceOptions,
) -> dict[str, Parameter]:
    """Return every parameter of a space by name.

    Args:
        part_spaces: Spaces of the parts of the model.
        placements: Parts of each placement.
        layers: Kinds of layer choices that the backbone allows.
        options: Options of the space.
    """
    table: dict[str, Parameter] = _choice("placement", tuple(placements)) | _choice(
        METHOD, [*map(str, options.methods)]
    )
    if any(point.has_open_scale for point in options.methods):
        table |= _choice(SCALE, tuple(options.open_values[SCALE]))
    for part_space in part_spaces.values():
        table |= part_space.parameters()
    sized = {part for part, one in part_spaces.items() if any(point.is_sized for point in one.tree.points)}
    if any(FFN in (both := sized & {*parts}) and len(both) > 1 for parts in placements.values()):
        table["attention_share"] = _range(options.attention_share, log=False)
    for side in sides(part for part, one in part_spaces.items() if one.can_split):
        table[split_name(side)] = _range(options.split, log=False)
    for side in sides(part_spaces):
        table |= _of_layers(side, layers)
    if options.budget_fractions[0] < options.budget_fractions[1]:
        table[SIZE] = _range(options.budget_fractions)
    table |= {f"learning_rate.{form}": _range(ends) for form, ends in options.learning_rates.items()}
    table |= _choice(LORA_DROPOUT, tuple(map(str, options.lora_dropout)))
    if options.head_learning_rates is not None:
        table[HEAD_RATE] = _range(options.head_learning_rates)
    return table


def _of_layers(side: str, layers: Sequence[str]) -> dict[str, Parameter]:
    table = _choice(f"{side}.layers", layers)
    if SpindleGroups.name in layers:
        table |= _choice(f"{side}.groups", group_choices(layers))
    if LayerRange.name in layers:
        table |= dict.fromkeys((f"{side}.first_layer", f"{side}.layer_share"), FloatRange(low=0.0, high=1.0))
    if LayerPattern.name in layers:
        table |= dict.fromkeys(sixth_names(side), BITS)
    return table


def _choice(name: str, choices: Sequence[str]) -> dict[str, Parameter]:
    """Return a categorical parameter, or an empty table for a single choice."""
    return {name: tuple(choices)} if len(choices) > 1 else {}


def unnamed_rates(shape: BackboneShape, options: SpaceOptions) -> set[str]:
    """Return the learning rates of opt-in forms that are neither searched nor in a published method of the study.

    If published methods are searched, those of all other forms are among them.
    """
    named = set() if options.methods else {*options.attention_forms, *options.ffn_forms}
    for point in options.methods or options.published_points:
        if point.method.invalid_reason(shape) is None:
            named |= {edit.form.name for edit in point.method.structure(shape).edits}
    unnamed = [name for name, form in FORMS.items() if (form.is_opt_in or options.methods) and name not in named]
    return {f"learning_rate.{name}" for name in unnamed}


def has_input_dropout(configuration: Configuration) -> bool:
    """Return whether a configuration has low-rank maps, whose input may be dropped in training."""
    return any(edit.form.peft in _LOW_RANK for edit in configuration.edits)


def side_of(part: str) -> str:
    """Return the side of a part: ``ffn`` or ``attention``."""
    return FFN if part == FFN else ATTENTION


def sides(parts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct sides of some parts."""
    return tuple(dict.fromkeys(side_of(part) for part in parts))


def split_name(side: str) -> str:
    """Return the name of the parameter of a side's split."""
    return f"{side}_split"


def split_edits(side: str, chosen: Mapping[str, Structure], layers: Layers) -> tuple[Edit, ...]:
    """Return the first edits of a split side, in which they and the second edits have a bottleneck; else none."""
    of_side = [points for part, points in chosen.items() if side_of(part) == side]
    firsts, seconds = ([point for points in of_side for point in points[place]] for place in (slice(1), slice(1, 2)))
    is_split = any(point.is_sized for point in firsts) and any(point.is_sized for point in seconds)
    return tuple(edit for point in firsts for edit in point.at_layers(layers)) if is_split else ()


def _range(ends: tuple[float, float], *, log: bool = True) -> FloatRange:
    return FloatRange(low=ends[0], high=ends[1], log=log)
