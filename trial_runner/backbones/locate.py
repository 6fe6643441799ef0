"""Location and ``config.json`` of a backbone. No torch, no weights."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from search_space.backbones import shape_of
from search_space.backbones.declared import ENTRY
from search_space.backbones.entries import check_bounds
from search_space.json_text import read_json_text
from trial_runner.backbones.tables import proved_entry
from trial_runner.errors import BackboneError
from trial_runner.files import expanded, is_pipe_or_device
from trial_runner.huggingface import bounded_line, hub_access, is_hub_name, one_line

EMBEDDED = "embedded"
_LONGEST_NAME = 4096
_FORMS = "backbone must be 'embedded', a folder with a config.json, or a hub name"
_ATTENTION_ENTRIES, _ATTENTIONS = ("attn_implementation", "_attn_implementation"), (None, "eager", "sdpa")


def embedded_folder() -> Path:
    """Return the folder of the backbone that ships with the package."""
    return Path(__file__).parent / "embedded" / "tiny_encoder"


def source_of(name: str) -> str:
    """Return the argument of ``from_pretrained`` for a backbone: a folder or a hub name. Does not call the hub.

    Args:
        name: ``"embedded"``, a folder with a ``config.json``, or a hub name.

    Raises:
        BackboneError: If it is a path without a ``config.json``, or neither a folder nor a possible hub name.
    """
    if name == EMBEDDED:
        return str(embedded_folder())
    if len(name) > _LONGEST_NAME:
        raise BackboneError(f"{_FORMS}; got a name of {len(name):,} characters.")
    path = expanded(name)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise BackboneError(f"{_FORMS}; got the folder {name}, which has no config.json.")
        for file in path.iterdir():
            if is_pipe_or_device(file):
                raise BackboneError(f"a backbone's folder must have regular files alone; {file} is none. Remove it.")
        return str(path)
    if path.exists():
        raise BackboneError(f"{_FORMS}; got the file {name}. Give its folder.")
    if difflib.get_close_matches(name, [EMBEDDED], cutoff=0.8):
        raise BackboneError(f"{_FORMS}; got {name!r}. Did you mean {EMBEDDED!r}?")
    if not is_hub_name(name):
        raise BackboneError(f"{_FORMS}; got {name!r}, and there is no such folder.")
    return name


def config_of(name: str) -> dict[str, Any]:
    """Return the entries of a backbone's ``config.json``, with its discovered table of ports if no family has its type.

    Raises:
        BackboneError: See `entries_of`.
        UnsupportedBackboneError: If discovery has failed for it.
    """
    entries = entries_of(name)
    proved = proved_entry(entries)
    return entries if proved is None else {**entries, ENTRY: proved}


def entries_of(name: str) -> dict[str, Any]:
    """Return the entries of a backbone's ``config.json``; of a hub backbone it is downloaded unless cached.

    Args:
        name: ``"embedded"``, a folder with a ``config.json``, or a hub name.

    Raises:
        BackboneError: If the backbone cannot be found, or if its ``config.json`` is no JSON object or names
            an attention function from outside transformers.
        UnsupportedBackboneError: If a number in it is larger than that of any backbone.
    """
    source = source_of(name)
    path = Path(source) / "config.json" if Path(source).is_dir() else _download_config(name)
    try:
        config = read_json_text(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BackboneError(f"config.json of backbone {name} must be readable JSON; {one_line(error)}.") from error
    if not isinstance(config, dict):
        raise BackboneError(f"config.json of backbone {name} must be a JSON object; got {type(config).__name__}.")
    check_bounds(config)
    _check_attention(name, config)
    return config


def _check_attention(backbone: str, value: object, entry: str = "") -> None:
    """Refuse attention functions that transformers would download as programs, also for a part of a model."""
    if isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            _check_attention(backbone, inner, entry if entry in _ATTENTION_ENTRIES else str(key))
    elif entry in _ATTENTION_ENTRIES and value not in _ATTENTIONS:
        raise BackboneError(
            f"{entry} of backbone {backbone} must be eager or sdpa; got {bounded_line(repr(value), 100)}. "
            "Delete it from the backbone's config.json."
        )


def position_limit(config: Mapping[str, Any]) -> int | None:
    """Return the number of tokens of the longest input (of either stack); None for positions without a limit.

    RoBERTa numbers its positions from ``pad_token_id + 1``, so that many of its rows are never used; MPNet, from 2.

    Raises:
        UnsupportedBackboneError: If the family is not supported, or an entry is missing or impossible.
    """
    shape = shape_of(config)
    rows = config.get("max_position_embeddings", config.get("n_positions"))
    if shape.positions.are_relative or not isinstance(rows, int):
        return None
    if shape.family not in ("roberta", "mpnet"):
        return rows
    return rows - 2 if shape.family == "mpnet" else rows - int(config.get("pad_token_id", 1)) - 1


def padding_token(config: Mapping[str, Any]) -> int:
    """Return the id that fills short rows: ``pad_token_id``, else the first ``eos_token_id``, else 0.

    Decoders often have no padding token. Padding is masked, so that any id works.
    """
    for name in ("pad_token_id", "eos_token_id"):
        value = config.get(name)
        token = value[0] if isinstance(value, list) and value else value
        if isinstance(token, int) and 0 <= token < config.get("vocab_size", token + 1):
            return token
    return 0


def _download_config(name: str) -> Path:
    """Return the ``config.json`` of a hub backbone, in the hub's cache."""
    with hub_access(name):
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError

        try:
            return Path(hf_hub_download(name, "config.json"))
        except (OSError, ValueError, EntryNotFoundError) as error:
            raise BackboneError(
                f"{_FORMS}; got {name!r}: there is no such folder, and on the hub: {one_line(error)}"
            ) from error
