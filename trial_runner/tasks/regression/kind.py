"""Regression of a number on a text or a pair of texts, such as how alike two sentences are, as a kind of task."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from search_space.dimensions import StackKind
from trial_runner.tasks.classification.kind import check_columns
from trial_runner.tasks.classification.raw import text_columns
from trial_runner.tasks.data.dialogues import as_one_text
from trial_runner.tasks.kind import check_length
from trial_runner.tasks.measuring import metrics_of
from trial_runner.tasks.regression.preparing import RegressionPreparation
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True, slots=True)
class Regression:
    """See `trial_runner.tasks.kind.TaskKind`."""

    name = "regression"
    column_keys = ("text", "label")
    other_keys = ()
    needed = ("text", "label")
    prompt = None
    encoder = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """See `TaskKind`."""
        return metrics_of(self.name, "pearson")

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
    ) -> RegressionPreparation:
        """See `TaskKind`."""
        check_length("max_tokens", task.max_tokens, position_limit_tokens)
        return RegressionPreparation(task, tokenizer)


REGRESSION = Regression()
