"""The embedded tasks by name. A package adds one by an entry point: a reader and what its data depends on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from search_space.registry import Registry
from trial_runner.tasks.embedded.docstrings import docstrings_digest, read_docstrings
from trial_runner.tasks.splits import RawTask


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedTask:
    """A task that needs no files of the user's.

    Attributes:
        kind: Of the task; a word of `trial_runner.tasks.kinds.TASK_KINDS`.
        read: Its splits, in rows as the kind reads them.
        digest: Hash of all that the rows depend on, as hex; quick, because it decides whether they are read at all.
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
