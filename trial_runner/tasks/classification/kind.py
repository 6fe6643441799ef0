"""Classification of a text or a pair of texts, as a kind of task."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.tasks.cache import Arrays, Facts
from trial_runner.tasks.classification import preparing
from trial_runner.tasks.classification.raw import RawSplit, label_column, read_split, text_columns
from trial_runner.tasks.classification.split import PreparedTask
from trial_runner.tasks.data.rows import RawTask
from trial_runner.tasks.kind import check_length, place_facts
from trial_runner.tasks.measuring import metrics_of
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True, slots=True)
class Classification:
    """See `trial_runner.tasks.kind.TaskKind`."""

    name = "classification"
    column_keys = ("text", "label", "labels")
    other_keys = ()
    needed = ("text", "label")
    prompt = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """See `TaskKind`."""
        return metrics_of(self.name, "accuracy")

    def check(self, task: Task) -> None:
        """See `TaskKind`."""
        text, label = text_columns(task), label_column(task)
        if len({*text, label}) != len(text) + 1:
            raise TaskError(
                f"a task must have one or two text columns beside its label column; got {', '.join(text)} and {label}."
            )

    def read_columns(self, task: Task) -> tuple[str, ...]:
        """See `TaskKind`."""
        return text_columns(task)

    def preparation(
        self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind, position_limit_tokens: int | None
    ) -> "_Preparation":
        """See `TaskKind`."""
        check_length("max_tokens", task.max_tokens, position_limit_tokens)
        return _Preparation(task, tokenizer)


@dataclass(frozen=True, slots=True)
class _Preparation:
    """See `trial_runner.tasks.kind.Preparation`."""

    task: Task
    tokenizer: "PreTrainedTokenizerFast"
    identity = ""

    @property
    def facts(self) -> Mapping[str, Any]:
        """See `Preparation`."""
        own = {"text": text_columns(self.task), "label": label_column(self.task), "labels": self.task.labels}
        return {**place_facts(self.task), **own}

    def read(self, dataset: "Dataset", split: str, group: str) -> RawSplit:
        """See `Preparation`."""
        return read_split(dataset, self.task, split, group)

    def tokenised(self, raw: RawTask[RawSplit], fingerprint: str) -> PreparedTask:
        """See `Preparation`."""
        return preparing.tokenised(raw, self.task, self.tokenizer, fingerprint)

    def stored(self, prepared: PreparedTask) -> tuple[Facts, Arrays]:
        """See `Preparation`."""
        return preparing.stored(prepared)

    def restored(self, fingerprint: str, facts: Facts, arrays: Arrays) -> PreparedTask:
        """See `Preparation`."""
        return preparing.restored(self.task, fingerprint, facts, arrays)


CLASSIFICATION = Classification()
