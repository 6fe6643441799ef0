"""Tokenizer of a backbone, bounds on its files, and an id of its behaviour."""

import hashlib
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from search_space.json_text import read_json_text
from trial_runner.backbones.locate import config_of, source_of
from trial_runner.errors import BackboneError
from trial_runner.files import check_regular, lfs_pointer
from trial_runner.huggingface import hub_access, one_line, quiet_transformers

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

_WHOLE = "tokenizer.json"
_FILES = (_WHOLE, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json")
_LISTS = ("vocab.txt", "merges.txt")
_MOST_BYTES = 64 << 20
_MOST_ENTRIES = 5_000_000
_MOST_ADDED = 20_000
"""Largest number of added tokens of one kind; each takes far longer than an entry of the vocabulary."""
_MOST_STEPS = 1_000
_MOST_LETTERS = 10_000
_MOST_TIMES_LONGER = 100
"""Largest growth of a text by all steps: twice that of any inspected real tokenizer."""

_SHOWN = 60

_IDS: "WeakKeyDictionary[PreTrainedTokenizerFast, str]" = WeakKeyDictionary()


def load_tokenizer(name: str) -> "PreTrainedTokenizerFast":
    """Load the tokenizer of a backbone, once per process; callers that change it must copy it.

    Args:
        name: ``"embedded"``, a folder with a ``config.json``, or a hub name.

    Raises:
        BackboneError: If it cannot be found or read, or the backbone's padding token has no embedding.
    """
    config = config_of(name)
    source = source_of(name)
    try:
        tokenizer = _read(source, _files(Path(source)))
    except (OSError, ValueError, ImportError) as error:
        raise BackboneError(f"backbone {name} must have a readable tokenizer; {one_line(error)}") from error
    if len(tokenizer) <= len(tokenizer.all_special_ids):  # what transformers makes of a folder without one
        raise BackboneError(f"backbone {name} must have a tokenizer with a vocabulary; got special tokens only.")
    embeddings, padding = config.get("vocab_size"), config.get("pad_token_id")
    if isinstance(embeddings, int) and isinstance(padding, int) and padding >= embeddings:
        raise BackboneError(
            f"pad_token_id in the config of backbone {name} must be below its {embeddings} embeddings; got {padding}. "
            "Name another token, or resize the embeddings."
        )
    return tokenizer


def check_ids(tokenizer: "PreTrainedTokenizerFast", config: Mapping[str, Any], ids: "Iterable[NDArray[Any]]") -> None:
    """Check that a backbone has an embedding for every token of some texts.

    Tokens that occur in none of them may lack one: some models have added tokens that were never used.

    Args:
        tokenizer: Tokenizer, for the message.
        config: Entries of the backbone's ``config.json``.
        ids: Token ids of the texts.

    Raises:
        BackboneError: If a token has none.
    """
    largest = max((int(some.max(initial=0)) for some in ids), default=0)
    embeddings = config.get("vocab_size")
    if isinstance(embeddings, int) and largest >= embeddings:
        token = str(tokenizer.convert_ids_to_tokens(largest))[:_SHOWN]
        raise BackboneError(
            f"the tokenizer's largest id must be below the backbone's {embeddings} embeddings; got {largest} "
            f"({token!r}). Take the tokenizer that the backbone was trained with, or resize its embeddings."
        )


@lru_cache(maxsize=2)
def _read(source: str, _: tuple[tuple[str, int, int], ...]) -> "PreTrainedTokenizerFast":
    """Read a tokenizer, which takes many seconds for a large vocabulary."""
    with hub_access(source), quiet_transformers():
        from transformers import AutoTokenizer

        check_tokenizer_files(source)
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    _IDS[tokenizer] = _computed_id(tokenizer)
    return tokenizer


def check_tokenizer_files(source: str) -> None:
    """Refuse files of a tokenizer whose reading, or use on a text, would take unbounded time or memory.

    Args:
        source: Folder, or hub name.

    Raises:
        OSError: If one is no regular file, or too large.
        ValueError: If one contains too much.
    """
    folder = Path(source)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(source, allow_patterns=[*_FILES, *_LISTS]))
    for name in (*_FILES, *_LISTS):
        if (folder / name).exists():
            check_regular(folder / name, most_bytes=_MOST_BYTES)
            if pointer := lfs_pointer(folder / name):
                raise BackboneError(pointer)
            _check_text(name, (folder / name).read_text(encoding="utf-8"))


