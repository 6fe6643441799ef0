"""The project's own format: ``delta.safetensors`` and ``delta.json``."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from safetensors.torch import save_file

from search_space.codec import configuration_to_json
from trial_runner.export.facts import BackboneFacts, file_sha256, write_json
from trial_runner.export.trained import TrainedDelta

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
