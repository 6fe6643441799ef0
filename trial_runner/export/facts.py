"""What is said of an export in its JSON file; where its backbone comes from, and the licence of the weights."""

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
from trial_runner.errors import ExportError, ExportWishError
from trial_runner.files import check_regular, expanded

_MOST_BYTES = 64_000_000
"""Of a JSON file of an export."""
_USUAL = {"dtype": "auto", "quantization": "none"}


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", strict=True))
class BackboneFacts:
    """Which backbone an export belongs to.

    Attributes:
        name: ``"embedded"``, a folder, or a hub name.
        revision: Commit of the hub that was loaded; None for what is not from the hub.
        weights_sha256: As `trial_runner.backbones.Backbone` has it.
        parameters: The denominator of percentages.
        dtype: As `BackboneSource` has it; left out of the file where it is ``auto``.
        quantization: As `BackboneSource` has it; left out of the file where it is ``none``.
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
        """Its name, and how its weights are held."""
        return self.source_at(self.name)

    def source_at(self, name: str) -> BackboneSource:
        """The same at another place."""
        return BackboneSource(name=name, dtype=self.dtype, quantization=self.quantization)

    def as_json(self) -> dict[str, object]:
        """The fields by name; those that came later only where they say something."""
        usual = _USUAL.items()
        return {key: value for key, value in asdict(self).items() if (key, value) not in usual}

    @classmethod
    def from_json(cls, stored: Any) -> "BackboneFacts":
        """Read `as_json` back.

        Raises:
            ExportError: If a field is missing, unknown or of another type.
        """
        try:
            return cls(**stored)
        except (TypeError, ValidationError) as error:
            problems = error.errors() if isinstance(error, ValidationError) else []
            said = next((f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problems), "no names and values")
            raise ExportError(
                f"what an export says of its backbone must be whole; got {said[:200]}. Export it again."
            ) from error


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, as hex.

    Raises:
        ExportError: If it cannot be read.
    """
    try:
        check_regular(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ExportError(f"an export must have a file {path.name}; got: {error}.") from error


def write_json(path: Path, facts: Mapping[str, object]) -> None:
    """Write facts as indented JSON."""
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read `write_json` back.

    Raises:
        ExportError: If the file is missing or no JSON object.
    """
    try:
        check_regular(path, most_bytes=_MOST_BYTES)
        facts = read_json_text(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExportWishError(f"an export must have a readable {path.name}; {path}: {error.strerror}.") from error
    except ValueError as error:
        raise ExportError(f"an export must have a readable {path.name}; got: {error}.") from error
    if not isinstance(facts, dict):
        raise ExportError(f"{path} must be a JSON object; got {type(facts).__name__}.")
    return facts


def labels_of(facts: Mapping[str, Any], folder: Path) -> tuple[str, ...] | None:
    """The labels that an export tells; None without a task head.

    Raises:
        ExportError: If they are no texts.
    """
    labels = facts.get("labels")
    if labels is not None and not (isinstance(labels, list) and all(isinstance(one, str) for one in labels)):
        raise ExportError(f"the labels of the export in {folder} must be a list of texts; they are not.")
    return None if labels is None else tuple(labels)


_EMBEDDED_LICENCE = "CC BY-SA 4.0"


def revision_of(name: str) -> str | None:
    """Commit of the cached files of a hub backbone; None for a folder, or where nothing is cached."""
    file = _cached(name, "config.json")
    is_commit = file is not None and file.parent.parent.name == "snapshots"
    return file.parent.name if file is not None and is_commit else None


def licence_of(name: str) -> str | None:
    """Licence of a backbone's weights, as its model card says in its first lines; None where it does not."""
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
    """A name as it can be said elsewhere: of a path the last part."""
    return Path(name).name if expanded(name).exists() or Path(name).is_absolute() else name


def licence_line(name: str) -> str:
    """One line on what may be done with an export."""
    licence = licence_of(name)
    stated = f"are under {licence}" if licence else "have a licence of their own (see its model card)"
    return f"The weights of the backbone {public_name(name)} {stated}; what was trained on them is bound by it as well."


def _cached(name: str, file: str) -> Path | None:
    """A file of a backbone that is on this machine."""
    source = source_of(name)
    if Path(source).is_dir():
        path = Path(source) / file
        return path if path.is_file() else None
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(source, file)
    return Path(found) if isinstance(found, str) else None
