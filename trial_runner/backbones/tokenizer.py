"""The tokenizer of a backbone, and a name for what it does."""

import hashlib
import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from trial_runner.backbones.locate import config_of, source_of
from trial_runner.errors import BackboneError
from trial_runner.huggingface import hub_access, one_line, quiet_transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_IDS: "WeakKeyDictionary[PreTrainedTokenizerFast, str]" = WeakKeyDictionary()


def load_tokenizer(name: str) -> "PreTrainedTokenizerFast":
    """The tokenizer that belongs to a backbone, read once a process; whoever changes it takes a copy.

    Args:
        name: ``"embedded"``, a folder with a ``config.json``, or a hub name.

    Raises:
        BackboneError: If it cannot be found or read, or has more tokens than the backbone has embeddings.
    """
    config = config_of(name)
    source = source_of(name)
    try:
        tokenizer = _read(source, _files(Path(source)))
    except (OSError, ValueError, ImportError) as error:
        raise BackboneError(f"backbone {name} must have a readable tokenizer; {one_line(error)}") from error
    if len(tokenizer) <= len(tokenizer.all_special_ids):  # what transformers makes of a folder without one
        raise BackboneError(f"backbone {name} must have a tokenizer with a vocabulary; got special tokens only.")
    if len(tokenizer) > config.get("vocab_size", len(tokenizer)):
        raise BackboneError(
            f"the tokenizer of backbone {name} must have at most {config['vocab_size']} tokens, one per embedding; "
            f"got {len(tokenizer)}."
        )
    return tokenizer


@lru_cache(maxsize=2)
def _read(source: str, _: tuple[tuple[str, int, int], ...]) -> "PreTrainedTokenizerFast":
    """Of a large vocabulary this takes many seconds."""
    with hub_access(source), quiet_transformers():
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    _IDS[tokenizer] = _computed_id(tokenizer)
    return tokenizer


def _files(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of the files of a folder, so that one that was changed is read anew."""
    if not folder.is_dir():
        return ()
    found = [(file.name, file.stat()) for file in sorted(folder.iterdir()) if file.is_file()]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in found)


def tokenizer_id(tokenizer: "PreTrainedTokenizerFast") -> str:
    """SHA-256 over what a tokenizer does to a text, as hex; equal wherever the same tokenizer is loaded from."""
    return _IDS.get(tokenizer) or _computed_id(tokenizer)


def _computed_id(tokenizer: "PreTrainedTokenizerFast") -> str:
    if not tokenizer.is_fast:
        return _id_of_files(tokenizer)
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    for setting_of_the_last_call in ("truncation", "padding"):
        state.pop(setting_of_the_last_call, None)
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _id_of_files(tokenizer: "PreTrainedTokenizerFast") -> str:
    """The same of one in Python, such as Marian's: over its class, its added tokens and the files it is made of."""
    added = sorted(tokenizer.get_added_vocab().items())
    digest = hashlib.sha256(
        f"{type(tokenizer).__name__} {sorted(tokenizer.special_tokens_map.items())} {added}".encode()
    )
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(map(Path, tokenizer.save_vocabulary(folder))):
            digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
