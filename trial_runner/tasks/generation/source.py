"""Where the texts of a generation task come from, and how its answers are generated. Plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from trial_runner.errors import TaskError
from trial_runner.tasks.data.groups import Grouping
from trial_runner.tasks.data.names import nearest
from trial_runner.tasks.data.place import SourceKind, SplitNames, check_place, title_of
from trial_runner.tasks.generation.metrics import TEXT_KINDS, TextKind, metrics_of_kind

EarlyMetric = Literal["loss", "metric"]
"""What a trial is scored by before its last step: the loss, which needs no generation, or the metric itself."""

_SMALLEST_TARGET_TOKENS = 4  # a token of text beside the special tokens around it


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How a text is generated.

    Attributes:
        beams: Width of the beam search; 1 is greedy.
        max_new_tokens: Most tokens of a generated text, the end of text among them.
        min_new_tokens: No text ends before.
        length_penalty: Power of the length that a beam's score is divided by; above 0 it favours longer texts.
        no_repeat_ngram: No n-gram of that many tokens occurs twice in a text; 0 lets everything through.

    Raises:
        TaskError: If a value is out of its range.
    """

    max_new_tokens: int
    beams: int = 1
    min_new_tokens: int = 0
    length_penalty: float = 1.0
    no_repeat_ngram: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not self.beams >= 1:
            raise TaskError(f"beams must be at least 1; got {self.beams}.")
        if not self.max_new_tokens >= 1:
            raise TaskError(f"max_new_tokens must be at least 1; got {self.max_new_tokens}.")
        if not 0 <= self.min_new_tokens <= self.max_new_tokens:
            raise TaskError(
                f"min_new_tokens must be from 0 to max_new_tokens ({self.max_new_tokens}); got {self.min_new_tokens}."
            )
        if not abs(self.length_penalty) < float("inf"):
            raise TaskError(f"length_penalty must be a finite number; got {self.length_penalty}.")
        if not self.no_repeat_ngram >= 0:
            raise TaskError(f"no_repeat_ngram must be at least 0; got {self.no_repeat_ngram}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumns:
    """The columns of a task from text to text. A name may be a path, such as ``lex.text``.

    Attributes:
        source: What is read: a text, or a list of triples.
        target: What is to be written: a text, or a list of texts, each of which is learned and is a reference.
        references: Of validation and test, what is measured against: a text or a list; None takes the target.
    """

    source: str
    target: str
    references: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionColumns:
    """The columns of a question-answering task.

    Attributes:
        context: The text that a question is about.
        question: A question, or the list of all questions of a conversation.
        answers: A text, a list of texts, or ``{"text": [...]}`` as in SQuAD; of a conversation the answer of each
            question, or ``{"input_text": [...]}`` as in CoQA.
    """

    context: str = "context"
    question: str = "question"
    answers: str = "answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTaskSource:
    """A task whose answer is a text, as it is asked for.

    Attributes:
        kind: ``folder`` (local jsonl, csv or parquet files) or ``hub``.
        name: Path of the folder, or hub name such as ``rajpurkar/squad``.
        task_kind: What is done with the text.
        columns: Where the texts stand.
        decoding: How answers are generated.
        metric: The score that the search maximises, negated if lower is better.
        metrics: All that are measured; they contain ``metric``. Empty takes those of the kind.
        early_metric: What a trial is scored by before its last step.
        configuration: Configuration of a hub dataset, such as ``ro-en``.
        revision: Branch, tag or commit of a hub dataset; None takes the newest.
        group: Column of the groups that are measured on their own too; None if there is none.
        instruction: Put before every source, such as ``translate English to German:``.
        languages: Of source and target, as the tokenizer calls them, such as ``en_XX`` and ``ro_RO``; tokenizers
            without languages ignore them.
        max_tokens: Longer sources are cut; of a decoder the separator is counted too.
        max_target_tokens: Longer targets are cut, the end of text is kept.
        label_smoothing: Share of the probability that the loss spreads over the vocabulary, in [0, 1).
        splits: Names of splits that are not called train, validation and test; see `TaskSource`.
        train_examples: Use only so many of train, chosen by hash; None uses all.
        validation_examples: The same for validation.

    Raises:
        TaskError: If a value cannot be.
    """

    kind: SourceKind
    name: str
    task_kind: TextKind
    columns: TextColumns | QuestionColumns
    decoding: Decoding
    metric: str
    metrics: tuple[str, ...] = ()
    early_metric: EarlyMetric = "loss"
    configuration: str | None = None
    revision: str | None = None
    group: Grouping | None = None
    instruction: str = ""
    languages: tuple[str, str] | None = None
    max_tokens: int = 128
    max_target_tokens: int = 64
    label_smoothing: float = 0.0
    splits: Mapping[str, SplitNames] = field(default_factory=dict)
    train_examples: int | None = None
    validation_examples: int | None = None

    def __post_init__(self) -> None:
        """Check each value on its own; whether the data has the columns is seen when it is read."""
        check_place(self)
        if self.kind == "embedded":
            raise TaskError(f"a {self.task_kind} task must come from a folder or the hub; none is embedded.")
        if self.task_kind not in TEXT_KINDS:
            raise TaskError(f"kind of a text task must be one of {', '.join(TEXT_KINDS)}; got {self.task_kind!r}.")
        wanted = QuestionColumns if self.task_kind == "question_answering" else TextColumns
        if not isinstance(self.columns, wanted):
            raise TaskError(f"columns of a {self.task_kind} task must be {wanted.__name__}; got {self.columns}.")
        known = metrics_of_kind(self.task_kind)
        for name in (self.metric, *self.metrics):
            if name not in known:
                raise TaskError(
                    f"metric of a {self.task_kind} task must be one of {', '.join(known)}; got {name!r}."
                    f"{nearest(name, known)}"
                )
        if self.metrics and self.metric not in self.metrics:
            raise TaskError(f"metrics must contain the metric {self.metric!r}; got {', '.join(self.metrics)}.")
        if self.early_metric not in get_args(EarlyMetric):
            raise TaskError(f"early_metric must be loss or metric; got {self.early_metric!r}.")
        if not self.max_target_tokens >= _SMALLEST_TARGET_TOKENS:
            raise TaskError(
                f"max_target_tokens must be at least {_SMALLEST_TARGET_TOKENS}; got {self.max_target_tokens}."
            )
        if not 0 <= self.label_smoothing < 1:
            raise TaskError(f"label_smoothing must be in [0, 1); got {self.label_smoothing}.")

    @property
    def title(self) -> str:
        """Short name of the task, the same wherever its folder is."""
        return title_of(self)

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of the metrics that are measured."""
        return self.metrics or metrics_of_kind(self.task_kind)
