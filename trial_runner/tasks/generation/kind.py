"""Kinds of task whose answer is a text, and the tokenisation of sources and targets."""

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
    """Tokenisation of texts for one kind of model.

    A decoder reads the source, a separator, the target and the end of text. The separator is the token for the
    beginning of a text, else that for its end (Li & Liang 2021).

    Args:
        task: Task, with its largest lengths and languages.
        tokenizer: Tokenizer of the model.
        stack: Kind of the model.

    Raises:
        TaskError: If the model cannot generate, or the tokenizer lacks a language or a token for the end of a text.
    """

    def __init__(self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind) -> None:
        """Check that the model can generate, and find the end of its texts."""
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
        """First token of targets, if the tokenizer ends them in their language; else None."""
        if self.languages is None:
            return None
        token: int = self.tokenizer.convert_tokens_to_ids(self.languages[1])
        with self._speaking():
            (ids,) = self.tokenizer(text_target=[""])["input_ids"]
        return token if ids[-1] == token else None

    @property
    def identity(self) -> str:
        """Further properties that determine the tokens: the kind of model and its separators."""
        return f"{self.stack} {self.tokenizer.bos_token_id} {self.eos_token_id}"

    def encode(self, raw: RawTextSplit, name: str) -> tuple[TextSplit, list[Cut]]:
        """Tokenise a split; return also the counts of truncated texts of each side.

        Args:
            raw: Texts.
            name: Name of the split. Train keeps no references.
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
        """Tokenise sources; return also the number of truncated ones."""
        end = [self.tokenizer.convert_tokens_to_ids(self.separator)] if self.separator else []
        return self._rows(texts, self._task.max_tokens, end, name="text")

    def _rows(
        self, texts: Sequence[str], longest: int, end: list[int], *, name: str, **options: bool
    ) -> tuple[TokenRows, int]:
        """Tokenise texts, each followed by ``end``; return also the number of truncated ones."""
        with self._speaking():
            found, cut = encoded(self.tokenizer, {name: texts}, longest - len(end), **options)
        rows = found["input_ids"]
        if end:
            rows = [[*(row[:-1] if row and row[-1] == self.eos_token_id else row), *end] for row in rows]
        return TokenRows.of(rows), cut

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Set the languages of the task within the context, for a tokenizer with languages."""
        tokenizer = self.tokenizer
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
    """Kind of task from text to text.

    Attributes:
        columns: Function from a task to its columns by their keys.
        read_keys: Keys of the columns that a model reads, in the order of the arguments of ``source_of``.
        read: Function that reads the rows of a task from a dataset.
        source_of: Function from the texts of a row to the model's source.
        as_read: Function from a value of a read column to a text, for a prediction.
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
        """Implement `TaskKind`."""
        check_new_tokens(task)

    def read_columns(self, task: Task) -> tuple[str, ...]:
        """Implement `TaskKind`."""
        columns = self.columns(task)
        return tuple(columns[key] or key for key in self.read_keys)

    def prompt(self, task: Task, texts: Sequence[str]) -> str:
        """Implement `TaskKind`."""
        return instructed(self.source_of(*texts), task)

    def encoder(self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind) -> TextEncoder:
        """Implement `TaskKind`."""
        return TextEncoder(task, tokenizer, stack)

    def preparation(
        self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind, position_limit_tokens: int | None
    ) -> "_GenerationPreparation":
        """Implement `TaskKind`."""
        encoder = self.encoder(task, tokenizer, stack)
        _check_lengths(task, stack, position_limit_tokens)
        return _GenerationPreparation(task, encoder, self.metrics, self)


@dataclass(frozen=True, slots=True)
class TextPreparation:
    """Common part of the preparations of generated texts; see `trial_runner.tasks.kind.Preparation`.

    Attributes:
        usual_metrics: Metrics that are measured unless the task names others.
    """

    task: Task
    encoder: Encoder
    usual_metrics: tuple[str, ...]

    @property
    def identity(self) -> str:
        """Identity of the encoder; see `Preparation`."""
        return self.encoder.identity

    def facts_of(self, raw: RawTask[Any], cuts: Sequence[Cut]) -> Facts:
        """Return the facts that a cache keeps beside the tokens."""
        encoder = self.encoder
        return kept_facts(self.task, raw, cuts, start=encoder.start_token_id, eos=encoder.eos_token_id)

    def prepared(self, fingerprint: str, facts: Facts, splits: Mapping[str, WrittenSplit]) -> PreparedTextTask:
        """Build the task from the cached tokens, and the options of measuring and generating, which are not cached."""
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
    """Implementation of `trial_runner.tasks.kind.Preparation`."""

    encoder: TextEncoder
    kind: Generation

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts; see `Preparation`."""
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
        """Implement `Preparation`."""
        return self.kind.read(dataset, self.task, split, group)

    def tokenised(self, raw: RawTask[RawTextSplit]) -> tuple[Facts, dict[str, TextSplit]]:
        """Implement `Preparation`."""
        whole = drop_repeated(complete_splits(drop_unanswered(raw)))
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
        """Implement `Preparation`."""
        return TextSplit(stack=self.encoder.stack, **held)


def check_new_tokens(task: Task) -> None:
    """Refuse a smallest number of new tokens above the largest.

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


def drop_unanswered(raw: RawTask[RawTextSplit]) -> RawTask[RawTextSplit]:
    """Leave out splits whose references are hidden, and rows without a text or a reference.

    Raises:
        TaskError: If train is missing, or nothing of it remains.
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
