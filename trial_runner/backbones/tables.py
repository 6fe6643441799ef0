"""Cache of port tables discovered for backbones that no family supports, keyed by their config.

`trial_runner.port_discovery` makes them; here they are read without torch.
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
"""Version of the contract of edits: a table that passed another one is made anew."""


def proved_entry(entries: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the cached table for a config that no family supports; None without one.

    Raises:
        UnsupportedBackboneError: If discovery has failed for it.
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
    """Return the error of a model type that cannot be used."""
    return UnsupportedBackboneError(
        f"{model_type} backbones have no table of ports, and one must keep the contract of edits; got: {problem}. "
        "Use another backbone."
    )


def is_unknown(entries: Mapping[str, Any]) -> bool:
    """Return whether no family supports the model type of a config, and none is refused by name."""
    model_type = str(entries.get("model_type"))
    return model_type not in REFUSED and not any(model_type in family.model_types for family in FAMILIES.values())


def _path(entries: Mapping[str, Any]) -> Path:
    """Return the cache file of a config, named by its content and the versions that computed it."""
    made_by = [_CONTRACT, *(version(name) for name in ("deltaspace", "transformers"))]
    content = json.dumps([made_by, dict(entries)], sort_keys=True, default=str)
    return default_cache_folder() / "tables" / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.json"


def keep(entries: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Write the result of a discovery to the cache, atomically; an unwritable cache is ignored.

    Args:
        entries: Entries of the config.
        found: Mapping with the ``problem``, or with the ``entry`` to add to the config.
    """
    path = _path(entries)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished:
            unfinished.write_text(json.dumps(found, sort_keys=True), encoding="utf-8")
