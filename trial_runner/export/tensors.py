"""The tensors that must be stored of a delta set, and a delta set with these tensors again.

They are its parameters, named ``deltas.`` and their path, but for forms of the whole model: of diff pruning the places
that are kept and their changes, of a random subspace the seeds of its projections beside its numbers.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.whole_model import IntrinsicDelta, SparseDelta
from trial_runner.errors import ExportError

PREFIX = "deltas."
_PLACES, _CHANGES, _SEEDS = "places", "changes", "seeds"


def stored_tensors(deltas: DeltaSet) -> dict[str, Tensor]:
    """Everything that must be stored of a folded delta set, copied to the CPU."""
    path = _whole_path(deltas)
    tensors: dict[str, Tensor] = dict(deltas.named_parameters())
    if isinstance(deltas.whole, SparseDelta):
        tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(path)}
        places, changes = deltas.whole.kept()
        tensors |= {f"{path}{_PLACES}": places, f"{path}{_CHANGES}": changes}
    if isinstance(deltas.whole, IntrinsicDelta):
        tensors[f"{path}{_SEEDS}"] = deltas.whole.seeds
    return {f"{PREFIX}{name}": tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def number_stored(tensors: Mapping[str, Tensor]) -> int:
    """How many trained parameters some tensors hold; places and seeds are none."""
    return sum(tensor.numel() for name, tensor in tensors.items() if tensor.is_floating_point() and _is_delta(name))


@torch.no_grad()
def load_tensors(deltas: DeltaSet, tensors: Mapping[str, Tensor]) -> None:
    """Give a folded delta set what `stored_tensors` returned.

    Raises:
        ExportError: If a tensor is missing, unknown or of another shape.
    """
    given = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items() if _is_delta(name)}
    path = _whole_path(deltas)
    try:
        if isinstance(deltas.whole, SparseDelta):
            _fix(deltas.whole, given.pop(f"{path}{_PLACES}"), given.pop(f"{path}{_CHANGES}"))
        if isinstance(deltas.whole, IntrinsicDelta):
            deltas.whole.seeds = given.pop(f"{path}{_SEEDS}")
    except (KeyError, IndexError, RuntimeError) as error:
        raise ExportError(f"an export must hold whole tensors; got a problem with {error}.") from error
    skipped = path if isinstance(deltas.whole, SparseDelta) else None
    named = {name: one for name, one in deltas.named_parameters() if skipped is None or not name.startswith(skipped)}
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


def _fix(sparse: SparseDelta, places: Tensor, changes: Tensor) -> None:
    """Put kept changes in their places, where the second stage of diff pruning leaves them."""
    device = sparse.change.device
    sparse.change.zero_()
    sparse.change[places.to(device)] = changes.to(device, sparse.change.dtype)
    sparse.mask.zero_()[places.to(device)] = True
    sparse.is_fixed.fill_(True)
