"""Data that is at hand in Python, as files that a study can be about."""

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.errors import StudiesError, WishError
from trial_runner.huggingface import quiet_datasets

_FORMS = "data must be a pandas frame, a datasets.Dataset, or a mapping of train, validation and test to either"


def save_object(data: Any, folder: Path) -> Path:
    """Write data to a new folder, a parquet file for each split; return the folder.

    Args:
        data: A pandas frame, a ``datasets.Dataset``, or a mapping of names of splits to either.
        folder: Must not exist, or hold nothing but what this wrote before.

    Raises:
        StudiesError: If the data is something else, or cannot be written.
    """
    splits = data if isinstance(data, Mapping) else {"train": data}
    if not splits or not all(_is_table(each) for each in splits.values()):
        got = ", ".join(sorted({type(each).__name__ for each in splits.values()})) or "nothing"
        raise WishError(f"{_FORMS}; got {got}.")
    with quiet_datasets():
        from pyarrow import ArrowException

        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, held in splits.items():
                _dataset_of(held).to_parquet(str(folder / f"{name}.parquet"))
        except (OSError, ValueError, TypeError, ArrowException) as error:
            raise StudiesError(f"data must be written to {folder}; got: {' '.join(str(error).split())}.") from error
    return folder


def object_of(place: str) -> Any:
    """What stands in Python at ``module:name`` or ``file.py:name``; of a function what it returns.

    Raises:
        StudiesError: If there is no such thing.
    """
    home, colon, name = place.rpartition(":")
    if not colon or not home or not name:
        raise WishError(f"data in Python must be named as module:name or file.py:name; got {place!r}.")
    try:
        module = _module_of(home)
    except (ImportError, OSError, SyntaxError) as error:
        raise WishError(f"{home} must be a module that can be imported; got: {error}.") from error
    if not hasattr(module, name):
        raise WishError(f"{home} must have the data under {name!r}; it has no such name.")
    found = getattr(module, name)
    return found() if callable(found) and not _is_table(found) else found


def _module_of(home: str) -> Any:
    if not home.endswith(".py"):
        return importlib.import_module(home)
    spec = importlib.util.spec_from_file_location(Path(home).stem, home)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module in {home}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _is_table(data: Any) -> bool:
    return hasattr(data, "to_parquet")


def _dataset_of(data: Any) -> Any:
    from datasets import Dataset

    return data if isinstance(data, Dataset) else Dataset.from_pandas(data, preserve_index=False)
