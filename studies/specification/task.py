"""The section ``task`` of a study file: a task of the trial runner that a preset may fill in."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, model_validator
from pydantic.dataclasses import dataclass

from search_space.checked import choice
from studies.specification.presets import PRESETS, with_task_preset
from trial_runner.errors import RunnerError
from trial_runner.tasks import TASK_KINDS, Task, check_task
from trial_runner.tasks.task import KEYS_ARE_KNOWN


def _kind(name: object) -> object:
    if not isinstance(name, str) or name not in TASK_KINDS:
        *others, last = (repr(kind) for kind in TASK_KINDS)
        raise ValueError(f"must be {', '.join(others)} or {last}")
    return name


def _preset(name: str) -> str:
    return choice(name, [preset.name for preset in PRESETS])


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class TaskSection(Task):
    """What is learned.

    Attributes:
        preset: A task with the settings of the papers, such as ``xsum``; other keys take the place of its own.
    """

    kind: Annotated[str, BeforeValidator(_kind)] = "classification"
    preset: Annotated[str, AfterValidator(_preset)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        return with_task_preset(given)

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        try:
            check_task(self)
        except RunnerError as error:
            raise ValueError(str(error).rstrip(".")) from error
        return self


def task_from_json(stored: object) -> Task:
    """The task of a study file that was stored.

    Raises:
        ValidationError: If it has keys or values that this release does not know.
    """
    task: Task = TypeAdapter(TaskSection).validate_python(stored)
    return task
