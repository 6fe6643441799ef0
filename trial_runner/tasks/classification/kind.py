"""Classification of a text or a pair of texts, as a kind of task."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.tasks.classification.preparing import ClassificationPreparation
from trial_runner.tasks.classification.raw import label_column, text_columns
from trial_runner.tasks.data.dialogues import as_one_text
from trial_runner.tasks.kind import check_length
from trial_runner.tasks.measuring import metrics_of
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def check_columns(task: Task) -> None:
    """Refuse columns of texts and labels that are not different ones.

    Raises:
        TaskError: If they are not.
    """
    text, label = text_columns(task), label_column(task)
    if len({*text, label}) != len(text) + 1:
        raise TaskError(
            f"a task must have one or two text columns beside its label column; got {', '.join(text)} and {label}."
        )


@dataclass(frozen=True, slots=True)
class Classification:
    """See `trial_runner.tasks.kind.TaskKind`."""

    name = "classification"
    column_keys = ("text", "label", "labels")
    other_keys = ()
    needed = ("text", "label")
    prompt = None
    encoder = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """See `TaskKind`."""
        return metrics_of(self.name, "accuracy")

    def check(self, task: Task) -> None:
        """See `TaskKind`."""
        check_columns(task)

    def read_columns(self, task: Task) -> tuple[str, ...]:
        """See `TaskKind`."""
        return text_columns(task)

    def as_read(self, task: Task, column: str, value: object) -> object:
        """See `TaskKind`."""
        return as_one_text(value, task.join)

    def preparation(
        self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind, position_limit_tokens: int | None
    ) -> ClassificationPreparation:
        """See `TaskKind`."""
        check_length("max_tokens", task.max_tokens, position_limit_tokens)
        return ClassificationPreparation(task, tokenizer)


CLASSIFICATION = Classification()
