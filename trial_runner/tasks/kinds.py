"""Kinds of task by name, and the check of a task against its kind."""

from search_space.closest_name import name_hint
from search_space.registry import Registry
from trial_runner.errors import TaskError
from trial_runner.tasks.classification.kind import CLASSIFICATION
from trial_runner.tasks.embedded import EMBEDDED_TASKS
from trial_runner.tasks.generation.kind import DATA_TO_TEXT, QUESTION_ANSWERING, SUMMARISATION, TRANSLATION
from trial_runner.tasks.instruction.kind import INSTRUCTION
from trial_runner.tasks.kind import TaskKind
from trial_runner.tasks.regression.kind import REGRESSION
from trial_runner.tasks.task import NO_GROUP, Task, check_group_name, defaults_of, parts_of

_OWN: tuple[TaskKind, ...] = (
    CLASSIFICATION,
    REGRESSION,
    SUMMARISATION,
    TRANSLATION,
    DATA_TO_TEXT,
    QUESTION_ANSWERING,
    INSTRUCTION,
)

TASK_KINDS: Registry[TaskKind] = Registry(
    "kind of task",
    {kind.name: kind for kind in _OWN},
    kind=TaskKind,
    group="deltaspace.task_kinds",
)


def kind_of(task: Task) -> TaskKind:
    """Return the kind of a task.

    Raises:
        TaskError: If there is none of its name.
    """
    if task.kind not in TASK_KINDS:
        known = list(TASK_KINDS)
        raise TaskError(f"no kind of task {task.kind!r}; known: {', '.join(known)}.{name_hint(task.kind, known)}")
    return TASK_KINDS[task.kind]


def check_task(task: Task) -> None:
    """Refuse a task whose keys do not fit its kind.

    Raises:
        TaskError: If they do not; the text continues a sentence that begins with the task.
    """
    kind = kind_of(task)
    if task.name is not None:
        _check_embedded(task.name, kind)
    _check_keys(task, kind)
    for names in task.splits.values():
        for group, _ in parts_of(names):
            if group != NO_GROUP:
                check_group_name(group)
    _check_metrics(task, kind)
    kind.check(task)


def _check_keys(task: Task, kind: TaskKind) -> None:
    """Refuse keys of other kinds, and a task that lacks keys of its own."""
    named = {key for key, default in defaults_of(task).items() if getattr(task, key) != default}
    if task.name is not None and (columns := [key for key in kind.column_keys if key in named]):
        raise TaskError(f"must not name {' and '.join(columns)}, because an embedded task has its own.")
    own = {*kind.column_keys, *kind.other_keys}
    special = {key for each in TASK_KINDS.values() for key in (*each.column_keys, *each.other_keys)}
    if wrong := sorted((special - own) & named):
        raise TaskError(f"must not have {' and '.join(wrong)}, because its kind is {kind.name}.")
    if task.name is None and any(getattr(task, key) is None for key in kind.needed):
        place = "folder" if task.folder is not None else "hub"
        raise TaskError(f"must name the columns {' and '.join(kind.needed)}, because it is read from a {place}.")


def _check_embedded(name: str, kind: TaskKind) -> None:
    own = [known for known, task in EMBEDDED_TASKS.items() if task.kind == kind.name]
    if not own:
        raise TaskError(f"a {kind.name} task must come from a folder or the hub; none is embedded.")
    if name not in own:
        raise TaskError(f"no embedded task {name!r}; known: {', '.join(own)}.{name_hint(name, own)}")


def _check_metrics(task: Task, kind: TaskKind) -> None:
    known = kind.metrics
    for name in (task.metric, *task.metrics):
        if name not in known:
            raise TaskError(
                f"metric of a {kind.name} task must be one of {', '.join(known)}; got {name!r}.{name_hint(name, known)}"
            )
    if task.metrics and task.metric not in task.metrics:
        raise TaskError(f"metrics must contain the metric {task.metric!r}; got {', '.join(task.metrics)}.")
