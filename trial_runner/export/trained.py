"""What training left of a trial, read from the snapshot of its last step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from search_space.backbones.shape import BackboneShape
from search_space.codec import configuration_from_json
from search_space.configuration import Configuration
from search_space.errors import CodecError
from search_space.parameter_counts.counts import Counts, count
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.fold import fold
from trial_runner.deltas.frozen_matrix import Frozen
from trial_runner.errors import ExportError, SnapshotError
from trial_runner.export.heads import TaskHead
from trial_runner.export.tensors import number_stored, stored_tensors
from trial_runner.requests import Snapshot
from trial_runner.seeds import derived_seed

_DELTAS, _BUFFERS, _HEAD = "deltas.", "buffers.deltas.", "head."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedDelta:
    """What must be kept of a trial: nothing of a pack, an optimiser, or a network that only served training.

    Attributes:
        deltas: Folded, in evaluation mode.
        head: The task head; None where the task has none of its own.
        trained_as: The configuration before it was folded.
        counts: Of ``trained_as``.
        backbone_sha256: Hash of the weights of the backbone it was trained on.
        step: Optimiser steps done.
        seed: Of its training.
    """

    deltas: DeltaSet
    head: TaskHead | None
    trained_as: Configuration
    counts: Counts
    backbone_sha256: str
    trial: int
    step: int
    seed: int

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
        _check_fits(configuration, shape, tensors)
        deltas = _deltas(configuration, shape, tensors, seed, frozen)
        labels = tuple(str(label) for label in facts.get("labels", ()))
        head = {name.removeprefix(_HEAD): one for name, one in tensors.items() if name.startswith(_HEAD)}
        return TrainedDelta(
            deltas=deltas,
            head=TaskHead.of(head, labels, width=shape.width) if head else None,
            trained_as=configuration,
            counts=count(configuration, shape),
            backbone_sha256=str(facts["backbone_sha256"]),
            trial=snapshot.trial,
            step=snapshot.step,
            seed=seed,
        )
    except CodecError:
        raise
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise SnapshotError(
            f"a snapshot of trial {snapshot.trial} must be whole to be exported; got a problem with {error}."
        ) from error


def _check_fits(configuration: Configuration, shape: BackboneShape, tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors that are not as many as a configuration trains, before anything is built of it."""
    held = sum(tensor.numel() for name, tensor in tensors.items() if name.startswith(_DELTAS))
    trained = count(configuration, shape).trained
    if held != trained:
        raise ValueError(f"its {held:,} parameters, where its configuration trains {trained:,}")


def _deltas(
    configuration: Configuration,
    shape: BackboneShape,
    tensors: Mapping[str, Tensor],
    seed: int,
    frozen: Frozen | None,
) -> DeltaSet:
    """The trained deltas, folded."""
    dtype = next((one.dtype for name, one in tensors.items() if name.startswith(_DELTAS)), torch.float32)
    deltas = DeltaSet(configuration, shape, seed=derived_seed(seed, "deltas"), dtype=dtype, frozen=frozen)
    with torch.no_grad():
        for name, held in deltas.state_dict(keep_vars=True).items():
            stored = tensors[f"{_DELTAS}{name}" if isinstance(held, torch.nn.Parameter) else f"{_BUFFERS}{name}"]
            if stored.shape != held.shape:
                raise ValueError(f"{name}, which has shape {tuple(stored.shape)}, not {tuple(held.shape)}")
            held.copy_(stored)
    return fold(deltas, shape, frozen=frozen).eval()
