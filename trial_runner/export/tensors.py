"""The tensors that must be stored of a delta set, and a delta set with these tensors again.

They are its parameters, named ``deltas.`` and their path, but for forms of the whole model: of diff pruning the places
that are kept and their changes, of a random subspace the seeds of its projections beside its numbers.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.errors import InvalidEditError
from search_space.parameter_counts.counts import count
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.fold import folded_configuration
from trial_runner.errors import ExportError

PREFIX = "deltas."

_DTYPES = frozenset(map(str, (torch.float16, torch.bfloat16, torch.float32, torch.float64)))


def stored_tensors(deltas: DeltaSet) -> dict[str, Tensor]:
    """Everything that must be stored of a folded delta set, copied to the CPU."""
    path, whole = _whole_path(deltas), deltas.whole
    tensors: dict[str, Tensor] = dict(deltas.named_parameters())
    if whole is not None:
        if not whole.stores_parameters:
            tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(path)}
        tensors |= {f"{path}{name}": tensor for name, tensor in whole.own_tensors().items()}
    return {f"{PREFIX}{name}": tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def number_stored(tensors: Mapping[str, Tensor]) -> int:
    """How many trained parameters some tensors hold; places and seeds are none."""
    return sum(tensor.numel() for name, tensor in tensors.items() if tensor.is_floating_point() and _is_delta(name))


def check_fits(configuration: Configuration, shape: BackboneShape, tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors that are not as many as a folded configuration stores, before anything is built of it.

    Raises:
        ExportError: If they are not, or the configuration is not valid on the backbone.
    """
    try:
        stored, held = count(configuration, shape).stored, number_stored(tensors)
    except InvalidEditError as error:
        raise ExportError(f"an export must be of a configuration that its backbone can have; {error}") from error
    if stored != held:
        raise ExportError(f"an export must hold the {stored:,} parameters of its configuration; got {held:,}.")
    if folded_configuration(configuration) != configuration:
        raise ExportError("an export must hold tables in place of the networks that made them; got a network.")
    odd = sorted({str(one.dtype) for one in tensors.values() if one.is_floating_point()} - _DTYPES)
    if odd:
        raise ExportError(f"an export must hold weights of 16, 32 or 64 bits; got {', '.join(odd)}.")


@torch.no_grad()
def load_tensors(deltas: DeltaSet, tensors: Mapping[str, Tensor]) -> None:
    """Give a folded delta set what `stored_tensors` returned.

    Raises:
        ExportError: If a tensor is missing, unknown or of another shape.
    """
    given = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items() if _is_delta(name)}
    path, whole = _whole_path(deltas), deltas.whole
    named = dict(deltas.named_parameters())
    if whole is not None:
        try:
            whole.take_own({name: given.pop(f"{path}{name}") for name in whole.own_names})
        except (KeyError, IndexError, RuntimeError) as error:
            raise ExportError(f"an export must hold whole tensors; got a problem with {error}.") from error
        if not whole.stores_parameters:
            named = {name: one for name, one in named.items() if not name.startswith(path)}
    if set(named) != set(given):
        odd = sorted(set(named) ^ set(given))
        raise ExportError(f"an export must hold the tensors of its configuration; {len(odd)} differ, such as {odd[0]}.")
    for name, parameter in named.items():
        if parameter.shape != given[name].shape:
            want, got = tuple(parameter.shape), tuple(given[name].shape)
            raise ExportError(f"tensor {name} of an export must have shape {want}; got {got}.")
        parameter.copy_(given[name])


def _is_delta(name: str) -> bool:
    return name.startswith(PREFIX)


def _whole_path(deltas: DeltaSet) -> str:
    """Where the change of the whole model is in a delta set, with a dot at the end."""
    return next((f"{name}." for name, module in deltas.named_modules() if module is deltas.whole), "")
