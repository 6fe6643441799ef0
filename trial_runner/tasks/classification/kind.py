"""Classes of texts or pairs of texts as a kind of task, and what regression has in common with it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.tasks.classification.preparation import ClassificationPreparation
from trial_runner.tasks.classification.raw import label_column, text_columns
from trial_runner.tasks.data.dialogues import as_one_text
from trial_runner.tasks.kind import TaskKind, check_length
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled(TaskKind):
    """Texts with a label; ``made_ready_by`` is their preparation."""

    needed: tuple[str, ...] = ("text", "label")
    made_ready_by: type[ClassificationPreparation]

    def check(self, task: Task) -> None:
        """Refuse columns of texts and labels that are not different ones."""
        text, label = text_columns(task), label_column(task)
        if len({*text, label}) != len(text) + 1:
            raise TaskError(
                f"a task must have one or two text columns beside its label column; got {', '.join(text)} and {label}."
            )

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
        return self.made_ready_by(task, tokenizer)


CLASSIFICATION = Labelled(
    name="classification",
    usual_metric="accuracy",
    column_keys=("text", "label", "labels"),
    made_ready_by=ClassificationPreparation,
)
