"""Kinds of task whose answer is a text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.tasks.cache import Facts
from trial_runner.tasks.data.rows import RawTask, usable_rows
from trial_runner.tasks.generation.encode import TextEncoder
from trial_runner.tasks.generation.raw import (
    PAIR_KEYS,
    RawTextSplit,
    instructed,
    pair_columns,
    question_as_read,
    question_columns,
    questioned,
    read_pairs,
    read_questions,
    source_as_read,
)
from trial_runner.tasks.generation.split import PreparedTextTask, TextSplit, WrittenSplit
from trial_runner.tasks.kind import Cut, Encoder, TaskKind, check_length, kept_facts, place_facts, prepared_fields
from trial_runner.tasks.splits import complete_splits, drop_repeated, subsample
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast

_MEASURED = ("validation", "test")


_WRITTEN_KEYS = (
    "metrics",
    "max_target_tokens",
    "label_smoothing",
    "decoding",
    "instruction",
    "languages",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(TaskKind):
    """From text to text.

    Attributes:
        columns: The columns of a task by their keys.
        read_keys: Of those that are read, in the order of ``source_of``.
        read: Takes the rows of a task out of a dataset.
        source_of: What a model reads, of the texts of a row.
        as_read: Makes a text of a value in a column that is read, for a prediction.
        merges_sources: Whether rows of validation and test with the same source are one, with all their references.
        learns_every_reference: Whether each reference of train is learned rather than the first.
    """

    needed: tuple[str, ...] = ("source", "target")
    column_keys: tuple[str, ...] = PAIR_KEYS
    read_keys: tuple[str, ...] = ("source",)
    columns: Callable[[Task], Mapping[str, str | None]] = pair_columns
    read: Callable[["Dataset", Task, str, str], RawTextSplit] = read_pairs
    source_of: Callable[..., str] = str
    as_read: Callable[[Task, str, object], object] = source_as_read  # type: ignore[assignment]
    other_keys: tuple[str, ...] = _WRITTEN_KEYS
    merges_sources: bool = False
    learns_every_reference: bool = True

    def check(self, task: Task) -> None:
        """See `TaskKind`."""
        check_new_tokens(task)

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
    ) -> "_GenerationPreparation":
        """See `TaskKind`."""
        encoder = self.encoder(task, tokenizer, stack)
        _check_lengths(task, stack, position_limit_tokens)
        return _GenerationPreparation(task, encoder, self.metrics, self)


@dataclass(frozen=True, slots=True)
class TextPreparation:
    """What preparations of texts that are written share; see `trial_runner.tasks.kind.Preparation`.

    Attributes:
        usual_metrics: What is measured unless the task says it.
    """

    task: Task
    encoder: Encoder
    usual_metrics: tuple[str, ...]

    @property
    def identity(self) -> str:
        """See `Preparation`."""
        return self.encoder.identity

    def facts_of(self, notes: Sequence[str], cuts: Sequence[Cut]) -> Facts:
        """What a cache keeps beside the tokens."""
        encoder = self.encoder
        return kept_facts(self.task, notes, cuts, start=encoder.start_token_id, eos=encoder.eos_token_id)

    def prepared(self, fingerprint: str, facts: Facts, splits: Mapping[str, WrittenSplit]) -> PreparedTextTask:
        """Tokens, and what the task says of measuring and generating, which no cache keeps."""
        task = self.task
        return PreparedTextTask(
            task_kind=task.kind,
            stack=self.encoder.stack,
            metric=task.metric,
            metrics=task.metrics or self.usual_metrics,
            decoding=task.decoding,
            max_new_tokens=task.most_new_tokens,
            label_smoothing=task.label_smoothing,
            start_token_id=facts["start"],
            eos_token_id=facts["eos"],
            splits=splits,
            answer_after=task.dialogue.answer_after,
            **prepared_fields(fingerprint, facts),
        )


@dataclass(frozen=True, slots=True)
class _GenerationPreparation(TextPreparation):
    """See `trial_runner.tasks.kind.Preparation`."""

    encoder: TextEncoder
    kind: Generation

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

    def read(self, dataset: "Dataset", split: str, group: str) -> RawTextSplit:
        """See `Preparation`."""
        return self.kind.read(dataset, self.task, split, group)

    def tokenised(self, raw: RawTask[RawTextSplit]) -> tuple[Facts, dict[str, TextSplit]]:
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
        return self.facts_of(chosen.notes, cuts), splits

    def new_split(self, **held: Any) -> TextSplit:
        """See `Preparation`."""
        return TextSplit(stack=self.encoder.stack, **held)


def check_new_tokens(task: Task) -> None:
    """Refuse a fewest number of new tokens above the most.

    Raises:
        TaskError: If it is.
    """
    least, most = task.decoding.min_new_tokens, task.most_new_tokens
    if least > most:
        raise TaskError(f"min_new_tokens must be from 0 to max_new_tokens ({most}); got {least}.")


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
    column_keys=("questions",),
    read_keys=("context", "question"),
    columns=question_columns,
    read=read_questions,
    source_of=questioned,
    as_read=question_as_read,
    learns_every_reference=False,
)


def drop_unanswered(raw: RawTask[RawTextSplit], task: Task) -> RawTask[RawTextSplit]:
    """Leave out splits whose references are hidden, and rows without a reference, of the hub also blank ones.

    Raises:
        TaskError: If train is missing, or nothing of it remains, or a row of a local train has no target.
    """

    def answered(name: str, split: RawTextSplit) -> list[int]:
        rows = [row for row, references in enumerate(split.references) if references and split.subjects[row]]
        if name == "train" and (not rows or (len(rows) < len(split) and task.hub is None)):
            raise TaskError(f"each row of train must have a target; row {split.references.index(()) + 1} has none.")
        return rows

    return usable_rows(raw, answered, hidden="references", unused="{count} rows without a text or a reference are")


def merge_sources(raw: RawTask[RawTextSplit]) -> RawTask[RawTextSplit]:
    """Make the rows of validation and test with the same source one, with all their references."""
    splits = dict(raw.splits)
    notes = list(raw.notes)
    for name in _MEASURED:
        split = splits[name]
        rows: dict[str, list[int]] = {}
        for row, text in enumerate(split.sources):
            rows.setdefault(text, []).append(row)
        if len(rows) < len(split):
            merged = [
                tuple(dict.fromkeys(text for row in same for text in split.references[row])) for same in rows.values()
            ]
            first = split.take(same[0] for same in rows.values())
            splits[name] = replace(first, references=tuple(merged))
            notes.append(f"{name}: {len(split)} rows have {len(rows)} sources; those of a source are its references")
    return RawTask(splits=splits, notes=tuple(notes))


def learn_every_reference(raw: RawTask[RawTextSplit]) -> RawTask[RawTextSplit]:
    """Make every reference of a row of train a target of its own."""
    train = raw.splits["train"]
    if all(len(each) == 1 for each in train.references):
        return raw
    pairs = [(row, text) for row, references in enumerate(train.references) for text in references]
    rows = train.take(row for row, _ in pairs)
    targets = tuple(text for _, text in pairs)
    learned = replace(rows, targets=targets, references=tuple((text,) for text in targets))
    note = f"train: {len(train)} rows have {len(learned)} references; each is learned"
    return RawTask(splits={**raw.splits, "train": learned}, notes=(*raw.notes, note))
