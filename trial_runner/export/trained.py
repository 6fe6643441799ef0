"""Trained delta of a trial, read from the snapshot of its last step, and the project's own format of it.

The stored tensors of a delta set are its parameters, named ``deltas.`` and their path. Forms of the whole model differ.
Diff pruning stores the positions and values of its changes. A random subspace stores the seeds of its projections and
its numbers. The files are ``delta.safetensors`` and ``delta.json``.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from search_space.backbones.shape import BackboneShape
from search_space.codec import configuration_from_json, configuration_to_json
from search_space.configuration import Configuration
from search_space.errors import CodecError, InvalidEditError
from search_space.parameter_counts.counts import Counts, count
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.fold import fold, folded_configuration
from trial_runner.deltas.frozen_matrix import Frozen
from trial_runner.errors import ExportError, SnapshotError
from trial_runner.export.facts import BackboneFacts, file_sha256, write_json
from trial_runner.export.heads import TaskHead
from trial_runner.requests import Snapshot
from trial_runner.seeds import derived_seed

PREFIX = "deltas."

_DTYPES = frozenset(map(str, (torch.float16, torch.bfloat16, torch.float32, torch.float64)))


def stored_tensors(deltas: DeltaSet) -> dict[str, Tensor]:
    """Return all stored tensors of a folded delta set, copied to the CPU."""
    path, whole = _whole_path(deltas), deltas.whole
    tensors: dict[str, Tensor] = dict(deltas.named_parameters())
    if whole is not None:
        if not whole.stores_parameters:
            tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith(path)}
        tensors |= {f"{path}{name}": tensor for name, tensor in whole.own_tensors().items()}
    return {f"{PREFIX}{name}": tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def number_stored(tensors: Mapping[str, Tensor]) -> int:
    """Return the number of trained parameters in stored tensors, without positions and seeds."""
    return sum(tensor.numel() for name, tensor in tensors.items() if tensor.is_floating_point() and _is_delta(name))


def check_fits(configuration: Configuration, shape: BackboneShape, tensors: Mapping[str, Tensor]) -> None:
    """Check that tensors have as many parameters as a folded configuration stores, before modules are built.

    Raises:
        ExportError: If they have not, or the configuration is not valid on the backbone.
    """
    try:
        stored, held = count(configuration, shape).stored, number_stored(tensors)
    except InvalidEditError as error:
        raise ExportError(f"the configuration of an export must be valid on its backbone; {error}") from error
    if stored != held:
        raise ExportError(f"an export must hold the {stored:,} parameters of its configuration; got {held:,}.")
    if folded_configuration(configuration) != configuration:
        raise ExportError("an export must hold folded tables; got a network that computes one. Export it again.")
    odd = sorted({str(one.dtype) for one in tensors.values() if one.is_floating_point()} - _DTYPES)
    if odd:
        raise ExportError(f"an export must hold weights of 16, 32 or 64 bits; got {', '.join(odd)}.")


@torch.no_grad()
def load_tensors(deltas: DeltaSet, tensors: Mapping[str, Tensor]) -> None:
    """Load the tensors of `stored_tensors` into a folded delta set.

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
            raise ExportError(f"cannot load an export's tensors: problem with {error}. Export it again.") from error
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
    """Return the path of the whole-model change in a delta set, with a dot; empty without one."""
    return next((f"{name}." for name, module in deltas.named_modules() if module is deltas.whole), "")


_BUFFERS = "buffers.deltas."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedDelta:
    """Trained modules of a trial, without pack, optimizer, and networks used in training alone.

    Attributes:
        deltas: Delta set, folded, in evaluation mode.
        head: Task head; None where the task has none of its own.
        trained_as: Configuration before it was folded.
        counts: Parameter counts of ``trained_as``.
        backbone_sha256: Hash of the weights of the backbone.
    """

    deltas: DeltaSet
    head: TaskHead | None
    trained_as: Configuration
    counts: Counts
    backbone_sha256: str

    @property
    def configuration(self) -> Configuration:
        """Stored configuration."""
        return self.deltas.configuration

    @property
    def is_folded(self) -> bool:
        """Whether networks were replaced by tables, so that outputs equal the trial's only up to rounding."""
        return self.configuration != self.trained_as

    def tensors(self) -> dict[str, Tensor]:
        """Return all stored tensors of the deltas.

        Raises:
            ExportError: If their number of parameters differs from that of the configuration.
        """
        tensors = stored_tensors(self.deltas)
        held, counted = number_stored(tensors), self.deltas.counts.stored
        if held != counted:
            raise ExportError(
                f"an export must hold the {counted:,} parameters that its configuration counts; got {held:,}. "
                "This is a bug in trial_runner/export or search_space/parameter_counts/counts.py."
            )
        return tensors


