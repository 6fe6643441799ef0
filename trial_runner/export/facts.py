"""JSON files of exports; source of the backbone and licence of its weights."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from search_space.field_types import Text
from search_space.json_text import read_json_text
from trial_runner.backbones import EMBEDDED
from trial_runner.backbones.locate import source_of
from trial_runner.backbones.source import BackboneSource, Dtype, Quantization
from trial_runner.errors import ExportError, ExportRequestError
from trial_runner.files import check_regular, expanded

_MOST_BYTES = 64_000_000
"""Maximum size of a JSON file of an export, in bytes."""
_DEFAULTS = {"dtype": "auto", "quantization": "none"}


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", strict=True))
class BackboneFacts:
    """Identity of the backbone of an export.

    Attributes:
        name: ``"embedded"``, a folder, or a hub name.
        revision: Commit that was loaded from the hub; None for other sources.
        weights_sha256: Hash of the weights; see `trial_runner.backbones.Backbone`.
        parameters: Number of parameters, the denominator of percentages.
        dtype: Type of the loaded weights; see `BackboneSource`. Omitted from the file where it is ``auto``.
        quantization: Quantization of the loaded weights; see `BackboneSource`. Omitted from the file where it is
            ``none``.
    """

    name: Text
    revision: str | None
    weights_sha256: str
    family: str
    parameters: int
    dtype: Dtype = "auto"
    quantization: Quantization = "none"

    @property
    def source(self) -> BackboneSource:
        """Name, dtype and quantization of the backbone."""
        return self.source_at(self.name)

    def source_at(self, name: str) -> BackboneSource:
        """Return the source with another name, of the same dtype and quantization."""
        return BackboneSource(name=name, dtype=self.dtype, quantization=self.quantization)

    def as_json(self) -> dict[str, object]:
        """Return the fields by name, without dtype and quantization where they have their defaults."""
        defaults = _DEFAULTS.items()
        return {key: value for key, value in asdict(self).items() if (key, value) not in defaults}

    @classmethod
    def from_json(cls, stored: Any) -> "BackboneFacts":
        """Build the facts from the value of `as_json`.

        Raises:
            ExportError: If a field is missing, unknown or of another type.
        """
        try:
            return cls(**stored)
        except (TypeError, ValidationError) as error:
            problems = error.errors() if isinstance(error, ValidationError) else []
            got = next((f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problems), "no names and values")
            raise ExportError(
                f"the backbone of an export must have its fields; got {got[:200]}. Export it again."
            ) from error


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, as hex.

    Raises:
        ExportError: If the file cannot be read.
    """
    try:
        check_regular(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ExportError(f"cannot read {path.name} of an export: {error}. Export it again.") from error


def write_json(path: Path, facts: Mapping[str, object]) -> None:
    """Write facts as indented JSON."""
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of `write_json`.

    Raises:
        ExportError: If the file is missing or contains no JSON object.
    """
    try:
        check_regular(path, most_bytes=_MOST_BYTES)
        facts = read_json_text(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExportRequestError(
            f"an export must have a readable {path.name}; got {path}: {error.strerror}."
        ) from error
    except ValueError as error:
        raise ExportError(f"an export must have a readable {path.name}; got {error}. Export it again.") from error
    if not isinstance(facts, dict):
        raise ExportError(f"{path} must be a JSON object; got {type(facts).__name__}.")
    return facts


def labels_of(facts: Mapping[str, Any], folder: Path) -> tuple[str, ...] | None:
    """Return the labels of an export; None without a task head.

    Raises:
        ExportError: If they are no list of texts.
    """
    labels = facts.get("labels")
    if labels is not None and not (isinstance(labels, list) and all(isinstance(one, str) for one in labels)):
        raise ExportError(f"the labels of the export in {folder} must be a list of texts; got {labels!r:.100}.")
    return None if labels is None else tuple(labels)


_EMBEDDED_LICENCE = "CC BY-SA 4.0"


def revision_of(name: str) -> str | None:
    """Return the commit of the cached files of a hub backbone; None for a folder or without cached files."""
    file = _cached(name, "config.json")
    is_commit = file is not None and file.parent.parent.name == "snapshots"
    return file.parent.name if file is not None and is_commit else None


def licence_of(name: str) -> str | None:
    """Return the licence of a backbone's weights from the metadata of its model card; None without one."""
    if name == EMBEDDED:
        return _EMBEDDED_LICENCE
    card = _cached(name, "README.md")
    try:
        text = "" if card is None else card.read_text(encoding="utf-8")
        entries = yaml.safe_load(text.split("---")[1]) if text.startswith("---") else None
    except (OSError, ValueError, IndexError, yaml.YAMLError):
        return None
    stated = entries.get("license") if isinstance(entries, dict) else None
    return None if stated is None else str(stated)


def public_name(name: str) -> str:
    """Return a backbone's name without the folders of this machine: of a path the last part."""
    return Path(name).name if expanded(name).exists() or Path(name).is_absolute() else name


def licence_line(name: str) -> str:
    """Return one line on the licence of an export."""
    licence = licence_of(name)
    stated = f"are under {licence}" if licence else "have a licence of their own (see its model card)"
    return f"The weights of the backbone {public_name(name)} {stated}; it covers weights trained on them as well."


def _cached(name: str, file: str) -> Path | None:
    """Return the path of a backbone's file on this machine; None where it is absent."""
    source = source_of(name)
    if Path(source).is_dir():
        path = Path(source) / file
        return path if path.is_file() else None
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(source, file)
    return Path(found) if isinstance(found, str) else None
