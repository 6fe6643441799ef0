"""Choosing layers in a search: all of them, a contiguous range, groups of a spindle, or a pattern of sixths."""

from collections.abc import Sequence
from functools import cache
from itertools import combinations

from search_space.backbones.shape import BackboneShape
from search_space.layers import GROUPS, SIXTHS, AllLayers, LayerPattern, LayerRange, Layers, SpindleGroups
from search_space.space.trial_protocol import ParameterRecorder

BITS = ("off", "on")
"""Whether a sixth of a pattern is chosen."""

EVERY_SIXTH = tuple(range(1, SIXTHS + 1))


def stack_depth(shape: BackboneShape) -> int:
    """Blocks that can be chosen: those of the shallower stack, so that every stack has what is chosen."""
    return min(layers for layers in (shape.encoder_layers, shape.decoder_layers) if layers)


def available_layers(names: Sequence[str], depth: int) -> tuple[str, ...]:
    """The kinds of choices of those named that a stack of ``depth`` blocks allows."""
    shortest = {SpindleGroups.name: GROUPS, LayerPattern.name: SIXTHS}
    return tuple(name for name in names if depth >= shortest.get(name, 1))


def group_choices(names: Sequence[str]) -> tuple[str, ...]:
    """The sets of spindle groups, such as ``1+4``; all four are left out where all layers are a choice anyway."""
    sizes = range(1, GROUPS if AllLayers.name in names else GROUPS + 1)
    sets = (chosen for size in sizes for chosen in combinations(range(1, GROUPS + 1), size))
    return tuple("+".join(map(str, chosen)) for chosen in sets)


def bit_names(prefix: str) -> tuple[str, ...]:
    """Questions about each sixth of a pattern."""
    return tuple(f"{prefix}.pattern.{number}" for number in range(SIXTHS))


def suggest_layers(prefix: str, names: Sequence[str], depth: int, asker: ParameterRecorder) -> Layers:
    """A choice of layers; a range is asked for by where it starts and how much of what follows it covers.

    A pattern is asked for by its sixths, each on or off; all of them off means what all of them on does.

    Args:
        prefix: Of the names of the questions.
        names: The kinds of choices.
        depth: Blocks of a stack.
        asker: Answers.
    """
    match asker.choose(f"{prefix}.layers", names):
        case LayerRange.name:
            first = min(depth - 1, int(asker.number(f"{prefix}.first_layer") * depth))
            rest = depth - first
            return LayerRange(
                first=first, last=first + min(rest - 1, int(asker.number(f"{prefix}.layer_share") * rest))
            )
        case SpindleGroups.name:
            groups = asker.choose(f"{prefix}.groups", group_choices(names))
            return SpindleGroups(groups=tuple(int(group) for group in groups.split("+")))
        case LayerPattern.name:
            bits = [asker.choose(name, BITS) == "on" for name in bit_names(prefix)]
            chosen = tuple(number for number, is_on in enumerate(bits, start=1) if is_on)
            return LayerPattern(sixths=chosen or EVERY_SIXTH)
        case _:
            return AllLayers()


def layer_parameters(prefix: str, names: Sequence[str], depth: int, layers: Layers) -> dict[str, str | float] | None:
    """What `suggest_layers` must be told to suggest these blocks; None if it cannot.

    Args:
        prefix: Of the names of the questions.
        names: The kinds of choices.
        depth: Blocks of a stack.
        layers: A choice, or another name of the same blocks.
    """
    alike = [
        choice for choice in every_choice(names, depth) if choice.block_indices(depth) == layers.block_indices(depth)
    ]
    if not alike:
        return None
    chosen = layers if layers in alike else alike[0]
    answers: dict[str, str | float] = {f"{prefix}.layers": chosen.name}
    if isinstance(chosen, LayerRange):
        rest = depth - chosen.first
        answers[f"{prefix}.first_layer"] = (chosen.first + 0.5) / depth
        answers[f"{prefix}.layer_share"] = (chosen.last - chosen.first + 0.5) / rest
    elif isinstance(chosen, SpindleGroups):
        answers[f"{prefix}.groups"] = "+".join(map(str, chosen.groups))
    elif isinstance(chosen, LayerPattern):
        answers |= {name: BITS[n in chosen.sixths] for n, name in enumerate(bit_names(prefix), start=1)}
    return answers


@cache
def every_choice(names: Sequence[str], depth: int) -> tuple[Layers, ...]:
    """Everything that can be suggested."""
    kinds: dict[str, list[Layers]] = {
        AllLayers.name: [AllLayers()],
        LayerRange.name: [LayerRange(first=first, last=last) for first in range(depth) for last in range(first, depth)],
        SpindleGroups.name: [
            SpindleGroups(groups=tuple(int(group) for group in text.split("+"))) for text in group_choices(names)
        ],
        LayerPattern.name: [
            LayerPattern(sixths=some) for size in EVERY_SIXTH for some in combinations(EVERY_SIXTH, size)
        ],
    }
    return tuple(choice for name in names for choice in kinds[name])
