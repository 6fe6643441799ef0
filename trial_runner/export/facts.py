"""What is said of an export in its JSON file."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from search_space.json_text import read_json_text
from trial_runner.errors import ExportError, ExportWishError


@dataclass(frozen=True, slots=True, kw_only=True)
class BackboneFacts:
    """Which backbone an export belongs to.

    Attributes:
        name: ``"embedded"``, a folder, or a hub name.
        revision: Commit of the hub that was loaded; None for what is not from the hub.
        weights_sha256: As `trial_runner.backbones.weights_sha256` computes it.
        parameters: The denominator of percentages.
    """

    name: str
    revision: str | None
    weights_sha256: str
    family: str
    parameters: int

    def as_json(self) -> dict[str, object]:
        """The fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Any) -> "BackboneFacts":
        """Read `as_json` back.

        Raises:
            ExportError: If a field is missing, unknown or of another type.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(stored, Mapping) or set(stored) != names:
            got = ", ".join(sorted(map(str, stored))) if isinstance(stored, Mapping) else type(stored).__name__
            raise ExportError(f"an export must say {', '.join(sorted(names))} of its backbone; got {got[:200]}.")
        texts = (stored["name"], stored["weights_sha256"], stored["family"], stored["revision"] or "")
        if not all(isinstance(one, str) for one in texts) or type(stored["parameters"]) is not int:
            raise ExportError("what an export says of its backbone must be texts and a number; got other values.")
        return cls(**stored)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, as hex.

    Raises:
        ExportError: If it cannot be read.
    """
    try:
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
        facts = read_json_text(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ExportWishError(f"an export must have a readable {path.name}; {path}: {error.strerror}.") from error
    except ValueError as error:
        raise ExportError(f"an export must have a readable {path.name}; got: {error}.") from error
    if not isinstance(facts, dict):
        raise ExportError(f"{path} must be a JSON object; got {type(facts).__name__}.")
    return facts
