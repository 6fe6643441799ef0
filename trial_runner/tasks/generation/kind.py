"""Kinds of task whose answer is a text, and how sources and targets become tokens."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.huggingface import quiet_transformers
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
from trial_runner.tasks.kind import (
    Cut,
    Encoder,
    Facts,
    TaskKind,
    check_length,
    kept_facts,
    place_facts,
    prepared_fields,
)
from trial_runner.tasks.splits import RawTask, complete_splits, drop_repeated, drop_rows, subsample
from trial_runner.tasks.task import Task
from trial_runner.tasks.token_rows import TokenRows, encoded

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast


class TextEncoder(Encoder):
    """Turns texts into tokens as one kind of model reads and writes them.

    A decoder reads the source, a separator (the token for the beginning of a text, else that for its end; Li & Liang
    2021) and then writes the target and the end of text.

    Args:
        task: Largest lengths and languages.
        tokenizer: Of the model.
        stack: Kind of the model.

    Raises:
        TaskError: If the model cannot generate, or the tokenizer lacks a language or a token for the end of a text.
    """

    def __init__(self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind) -> None:
        """Check that the model can generate and how its texts end."""
        if stack is StackKind.ENCODER:
            raise TaskError(
                f"a {task.kind} task needs a backbone that generates: an encoder-decoder or a decoder; got an "
                "encoder. Choose another backbone."
            )
        if tokenizer.eos_token_id is None:
            raise TaskError(f"a {task.kind} task needs a tokenizer with a token for the end of a text; got none.")
        super().__init__(task, tokenizer, stack)
        self.languages = task.languages if hasattr(tokenizer, "src_lang") else None
        self.eos_token_id = tokenizer.eos_token_id
        is_decoder = stack is StackKind.DECODER
        self.separator = str(tokenizer.bos_token or tokenizer.eos_token) if is_decoder else ""

    @property
    def start_token_id(self) -> int | None:
        """What the targets must be preceded by, where the tokenizer ends them in their language; None elsewhere."""
        if self.languages is None:
            return None
        token: int = self._tokenizer.convert_tokens_to_ids(self.languages[1])
        with self._speaking():
            (ids,) = self._tokenizer(text_target=[""])["input_ids"]
        return token if ids[-1] == token else None

    @property
    def identity(self) -> str:
        """What, beside what a tokenizer does to a text, decides the tokens: the kind of model and its separators."""
        return f"{self.stack} {self._tokenizer.bos_token_id} {self.eos_token_id}"

    def encode(self, raw: RawTextSplit, name: str) -> tuple[TextSplit, list[Cut]]:
        """Tokenise a split; return it with what was cut of each side of it.

        Args:
            raw: The texts.
            name: Of the split. Of train no references are kept.
        """
        longest, longest_target = self._task.max_tokens, self._task.max_target_tokens
        sources, cut = self.sources(raw.sources)
        end = [] if self.stack is StackKind.ENCODER_DECODER else [self.eos_token_id]
        targets, cut_targets = self._rows(
            raw.targets, longest_target, end, name="text_target", add_special_tokens=not end
        )
        split = TextSplit(
            stack=self.stack,
            sources=sources,
            targets=targets,
            references=() if name == "train" else raw.references,
            groups=raw.groups,
        )
        sides = ((cut, "sources", longest), (cut_targets, "targets", longest_target))
        cuts = [Cut(split=name, what=side, count=n, of=len(raw), tokens=most) for n, side, most in sides if n]
        return split, cuts

    def sources(self, texts: Sequence[str]) -> tuple[TokenRows, int]:
        """Tokens of texts that are read, and how many of them were cut."""
        end = [self._tokenizer.convert_tokens_to_ids(self.separator)] if self.separator else []
        return self._rows(texts, self._task.max_tokens, end, name="text")

    def _rows(
        self, texts: Sequence[str], longest: int, end: list[int], *, name: str, **options: bool
    ) -> tuple[TokenRows, int]:
        """Tokens of the texts, each followed by ``end``, and how many texts were cut."""
        with self._speaking():
            found, cut = encoded(self._tokenizer, {name: texts}, longest - len(end), **options)
        rows = found["input_ids"]
        if end:
            rows = [[*(row[:-1] if row and row[-1] == self.eos_token_id else row), *end] for row in rows]
        return TokenRows.of(rows), cut

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Let a tokenizer that knows languages use those of the task; afterwards it is as it was."""
        tokenizer = self._tokenizer
        with quiet_transformers():
            if self.languages is None:
                yield
                return
            for language in self.languages:
                if tokenizer.convert_tokens_to_ids(language) in (None, tokenizer.unk_token_id):
                    raise TaskError(f"languages must be known to the tokenizer; got {language!r}.")
            before = tokenizer.src_lang, tokenizer.tgt_lang
            tokenizer.src_lang, tokenizer.tgt_lang = self.languages
            try:
                yield
            finally:
                tokenizer.src_lang, tokenizer.tgt_lang = before


_WRITTEN_KEYS = ("metrics", "max_target_tokens", "label_smoothing", "decoding", "instruction", "languages")


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

    def facts_of(self, raw: RawTask[Any], cuts: Sequence[Cut]) -> Facts:
        """Return the facts that a cache keeps beside the tokens."""
        encoder = self.encoder
        return kept_facts(self.task, raw, cuts, start=encoder.start_token_id, eos=encoder.eos_token_id)

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
        return self.facts_of(chosen, cuts), splits

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

    def unanswered(name: str, split: RawTextSplit) -> list[str | None]:
        reasons = [
            "no text" if not subject else None if references else "no reference"
            for subject, references in zip(split.subjects, split.references, strict=True)
        ]
        missing = [row for row, reason in enumerate(reasons, start=1) if reason is not None]
        if name == "train" and missing and len(missing) == len(split):
            raise TaskError(f"each row of train must have a text and a target; row {missing[0]} has not.")
        return reasons

    return drop_rows(raw, unanswered)


def merge_sources(raw: RawTask[RawTextSplit]) -> RawTask[RawTextSplit]:
    """Make the rows of validation and test with the same source one, with all their references."""
    for name in ("validation", "test"):
        split = raw.splits[name]
        rows: dict[str, list[int]] = {}
        for row, text in enumerate(split.sources):
            rows.setdefault(text, []).append(row)
        if len(rows) < len(split):
            merged = [
                tuple(dict.fromkeys(text for row in same for text in split.references[row])) for same in rows.values()
            ]
            first = split.take(same[0] for same in rows.values())
            note = f"{name}: {len(split)} rows have {len(rows)} sources; those of a source are its references"
            raw = raw.with_split(name, replace(first, references=tuple(merged)), note)
    return raw


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
    return raw.with_split("train", learned, note)
