"""Layer choices of a search: all layers, a contiguous range, groups of a spindle, or a pattern of sixths."""

from collections.abc import Sequence
from functools import cache
from itertools import combinations

from search_space.backbones.shape import BackboneShape
from search_space.layers import GROUPS, SIXTHS, AllLayers, LayerPattern, LayerRange, Layers, SpindleGroups
from search_space.space.trial_protocol import ParameterRecorder

BITS = ("off", "on")
"""Choices of each sixth of a pattern."""

EVERY_SIXTH = tuple(range(1, SIXTHS + 1))


def stack_depth(shape: BackboneShape) -> int:
    """Return the number of blocks to choose from: those of the shallower stack, so that every stack has them."""
    return min(layers for layers in (shape.encoder_layers, shape.decoder_layers) if layers)


def available_layers(names: Sequence[str], depth: int) -> tuple[str, ...]:
    """Return the named kinds of layer choices that a stack of ``depth`` blocks allows."""
    shortest = {SpindleGroups.name: GROUPS, LayerPattern.name: SIXTHS}
    return tuple(name for name in names if depth >= shortest.get(name, 1))


def group_choices(names: Sequence[str]) -> tuple[str, ...]:
    """Return the sets of spindle groups, such as ``1+4``; all four are left out if all layers are a choice anyway."""
    sizes = range(1, GROUPS if AllLayers.name in names else GROUPS + 1)
    sets = (chosen for size in sizes for chosen in combinations(range(1, GROUPS + 1), size))
    return tuple("+".join(map(str, chosen)) for chosen in sets)


def sixth_names(prefix: str) -> tuple[str, ...]:
    """Return the parameter names of the sixths of a pattern."""
    return tuple(f"{prefix}.pattern.{number}" for number in range(SIXTHS))


def suggest_layers(prefix: str, names: Sequence[str], depth: int, recorder: ParameterRecorder) -> Layers:
    """Suggest a layer choice; a range is suggested by its start and its share of the remaining blocks.

    A pattern is suggested by its sixths, each on or off; all of them off equals all of them on.

    Args:
        prefix: Prefix of the parameter names.
        names: Kinds of layer choices.
        depth: Blocks of a stack.
        recorder: Source of the values.
    """
    match recorder.choose(f"{prefix}.layers", names):
        case LayerRange.name:
            first = min(depth - 1, int(recorder.number(f"{prefix}.first_layer") * depth))
            rest = depth - first
            return LayerRange(
                first=first, last=first + min(rest - 1, int(recorder.number(f"{prefix}.layer_share") * rest))
            )
        case SpindleGroups.name:
            groups = recorder.choose(f"{prefix}.groups", group_choices(names))
            return SpindleGroups(groups=tuple(int(group) for group in groups.split("+")))
        case LayerPattern.name:
            bits = [recorder.choose(name, BITS) == "on" for name in sixth_names(prefix)]
            chosen = tuple(number for number, is_on in enumerate(bits, start=1) if is_on)
            return LayerPattern(sixths=chosen or EVERY_SIXTH)
        case _:
            return AllLayers()


def layer_parameters(prefix: str, names: Sequence[str], depth: int, layers: Layers) -> dict[str, str | float] | None:
    """Return the parameters with which `suggest_layers` suggests these blocks; None if it cannot.

    Args:
        prefix: Prefix of the parameter names.
        names: Kinds of layer choices.
        depth: Blocks of a stack.
        layers: Layer choice, possibly of another kind with the same blocks.
    """
    equal = [
        choice for choice in every_choice(names, depth) if choice.block_indices(depth) == layers.block_indices(depth)
    ]
    if not equal:
        return None
    chosen = layers if layers in equal else equal[0]
    parameters: dict[str, str | float] = {f"{prefix}.layers": chosen.name}
    if isinstance(chosen, LayerRange):
        rest = depth - chosen.first
        parameters[f"{prefix}.first_layer"] = (chosen.first + 0.5) / depth
        parameters[f"{prefix}.layer_share"] = (chosen.last - chosen.first + 0.5) / rest
    elif isinstance(chosen, SpindleGroups):
        parameters[f"{prefix}.groups"] = "+".join(map(str, chosen.groups))
    elif isinstance(chosen, LayerPattern):
        parameters |= {name: BITS[n in chosen.sixths] for n, name in enumerate(sixth_names(prefix), start=1)}
    return parameters


@cache
def every_choice(names: Sequence[str], depth: int) -> tuple[Layers, ...]:
    """Return every layer choice that can be suggested."""
    kinds: dict[str, list[Layers]] = {
        AllLayers.name: [AllLayers()],
        LayerRange.name: [LayerRange(first=first, last=last) for first in range(depth) for last in range(first, depth)],
        SpindleGroups.name: [
            SpindleGroups(groups=tuple(int(group) for group in text.split("+"))) for text in group_choices(names)
        ],
        LayerPattern.name: [
            LayerPattern(sixths=sixths) for size in EVERY_SIXTH for sixths in combinations(EVERY_SIXTH, size)
        ],
    }
    return tuple(choice for name in names for choice in kinds[name])
