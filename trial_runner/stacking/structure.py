"""What modules must have in common to be computed together, and which of their axes may differ."""

from collections.abc import Hashable, Mapping

from torch import nn

from search_space.structure import edit_structure
from trial_runner.deltas.bottleneck import BottleneckDelta
from trial_runner.deltas.lowrank import LowRankDelta
from trial_runner.deltas.phm import PhmShared
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.deltas.prompt import PromptDelta
from trial_runner.deltas.softmax_memory import PrefixStack, SoftmaxMemoryDelta, StackedBottleneck, StackedPrefix
from trial_runner.stacking.stacks import Padding

_NOTHING: Mapping[str, Padding] = {}
_COLUMNS, _ROWS, _TABLE = Padding(axis=-1), Padding(axis=-2), Padding(axis=-2, in_front=True)
_PADDED: Mapping[type[nn.Module], Mapping[str, Padding]] = {
    BottleneckDelta: {"form.down": _COLUMNS, "form.down_bias": _COLUMNS, "form.up": _ROWS},
    LowRankDelta: {"form.a": _COLUMNS, "form.b": _ROWS},
    SoftmaxMemoryDelta: {"form.keys": _TABLE, "form.values": _TABLE},
    PrefixStack: {"embedding": _TABLE},
    PromptDelta: {"table": _TABLE},
}
"""Which axis of a module's tensors is its width. Zeros there change nothing that is computed, and their gradients are
zero: a hidden unit without weights adds nothing, and rows of a table that are no real ones are left out of it."""


def paddings(module: nn.Module) -> Mapping[str, Padding]:
    """How the tensors of a module may be widened, by name."""
    return _PADDED.get(type(module.form if isinstance(module, PortDelta) else module), _NOTHING)


def structure(delta: PortDelta) -> Hashable:
    """Equal for edits of one sublayer that can be computed together; widths and fixed scales may differ."""
    shared = delta.shared_module()
    of_shared = None if shared is None else shared_structure(shared)
    place = delta.form.layer if isinstance(delta.form, StackedPrefix | StackedBottleneck) else None
    return edit_structure(delta.edit), _shapes(delta), of_shared, place


def shared_structure(shared: PhmShared | PrefixStack) -> Hashable:
    """Equal for modules that sublayers share and that can be computed together."""
    return type(shared), _shapes(shared)


def _shapes(module: nn.Module) -> Hashable:
    """Shapes of a module's parameters without the axes that may be padded."""
    widened = paddings(module)
    shapes: list[tuple[str, tuple[int, ...]]] = []
    for name, parameter in module.named_parameters():
        shape = list(parameter.shape)
        if name in widened:
            del shape[widened[name].axis]
        shapes.append((name, tuple(shape)))
    return tuple(shapes)
