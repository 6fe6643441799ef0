"""Temporary replacement of a model's parameters."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from torch import Tensor, nn

from trial_runner.errors import AttachError

ParameterLocation = tuple[nn.Module, str]
"""Location of a parameter: its module, and its name there."""


@contextmanager
def swapped(model: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Replace weights of a model inside the context; afterwards every parameter is the same object as before.

    Args:
        model: Model. A tied parameter is replaced at all its places, under any of its names.
        weights: Tensors by the names of the parameters that they replace; others stay.

    Raises:
        AttachError: If the model has no parameter of a name, or one of another shape.
    """
    named = dict(model.named_parameters(remove_duplicate=False))
    replacements: dict[int, Tensor] = {}
    for name, tensor in weights.items():
        if name not in named or named[name].shape != tensor.shape:
            got = tuple(named[name].shape) if name in named else "no such parameter"
            raise AttachError(f"the model must have a parameter {name} of shape {tuple(tensor.shape)}; got {got}.")
        replacements[id(named[name])] = tensor
    places = [
        (module, name, parameter)
        for module in model.modules()
        for name, parameter in module._parameters.items()
        if parameter is not None and id(parameter) in replacements
    ]
    try:
        for module, name, parameter in places:
            # assigned past nn.Module, which takes nothing but a Parameter and would move the entry to the end
            module._parameters[name] = replacements[id(parameter)]  # type: ignore[assignment]
        yield
    finally:
        for module, name, parameter in places:
            module._parameters[name] = parameter


def ties_of(whole: nn.Module, base: nn.Module) -> list[tuple[ParameterLocation, ParameterLocation]]:
    """Return parameters outside a base model that are tied to its own, each with its location inside."""
    inside = {
        id(parameter): (module, name)
        for module in base.modules()
        for name, parameter in module._parameters.items()
        if parameter is not None
    }
    own = set(base.modules())
    return [
        ((module, name), inside[id(parameter)])
        for module in whole.modules()
        if module not in own
        for name, parameter in module._parameters.items()
        if id(parameter) in inside
    ]


@contextmanager
def tied(ties: Sequence[tuple[ParameterLocation, ParameterLocation]]) -> Iterator[None]:
    """Set tied parameters to the base model's current ones inside the context, also after `swapped` replaced these."""
    before = [(module, name, module._parameters[name]) for (module, name), _ in ties]
    for (module, name), (source, source_name) in ties:
        module._parameters[name] = source._parameters[source_name]
    try:
        yield
    finally:
        for module, name, parameter in before:
            module._parameters[name] = parameter
