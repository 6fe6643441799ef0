"""What training left of a trial, read from the snapshot of its last step, and the project's own format of it.

What is stored of a delta set are its parameters, named ``deltas.`` and their path, but for forms of the whole model: of
diff pruning the places that are kept and their changes, of a random subspace the seeds of its projections beside its
numbers. The files are ``delta.safetensors`` and ``delta.json``.
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


_BUFFERS = "buffers.deltas."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedDelta:
    """What must be kept of a trial: nothing of a pack, an optimiser, or a network that only served training.

    Attributes:
        deltas: Folded, in evaluation mode.
        head: The task head; None where the task has none of its own.
        trained_as: The configuration before it was folded.
        counts: Of ``trained_as``.
        backbone_sha256: Hash of the weights of the backbone it was trained on.
    """

    deltas: DeltaSet
    head: TaskHead | None
    trained_as: Configuration
    counts: Counts
    backbone_sha256: str

    @property
    def configuration(self) -> Configuration:
        """What is stored."""
        return self.deltas.configuration

    @property
    def is_folded(self) -> bool:
        """Whether tables stand where networks were, so that outputs agree with the trial's up to rounding only."""
        return self.configuration != self.trained_as

    def tensors(self) -> dict[str, Tensor]:
        """Everything that is stored of the deltas.

        Raises:
            ExportError: If it is not as much as the configuration counts.
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
    """Take what must be kept out of a snapshot.

    Args:
        snapshot: Of the trial's last step.
        shape: The backbone it was trained on.
        frozen: Weights of the base model by name; needed by forms that are computed of them.

    Raises:
        SnapshotError: If the snapshot lacks something.
        CodecError: If its configuration cannot be read.
    """
    tensors = {name: tensor for name, tensor in snapshot.tensors.items() if isinstance(tensor, Tensor)}
    try:
        facts: Mapping[str, Any] = snapshot.facts
        configuration, seed = configuration_from_json(facts["configuration"]), int(facts["seed"])
        counts = count(configuration, shape)
        held = sum(tensor.numel() for name, tensor in tensors.items() if name.startswith(PREFIX))
        if held != counts.trained:  # before anything is built of it
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
    """The trained deltas, folded."""
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
        folder: Exists; see `new_folder`.
        backbone: Of which it is one.
        about: More to say in ``delta.json``: JSON-able values by names of their own.

    Raises:
        ExportError: If the tensors are not those that the configuration counts.
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
    """Write ``delta.json``: what an export of any form is.

    Args:
        folder: With the weights.
        form: ``deltaspace``, ``peft`` or ``merged``.
        backbone: Of which it is one.
        about: See `write_delta`.
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
