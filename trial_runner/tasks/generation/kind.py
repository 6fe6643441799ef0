"""Kinds of task whose answer is a text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.tasks.cache import Arrays, Facts, as_texts, from_texts
from trial_runner.tasks.data.rows import RawTask
from trial_runner.tasks.generation.encode import TextEncoder
from trial_runner.tasks.generation.questions import (
    QUESTION_KEYS,
    question_as_read,
    question_columns,
    questioned,
    read_questions,
)
from trial_runner.tasks.generation.raw import (
    PAIR_KEYS,
    RawTextSplit,
    instructed,
    pair_columns,
    read_pairs,
    source_as_read,
)
from trial_runner.tasks.generation.rows import drop_unanswered, learn_every_reference, merge_sources
from trial_runner.tasks.generation.split import PreparedTextTask, TextSplit, WrittenSplit
from trial_runner.tasks.kind import Cut, check_length, place_facts
from trial_runner.tasks.measuring import metrics_of
from trial_runner.tasks.splitting import complete_splits, drop_repeated, subsample
from trial_runner.tasks.task import SPLITS, Task
from trial_runner.tasks.token_rows import TokenRows

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast

_WRITTEN_KEYS = (
    "metrics",
    "early_metric",
    "max_target_tokens",
    "label_smoothing",
    "decoding",
    "instruction",
    "languages",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """See `trial_runner.tasks.kind.TaskKind`.

    Attributes:
        usual_metric: What is maximised unless the task says otherwise.
        columns: The columns of a task by their keys.
        read_keys: Of those that are read, in the order of ``source_of``.
        read: Takes the rows of a task out of a dataset.
        source_of: What a model reads, of the texts of a row.
        as_read: Makes a text of a value in a column that is read, for a prediction.
        merges_sources: Whether rows of validation and test with the same source are one, with all their references.
        learns_every_reference: Whether each reference of train is learned rather than the first.
    """

    name: str
    usual_metric: str
    needed: tuple[str, ...] = ("source", "target")
    column_keys: tuple[str, ...] = PAIR_KEYS
    read_keys: tuple[str, ...] = ("source",)
    columns: Callable[[Task], Mapping[str, str | None]] = pair_columns
    read: Callable[["Dataset", Task, str, str], RawTextSplit] = read_pairs
    source_of: Callable[..., str] = str
    as_read: Callable[[Task, str, object], object] = source_as_read
    other_keys: tuple[str, ...] = _WRITTEN_KEYS
    merges_sources: bool = False
    learns_every_reference: bool = True

    @property
    def metrics(self) -> tuple[str, ...]:
        """See `TaskKind`."""
        return metrics_of(self.name, self.usual_metric)

    def check(self, task: Task) -> None:
        """See `TaskKind`."""
        least, most = task.decoding.min_new_tokens, task.most_new_tokens
        if least > most:
            raise TaskError(f"min_new_tokens must be from 0 to max_new_tokens ({most}); got {least}.")

    def read_columns(self, task: Task) -> tuple[str, ...]:
        """See `TaskKind`."""
        columns = self.columns(task)
        return tuple(columns[key] or key for key in self.read_keys)

    def prompt(self, task: Task, texts: Sequence[str]) -> str:
        """See `TaskKind`."""
        return instructed(self.source_of(*texts), task)

    def encoder(self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind) -> TextEncoder:
        """See `TaskKind`."""
        return TextEncoder(task, tokenizer, stack)

    def preparation(
        self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind, position_limit_tokens: int | None
    ) -> "_Preparation":
        """See `TaskKind`."""
        encoder = self.encoder(task, tokenizer, stack)
        _check_lengths(task, stack, position_limit_tokens)
        return _Preparation(self, task, encoder)


@dataclass(frozen=True, slots=True)
class _Preparation:
    """See `trial_runner.tasks.kind.Preparation`."""

    kind: Generation
    task: Task
    encoder: TextEncoder

    @property
    def facts(self) -> Mapping[str, Any]:
        """See `Preparation`."""
        task = self.task
        own = {
            "task_kind": task.kind,
            "columns": dict(self.kind.columns(task)),
            "instruction": task.instruction or "",
            "languages": task.languages,
            "max_target_tokens": task.max_target_tokens,
        }
        return {**place_facts(task), **own}

    @property
    def identity(self) -> str:
        """See `Preparation`."""
        return self.encoder.identity

    def read(self, dataset: "Dataset", split: str, group: str) -> RawTextSplit:
        """See `Preparation`."""
        return self.kind.read(dataset, self.task, split, group)

    def tokenised(self, raw: RawTask[RawTextSplit], fingerprint: str) -> PreparedTextTask:
        """See `Preparation`."""
        whole = drop_repeated(complete_splits(drop_unanswered(raw, self.task)))
        if self.kind.merges_sources:
            whole = merge_sources(whole)
        if self.kind.learns_every_reference:
            whole = learn_every_reference(whole)
        chosen = subsample(whole, self.task)
        splits: dict[str, TextSplit] = {}
        cuts: list[Cut] = []
        for name, split in chosen.splits.items():
            splits[name], of_split = self.encoder.encode(split, name)
            cuts += of_split
        start, eos = self.encoder.start_token_id, self.encoder.eos_token_id
        notes = [*chosen.notes, *map(str, cuts)]
        facts: Facts = {
            "name": self.task.title,
            "notes": notes,
            "start": start,
            "eos": eos,
            "cuts": [asdict(cut) for cut in cuts],
        }
        return self._prepared(fingerprint, facts, splits)

    def stored(self, prepared: PreparedTextTask) -> tuple[Facts, Arrays]:
        """See `Preparation`."""
        start, eos = prepared.start_token_id, prepared.eos_token_id
        arrays: dict[str, npt.NDArray[Any]] = {}
        for split, examples in prepared.splits.items():
            if not isinstance(examples, TextSplit):
                raise TypeError(f"{split} must be of sources and targets; got {type(examples).__name__}.")
            for side, rows in (("sources", examples.sources), ("targets", examples.targets)):
                arrays[f"{split}.{side}.ids"] = rows.ids
                arrays[f"{split}.{side}.offsets"] = rows.offsets
            arrays[f"{split}.references"] = as_texts(examples.references)
            arrays[f"{split}.groups"] = as_texts(examples.groups)
        facts = {"name": prepared.name, "notes": prepared.notes, "start": start, "eos": eos}
        return {**facts, "cuts": [asdict(cut) for cut in prepared.cuts]}, arrays

    def restored(self, fingerprint: str, facts: Facts, arrays: Arrays) -> PreparedTextTask:
        """See `Preparation`."""
        splits = {
            split: TextSplit(
                stack=self.encoder.stack,
                sources=rows_of(arrays, f"{split}.sources"),
                targets=rows_of(arrays, f"{split}.targets"),
                references=tuple(tuple(each) for each in from_texts(arrays[f"{split}.references"])),
                groups=tuple(from_texts(arrays[f"{split}.groups"])),
            )
            for split in SPLITS
        }
        return self._prepared(fingerprint, facts, splits)

    def _prepared(self, fingerprint: str, facts: Facts, splits: Mapping[str, TextSplit]) -> PreparedTextTask:
        return text_task(self.task, self.kind.metrics, self.encoder.stack, fingerprint, facts, splits)


def text_task(
    task: Task,
    metrics: tuple[str, ...],
    stack: StackKind,
    fingerprint: str,
    facts: Facts,
    splits: Mapping[str, WrittenSplit],
) -> PreparedTextTask:
    """Tokens, and what the task says of measuring and generating, which no cache keeps.

    Args:
        metrics: What is measured unless the task says it.
        facts: What a cache keeps beside the tokens.
    """
    return PreparedTextTask(
        name=facts["name"],
        task_kind=task.kind,
        stack=stack,
        metric=task.metric,
        metrics=task.metrics or metrics,
        early_metric=task.early_metric,
        decoding=task.decoding,
        max_new_tokens=task.most_new_tokens,
        label_smoothing=task.label_smoothing,
        start_token_id=facts["start"],
        eos_token_id=facts["eos"],
        splits=splits,
        notes=tuple(facts["notes"]),
        cuts=tuple(Cut(**cut) for cut in facts["cuts"]),
        answer_after=task.answer_after,
        fingerprint=fingerprint,
    )


def rows_of(arrays: Arrays, name: str) -> TokenRows:
    """Rows of tokens that a cache has kept."""
    return TokenRows(ids=arrays[f"{name}.ids"], offsets=arrays[f"{name}.offsets"])


def _check_lengths(task: Task, stack: StackKind, limit: int | None) -> None:
    """Refuse lengths beyond the positions of either stack; a decoder has source and target in one row."""
    written = {"max_target_tokens": task.max_target_tokens, "max_new_tokens": task.most_new_tokens}
    if stack is StackKind.ENCODER_DECODER:
        for name, tokens in {"max_tokens": task.max_tokens, **written}.items():
            check_length(name, tokens, limit)
        return
    for name, tokens in written.items():
        check_length(f"max_tokens and {name} together", task.max_tokens + tokens, limit)


SUMMARISATION = Generation(name="summarisation", usual_metric="rouge2")
TRANSLATION = Generation(name="translation", usual_metric="bleu")
DATA_TO_TEXT = Generation(name="data_to_text", usual_metric="bleu", merges_sources=True)
QUESTION_ANSWERING = Generation(
    name="question_answering",
    usual_metric="token_f1",
    needed=(),
    column_keys=QUESTION_KEYS,
    read_keys=("context", "question"),
    columns=question_columns,
    read=read_questions,
    source_of=questioned,
    as_read=question_as_read,
    learns_every_reference=False,
)
