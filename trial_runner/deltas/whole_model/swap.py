"""Temporary replacement of a model's parameters and buffers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from torch import Tensor, nn

from trial_runner.errors import AttachError

TensorLocation = tuple[nn.Module, str]
"""Location of a parameter or buffer: its module, and its name there."""


@contextmanager
def replaced(locations: Iterable[TensorLocation], tensors: Iterable[Tensor]) -> Iterator[None]:
    """Put tensors at locations inside the context; afterwards every location has the same object as before."""
    before: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for (module, name), tensor in zip(locations, tensors, strict=True):
            # past nn.Module, whose setattr is slow, takes nothing but a Parameter and moves the entry to the end
            held: dict[str, Any] = module._parameters if name in module._parameters else module._buffers
            before.append((held, name, held[name]))
            held[name] = tensor
        yield
    finally:
        for held, name, tensor in reversed(before):
            held[name] = tensor


@contextmanager
def swapped(model: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Replace weights of a model inside the context.

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
    tensors = {name: replacements[id(one)] for name, one in named.items() if id(one) in replacements}
    with replaced(locations_of(model, tensors), tensors.values()):
        yield


def locations_of(module: nn.Module, paths: Iterable[str]) -> list[TensorLocation]:
    """Return the locations of tensors that are named by paths below a module."""
    parts = (path.rpartition(".") for path in paths)
    return [(module.get_submodule(where), name) for where, _, name in parts]


def ties_of(whole: nn.Module, base: nn.Module) -> list[tuple[TensorLocation, TensorLocation]]:
    """Return parameters outside a base model that are tied to its own, each with its location inside."""
    inside = {id(parameter): place for module in base.modules() for place, parameter in _parameters_of(module)}
    own = set(base.modules())
    return [
        (place, inside[id(parameter)])
        for module in whole.modules()
        if module not in own
        for place, parameter in _parameters_of(module)
        if id(parameter) in inside
    ]


def _parameters_of(module: nn.Module) -> Iterator[tuple[TensorLocation, nn.Parameter]]:
    for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
        yield (module, name), parameter


def tied(ties: Sequence[tuple[TensorLocation, TensorLocation]]) -> AbstractContextManager[None]:
    """Set tied parameters to the base model's current ones inside the context, also after `swapped` replaced these."""
    return replaced((location for location, _ in ties), (getattr(*source) for _, source in ties))
