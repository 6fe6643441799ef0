"""What modules must have in common to be computed together, and which of their axes may differ."""

from collections.abc import Hashable, Iterable, Mapping

from torch import Tensor, nn

from search_space.structure import edit_structure
from trial_runner.deltas import DeltaModule, SharedDelta
from trial_runner.deltas.form_delta import Padding
from trial_runner.deltas.port_delta import PortDelta


def paddings(module: nn.Module) -> Mapping[str, Padding]:
    """How the tensors of a module may be widened, by name."""
    if isinstance(module, PortDelta):
        return {f"form.{name}": padding for name, padding in module.form.paddings.items()}
    return module.paddings if isinstance(module, DeltaModule | SharedDelta) else {}


def structure(delta: PortDelta) -> Hashable:
    """Equal for edits of one sublayer that can be computed together; widths and fixed scales may differ."""
    shared = delta.form.shared
    of_shared = None if shared is None else shared_structure(shared)
    return edit_structure(delta.edit), _shapes(delta, delta.named_parameters()), of_shared, delta.form.layer


def shared_structure(shared: SharedDelta) -> Hashable:
    """Equal for modules that sublayers share and that can be computed together."""
    return type(shared), _shapes(shared, shared.named_parameters()), _shapes(shared, shared.named_buffers())


def _shapes(module: nn.Module, tensors: Iterable[tuple[str, Tensor]]) -> Hashable:
    """Shapes of a module's tensors without the axes that may be padded."""
    widened = paddings(module)
    shapes: list[tuple[str, tuple[int, ...]]] = []
    for name, tensor in tensors:
        shape = list(tensor.shape)
        if name in widened:
            del shape[widened[name].axis]
        shapes.append((name, tuple(shape)))
    return tuple(shapes)
