"""Embedded tasks by name. A package adds one by an entry point with a reader and a digest of its data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from search_space.registry import Registry
from trial_runner.tasks.embedded.docstrings import docstrings_digest, read_docstrings
from trial_runner.tasks.splits import RawTask


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedTask:
    """Task that needs none of the user's files.

    Attributes:
        kind: Kind of the task; a key of `trial_runner.tasks.kinds.TASK_KINDS`.
        read: Function that returns the splits, in rows of that kind.
        digest: Function that returns a hash of all inputs of the rows, as hex; quick, because it runs before each read.
    """

    kind: str
    read: Callable[[], RawTask[Any]]
    digest: Callable[[], str]


EMBEDDED_TASKS: Registry[EmbeddedTask] = Registry(
    "embedded task",
    {"docstrings": EmbeddedTask(kind="classification", read=read_docstrings, digest=docstrings_digest)},
    kind=EmbeddedTask,
    group="deltaspace.tasks",
)