def trained_delta(snapshot: Snapshot, shape: BackboneShape, *, frozen: Frozen | None = None) -> TrainedDelta:
    """Build the trained delta from a snapshot.

    Args:
        snapshot: Snapshot of the trial's last step.
        shape: Shape of the backbone.
        frozen: Weights of the base model by name; needed by forms that are computed from them.

    Raises:
        SnapshotError: If the snapshot is incomplete.
        CodecError: If its configuration cannot be read.
    """
    tensors = {name: tensor for name, tensor in snapshot.tensors.items() if isinstance(tensor, Tensor)}
    try:
        facts: Mapping[str, Any] = snapshot.facts
        configuration, seed = configuration_from_json(facts["configuration"]), int(facts["seed"])
        counts = count(configuration, shape)
        held = sum(tensor.numel() for name, tensor in tensors.items() if name.startswith(PREFIX))
        if held != counts.trained:  # before modules are built
            raise ValueError(f"its {held:,} parameters, where its configuration trains {counts.trained:,}")
        deltas = _deltas(configuration, shape, tensors, seed, frozen)
        labels = tuple(str(label) for label in facts.get("labels", ()))
        head = {name.removeprefix(HEAD_PREFIX): one for name, one in tensors.items() if name.startswith(HEAD_PREFIX)}
        return TrainedDelta(
            deltas=deltas,
            head=TaskHead.of(head, labels, width=shape.width) if head else None,
            trained_as=configuration,
            counts=counts,
            backbone_sha256=str(facts["backbone_sha256"]),
        )
    except CodecError:
        raise
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise SnapshotError(
            f"a snapshot of trial {snapshot.trial} must be whole to be exported; got a problem with {error}."
        ) from error


def _deltas(
    configuration: Configuration,
    shape: BackboneShape,
    tensors: Mapping[str, Tensor],
    seed: int,
    frozen: Frozen | None,
) -> DeltaSet:
    """Build the trained deltas, folded."""
    dtype = next((one.dtype for name, one in tensors.items() if name.startswith(PREFIX)), torch.float32)
    deltas = DeltaSet(configuration, shape, seed=derived_seed(seed, "deltas"), dtype=dtype, frozen=frozen)
    with torch.no_grad():
        for name, held in deltas.state_dict(keep_vars=True).items():
            stored = tensors[f"{PREFIX}{name}" if isinstance(held, torch.nn.Parameter) else f"{_BUFFERS}{name}"]
            if stored.shape != held.shape:
                raise ValueError(f"{name}, which has shape {tuple(stored.shape)}, not {tuple(held.shape)}")
            held.copy_(stored)
    return fold(deltas, shape, frozen=frozen).eval()


DELTA_FILE, DELTA_FACTS = "delta.safetensors", "delta.json"
HEAD_PREFIX = "head."
DELTASPACE = "deltaspace"
SCHEMA_VERSION = 1


def write_delta(
    folder: Path, trained: TrainedDelta, *, backbone: BackboneFacts, about: Mapping[str, object] | None = None
) -> None:
    """Write a trained delta into a folder.

    Args:
        folder: Existing folder; see `new_folder`.
        backbone: Backbone of the delta.
        about: More entries of ``delta.json``: JSON values by names not in use.

    Raises:
        ExportError: If the number of parameters differs from that of the configuration.
    """
    head = {} if trained.head is None else trained.head.tensors()
    tensors = trained.tensors() | {f"{HEAD_PREFIX}{name}": tensor for name, tensor in head.items()}
    save_file(tensors, folder / DELTA_FILE, metadata={"format": DELTASPACE})
    write_facts(folder, DELTASPACE, trained, backbone=backbone, about=about)


def write_facts(
    folder: Path,
    form: str,
    trained: TrainedDelta,
    *,
    backbone: BackboneFacts,
    about: Mapping[str, object] | None = None,
) -> None:
    """Write ``delta.json``, the description of an export of any form.

    Args:
        folder: Folder with the weights.
        form: ``deltaspace``, ``peft`` or ``merged``.
        backbone: Backbone of the delta.
        about: More entries; see `write_delta`.
    """
    head = {} if trained.head is None else trained.head.tensors()
    is_own = form == DELTASPACE
    facts: dict[str, object] = {
        "format": form,
        "schema_version": SCHEMA_VERSION,
        "backbone": backbone.as_json(),
        "configuration": configuration_to_json(trained.configuration),
        "trained_as": configuration_to_json(trained.trained_as) if trained.is_folded else None,
        "labels": None if trained.head is None else list(trained.head.labels),
        "counts": asdict(trained.counts) | {"head": sum(tensor.numel() for tensor in head.values())},
        "weights": {"file": DELTA_FILE, "sha256": file_sha256(folder / DELTA_FILE)} if is_own else None,
        **(about or {}),
    }
    write_json(folder / DELTA_FACTS, facts)
