"""Tables of ports that were made of backbones which no family knows: what was proved is kept by its content.

They are made in `trial_runner.port_discovery`; here they are found again, without torch.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from search_space.backbones import FAMILIES, REFUSED
from search_space.errors import UnsupportedBackboneError
from search_space.json_text import read_json_text
from trial_runner.files import default_cache_folder, whole_file

_CONTRACT = 1
"""Counts the contracts: a table that passed another one is made anew."""


def proved_entry(entries: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What was found earlier for a config that no family knows; None where nothing was, or where it cannot be used.

    Raises:
        UnsupportedBackboneError: If it cannot be used.
    """
    if not is_unknown(entries):
        return None
    try:
        known = read_json_text(_path(entries).read_text(encoding="utf-8"))
        problem, entry = known["problem"], known["entry"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if problem is not None:
        raise refusal(str(entries.get("model_type")), str(problem))
    return dict(entry)


def refusal(model_type: str, problem: str) -> UnsupportedBackboneError:
    """Why a model type cannot be used."""
    return UnsupportedBackboneError(
        f"{model_type} backbones have no table of ports, and one must keep the contract of edits; got: {problem}. "
        "Use another backbone."
    )


def is_unknown(entries: Mapping[str, Any]) -> bool:
    """Whether no family knows the model type of a config, and none is refused by name."""
    model_type = str(entries.get("model_type"))
    return model_type not in REFUSED and not any(model_type in family.model_types for family in FAMILIES.values())


def _path(entries: Mapping[str, Any]) -> Path:
    """Where what was found for a config is kept, by its content and what computed it."""
    made_by = [_CONTRACT, *(version(name) for name in ("deltaspace", "transformers"))]
    content = json.dumps([made_by, dict(entries)], sort_keys=True, default=str)
    return default_cache_folder() / "tables" / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.json"


def keep(entries: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Keep what was found for a config, whole or not at all; a cache that cannot be written is none.

    Args:
        entries: Of the config.
        found: The ``problem``, or the ``entry`` that the config takes with it.
    """
    path = _path(entries)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished:
            unfinished.write_text(json.dumps(found, sort_keys=True), encoding="utf-8")
