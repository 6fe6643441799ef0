"""The embedded task ``docstrings``: classification of docstrings by their package.

The text is the first paragraph of a function's or class's docstring, with the names of the packages masked. Packages
are parsed, never imported. Classes are balanced in every split, so a constant prediction has accuracy 1/6.
"""

import ast
import hashlib
import importlib.metadata
import importlib.util
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from trial_runner.errors import TaskError
from trial_runner.tasks.classification.raw import RawSplit
from trial_runner.tasks.splits import RawTask, text_hash
from trial_runner.tasks.task import NO_GROUP

PACKAGES = ("numpy", "pandas", "ray", "sqlalchemy", "torch", "transformers")
MASK = "this library"
_VERSION = 1  # increment when the rules below change

# Words that contain a name are masked whole: PyTorch, torch_dtype, NumPyEngine.
_INSIDE_WORDS = ("numpy", "pandas", "sqla", "torch", "transformers", "huggingface", "rllib")
# These are also parts of ordinary words (array), so they are masked only where no letter or digit adjoins.
_WHOLE_WORDS = ("np", "pd", "ray", "hugging face", "hf")
_NAMES = re.compile(
    rf"\w*(?:{'|'.join(_INSIDE_WORDS)})\w*"
    rf"|(?<![a-z0-9])(?:{'|'.join(_WHOLE_WORDS)})(?![a-z0-9])"
    r"|(?-i:\bRay[A-Z]\w*)",
    re.IGNORECASE,
)

_WORDS = range(5, 41)
_ENOUGH_TEXTS = 1500  # per package; later files are not parsed
_LARGEST_FILE_BYTES = 300_000  # larger files are mostly generated
_SKIPPED_FOLDERS = frozenset({"test", "tests", "testing", "_vendor", "thirdparty", "thirdparty_files"})
_SPLIT_SHARES = {"train": range(80), "validation": range(80, 90), "test": range(90, 100)}
_LARGEST_CLASS = {"train": 1000, "validation": 125, "test": 125}
_SMALLEST_CLASS = 30


def docstrings_digest() -> str:
    """Return a hash of the task's inputs, the rules and the packages' versions, as hex."""
    versions = [f"{package} {importlib.metadata.version(package)}" for package in PACKAGES if package_folder(package)]
    return hashlib.sha256(f"{_VERSION} {versions}".encode()).hexdigest()


def mask_names(text: str) -> str:
    """Replace every name of one of the packages by a neutral phrase, and white space by single spaces."""
    return " ".join(_NAMES.sub(MASK, text).split())


def read_docstrings() -> RawTask[RawSplit]:
    """Collect, mask, deduplicate, split and balance the docstrings; takes some seconds.

    Raises:
        TaskError: If a package is not installed or has too few docstrings.
    """
    texts = {package: package_texts(package_folder(package)) for package in PACKAGES}
    owners = Counter(text.lower() for found in texts.values() for text in found)
    parts = {package: _part([text for text in found if owners[text.lower()] == 1]) for package, found in texts.items()}
    splits = {}
    for split, largest in _LARGEST_CLASS.items():
        rarest = min(PACKAGES, key=lambda package: len(parts[package][split]))
        count = min(largest, len(parts[rarest][split]))
        if count < _SMALLEST_CLASS:
            raise TaskError(
                f"task 'docstrings' needs at least {_SMALLEST_CLASS} docstrings of each package in {split}; "
                f"{rarest} has {count}. Install it with its source files."
            )
        splits[split] = _balanced(parts, split, count)
    return RawTask(splits=splits)


def package_folder(package: str) -> Path:
    """Return the folder of an installed package without importing it."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise TaskError(f"task 'docstrings' needs the package {package}, which is not installed. Install it.")
    return Path(found.submodule_search_locations[0])


def package_texts(folder: Path) -> list[str]:
    """Return distinct texts of one package, from its files in a pseudo-random but reproducible order."""
    relative = [file.relative_to(folder) for file in folder.rglob("*.py")]
    kept = [file for file in relative if not _SKIPPED_FOLDERS.intersection(file.parts)]
    texts: dict[str, str] = {}
    for file in sorted(kept, key=lambda each: text_hash(each.as_posix(), "file")):
        for docstring in _docstrings_of(folder / file):
            text = mask_names(re.split(r"\n\s*\n", docstring.strip(), maxsplit=1)[0])
            if len(text.split()) in _WORDS:
                texts.setdefault(text.lower(), text)
        if len(texts) >= _ENOUGH_TEXTS:
            break
    return list(texts.values())


def _docstrings_of(file: Path) -> Iterator[str]:
    """Yield the docstrings of a file's functions and classes; none if it is too large or not valid Python."""
    source = file.read_bytes()
    if len(source) > _LARGEST_FILE_BYTES:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escape sequences in the parsed packages
        try:
            module = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            return
    yield from _docstrings_in(module.body)


def _docstrings_in(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                yield docstring
        if isinstance(node, ast.ClassDef):
            yield from _docstrings_in(node.body)
        elif isinstance(node, ast.If | ast.Try):
            yield from _docstrings_in([*node.body, *node.orelse])


def _part(texts: list[str]) -> dict[str, list[str]]:
    """Return the texts of one package by split, in the order of their hashes."""
    parts: dict[str, list[str]] = {split: [] for split in _SPLIT_SHARES}
    for text in sorted(texts, key=lambda each: text_hash(each, "order")):
        share = text_hash(text.lower(), "split") % 100
        parts[next(split for split, shares in _SPLIT_SHARES.items() if share in shares)].append(text)
    return parts


def _balanced(parts: dict[str, dict[str, list[str]]], split: str, count: int) -> RawSplit:
    """Return the first ``count`` texts of each package as one split, shuffled by their hashes."""
    rows = [(text, package) for package in PACKAGES for text in parts[package][split][:count]]
    rows.sort(key=lambda row: text_hash(row[0], "shuffle"))
    return RawSplit(
        columns=(tuple(text for text, _ in rows),),
        labels=tuple(package for _, package in rows),
        groups=(NO_GROUP,) * len(rows),
    )
