"""Tasks from the hub, read through its cache."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from search_space.closest_name import name_hint
from trial_runner.errors import TaskError
from trial_runner.huggingface import hub_access, is_hub_name, one_line, quiet_datasets
from trial_runner.tasks.data.folder import OTHER_NAMES
from trial_runner.tasks.splits import RawTask, RowsReader, RowsT, joined
from trial_runner.tasks.task import NO_GROUP, SPLITS, HubData, Task, parts_of, taken_names

if TYPE_CHECKING:
    from datasets import DatasetDict

_PARQUET = "refs/convert/parquet"  # branch of the hub with its own Parquet copies, also of script datasets


def read_hub(task: Task, read: RowsReader[RowsT]) -> RawTask[RowsT]:
    """Download a dataset of the hub, unless it is cached, and read its splits.

    Args:
        task: Task with the name, configuration, revision and splits of the dataset.
        read: Function that extracts a task kind's rows from a split.

    Raises:
        TaskError: If the dataset cannot be reached or read, lacks a named split, or if its columns or rows do not fit
            the task.
    """
    hub = task.hub or HubData(name=task.title)
    if not is_hub_name(hub.name):
        raise TaskError(f"a hub dataset must be named like 'owner/dataset'; got {hub.name!r}.")
    options = {} if hub.revision is None else {"revision": hub.revision}
    configuration = hub.configuration
    if hub.revision == _PARQUET and configuration is not None:
        options["data_dir"], configuration = configuration, None  # folder of that branch
    with opened_hub(hub.name, configuration, options, title=task.title) as held:
        names = {split: _names_of(task, split, list(held)) for split in SPLITS}
        return RawTask(
            splits={
                split: joined([read(held[name], split, group) for group, name in parts])
                for split, parts in names.items()
                if parts
            }
        )


@contextmanager
def opened_hub(
    hub: str, configuration: str | None, options: Mapping[str, Any] | None = None, *, title: str | None = None
) -> Iterator["DatasetDict"]:
    """Yield the splits of a dataset of the hub by name, downloaded unless it is cached.

    Args:
        hub: Name of the dataset.
        configuration: Configuration of the dataset; None takes its default.
        options: Further arguments of ``load_dataset``.
        title: Name of the dataset in error messages.

    Raises:
        TaskError: If the dataset cannot be loaded.
    """
    with quiet_datasets(), hub_access(hub):
        from datasets import load_dataset
        from datasets.exceptions import DatasetsError

        try:
            held = load_dataset(hub, configuration, **(options or {}))
        except (OSError, ValueError, RuntimeError, DatasetsError) as error:
            raise TaskError(
                f"dataset {title or hub!r} must be on the hub or in its cache; {one_line(error)}"
            ) from error
        yield held


def _names_of(task: Task, split: str, present: list[str]) -> list[tuple[str, str]]:
    """Return pairs of a group and a split's name in the dataset; empty if the dataset lacks an optional split.

    Raises:
        TaskError: If the dataset lacks a split that the task names.
    """
    if split not in task.splits:
        taken = taken_names(task.splits.values())
        free = [name for name in OTHER_NAMES[split] if name in present and name not in taken]
        return [(NO_GROUP, name) for name in free[:1]]
    parts = list(parts_of(task.splits[split]))
    for _, name in parts:
        if name not in present:
            raise TaskError(
                f"dataset {task.title!r} must have a split {name!r}; it has: {', '.join(present)}."
                f"{name_hint(name, present)}"
            )
    return parts
