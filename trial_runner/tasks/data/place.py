"""Where a task's data is: what all kinds of task have in common."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol, get_args

from trial_runner.errors import TaskError
from trial_runner.tasks.data.groups import NO_GROUP, check_group_name

SourceKind = Literal["embedded", "folder", "hub"]
SplitNames = str | Mapping[str, str]
SPLITS = ("train", "validation", "test")
_SMALLEST_MAX_TOKENS = 8  # room for the special tokens of a pair and a token of each text


class Place(Protocol):
    """What is needed to find the data of a task and to make it smaller."""

    @property
    def kind(self) -> SourceKind:
        """``embedded``, ``folder`` (local jsonl, csv or parquet files) or ``hub``."""
        ...

    @property
    def name(self) -> str:
        """Name of the embedded task, path of the folder, or hub name such as ``nyu-mll/glue``."""
        ...

    @property
    def configuration(self) -> str | None:
        """Configuration of a hub dataset, such as ``sst2``."""
        ...

    @property
    def revision(self) -> str | None:
        """Branch, tag or commit of a hub dataset; None takes the newest."""
        ...

    @property
    def splits(self) -> Mapping[str, SplitNames]:
        """What the data calls train, validation and test, where it is another name; a mapping joins several."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longer inputs are cut."""
        ...

    @property
    def train_examples(self) -> int | None:
        """Use only so many of train, chosen by hash; None uses all."""
        ...

    @property
    def validation_examples(self) -> int | None:
        """The same for validation."""
        ...


def check_place(place: Place) -> None:
    """Check each value on its own; whether the data has the columns is seen when it is read.

    Raises:
        TaskError: If a value cannot be.
    """
    if place.kind not in get_args(SourceKind):
        raise TaskError(f"kind of a task must be one of {', '.join(get_args(SourceKind))}; got {place.kind!r}.")
    if not place.max_tokens >= _SMALLEST_MAX_TOKENS:
        raise TaskError(f"max_tokens must be at least {_SMALLEST_MAX_TOKENS}; got {place.max_tokens}.")
    for split, names in place.splits.items():
        if split not in SPLITS:
            raise TaskError(f"keys of splits must be among {', '.join(SPLITS)}; got {split!r}.")
        for group, _ in parts_of(names):
            if group != NO_GROUP:
                check_group_name(group)
    for count in (place.train_examples, place.validation_examples):
        if count is not None and not count >= 1:
            raise TaskError(f"number of examples must be at least 1; got {count}.")


def parts_of(names: SplitNames) -> Iterator[tuple[str, str]]:
    """Group and name of each part that a split is joined from."""
    yield from [(NO_GROUP, names)] if isinstance(names, str) else names.items()


def taken_names(place: Place) -> set[str]:
    """Names of the data's splits that the task uses as something it says itself."""
    return {name for names in place.splits.values() for _, name in parts_of(names)}


def title_of(place: Place) -> str:
    """Short name of a task, the same wherever its folder is."""
    if place.kind == "folder":
        return Path(place.name).expanduser().absolute().name
    return "/".join((place.name, place.configuration)) if place.configuration else place.name
