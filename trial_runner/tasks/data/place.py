"""The splits of a task, and what the data calls them."""

from collections.abc import Iterable, Iterator

from trial_runner.tasks.data.groups import NO_GROUP

SplitName = str | dict[str, str]
"""What the data calls a split; a mapping from groups to names joins several."""

SPLITS = ("train", "validation", "test")


def parts_of(names: SplitName) -> Iterator[tuple[str, str]]:
    """Group and name of each part that a split is joined from."""
    yield from [(NO_GROUP, names)] if isinstance(names, str) else names.items()


def taken_names(splits: Iterable[SplitName]) -> set[str]:
    """Names of the data's splits that the task uses as something it says itself."""
    return {name for names in splits for _, name in parts_of(names)}
