"""Tasks from the hub, through its cache."""

import difflib

from trial_runner.errors import TaskError
from trial_runner.huggingface import hub_access, is_hub_name, one_line, quiet_datasets
from trial_runner.tasks.raw import RawTask, read_split
from trial_runner.tasks.source import SPLITS, TaskSource

__all__ = ["read_hub"]

_OTHER_NAMES = {"train": ("train",), "validation": ("validation", "dev", "val"), "test": ("test",)}


def read_hub(source: TaskSource) -> RawTask:
    """Download a dataset of the hub, unless it is cached, and read its splits.

    Raises:
        TaskError: If it cannot be reached or read, lacks a split that was named, or if its columns or rows are
            not those of the task.
    """
    if not is_hub_name(source.name):
        raise TaskError(f"a hub dataset must be named like 'owner/dataset'; got {source.name!r}.")
    with quiet_datasets(), hub_access(source.name):
        from datasets import load_dataset
        from datasets.exceptions import DatasetsError

        try:
            datasets = load_dataset(source.name, source.configuration)
        except (OSError, ValueError, RuntimeError, DatasetsError) as error:
            raise TaskError(
                f"dataset {source.title!r} must be on the hub or in its cache; {one_line(error)}"
            ) from error
        names = {split: _split_name(source, split, list(datasets)) for split in SPLITS}
        return RawTask(
            splits={split: read_split(datasets[name], source, split) for split, name in names.items() if name}
        )


def _split_name(source: TaskSource, split: str, present: list[str]) -> str | None:
    """What the dataset calls a split; None if it does not have it."""
    if split not in source.splits:
        return next((name for name in _OTHER_NAMES[split] if name in present), None)
    name = source.splits[split]
    if name in present:
        return name
    close = difflib.get_close_matches(name, present, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise TaskError(f"dataset {source.title!r} must have a split {name!r}; it has: {', '.join(present)}.{hint}")