def _check_text(name: str, text: str) -> None:
    _check_most(name, "entries", sum(map(text.count, ",[{" if name in _FILES else "\n")), _MOST_ENTRIES)
    entries = read_json_text(text) if name in _FILES else None
    if not isinstance(entries, Mapping) or name == "vocab.json":
        return
    for key in ("added_tokens", "added_tokens_decoder", *(() if name == _WHOLE else entries)):
        value = entries.get(key)
        if isinstance(value, list | Mapping):
            _check_most(name, f"entries of {key}", len(value), _MOST_ADDED)
    if name == _WHOLE:
        steps = [entries.get(key) for key in ("normalizer", "pre_tokenizer", "post_processor", "decoder")]
        values = list(_values(steps))
        _check_most(name, "steps", len(values), _MOST_STEPS)
        letters = (len(one) for one in values if isinstance(one, str))
        _check_most(name, "letters of a text in a step", max(letters, default=0), _MOST_LETTERS)
        if any(_explodes(str(one["Regex"])) for one in values if isinstance(one, Mapping) and "Regex" in one):
            raise ValueError(f"{name} must have no expression that repeats what repeats or chooses itself")
        growth = prod(_times_longer(one) for one in values if isinstance(one, Mapping))
        _check_most(name, "times the letters of a text", growth, _MOST_TIMES_LONGER)


def _check_most(name: str, what: str, count: float, most: int) -> None:
    if count > most:
        raise ValueError(f"{name} must have at most {most:,} {what}; it has {int(min(count, 10**15)):,}")


def _values(value: Any) -> Iterator[Any]:
    """Yield all values nested in a value, except maps of characters."""
    yield value
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _values(None if key == "precompiled_charsmap" else one)
    elif isinstance(value, list):
        for one in value:
            yield from _values(one)


_ATOM = re.compile(r"\\[pPx]\{[^}]*\}|\\.|\[(?:\\.|[^\]\\])*\]", re.DOTALL)
_FEW_TIMES = re.compile(r"\{[0-9]\}")
_GROUP = re.compile(r"\(([^()]*)\)(?=([*+{])?)")
_CHOICE = re.compile(r"[*+{|]")


def _explodes(expression: str) -> bool:
    """Return whether a repeated group contains repetitions or choices, so that matching may take exponential time."""
    left = _FEW_TIMES.sub("", _ATOM.sub("x", expression))
    while found := _GROUP.search(left):
        has_choice = _CHOICE.search(found[1]) is not None
        if has_choice and found[2]:
            return True
        left = f"{left[: found.start()]}{'x|' if has_choice else 'x'}{left[found.end() :]}"
    return False


def _times_longer(step: Mapping[str, Any]) -> float:
    """Return the largest factor by which a step lengthens a text."""
    content, pattern = step.get("content"), step.get("pattern")
    if step.get("type") != "Replace" or not isinstance(content, str) or not isinstance(pattern, Mapping):
        return 1
    replaced = pattern.get("String")
    return max(1, len(content) / len(replaced)) if isinstance(replaced, str) and replaced else 1 + len(content)


def _files(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, size and time of the files of a folder, so that a changed one is read anew."""
    if not folder.is_dir():
        return ()
    found = [(file.name, file.stat()) for file in sorted(folder.iterdir()) if file.is_file()]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in found)


def tokenizer_id(tokenizer: "PreTrainedTokenizerFast") -> str:
    """Return the SHA-256 over the behaviour of a tokenizer, as hex; equal for any location of the same tokenizer."""
    return _IDS.get(tokenizer) or _computed_id(tokenizer)


def _computed_id(tokenizer: "PreTrainedTokenizerFast") -> str:
    if not tokenizer.is_fast:
        return _id_of_files(tokenizer)
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    for setting_of_the_last_call in ("truncation", "padding"):
        state.pop(setting_of_the_last_call, None)
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _id_of_files(tokenizer: "PreTrainedTokenizerFast") -> str:
    """Return the id of a tokenizer in Python, such as Marian's: over its class, its added tokens and its files."""
    added = sorted(tokenizer.get_added_vocab().items())
    digest = hashlib.sha256(
        f"{type(tokenizer).__name__} {sorted(tokenizer.special_tokens_map.items())} {added}".encode()
    )
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(map(Path, tokenizer.save_vocabulary(folder))):
            digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
