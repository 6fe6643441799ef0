"""Interface of a kind of task: reading its rows, tokenising them, caching them, and its metrics."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.tasks.evaluation import metrics_of
from trial_runner.tasks.splits import Dropped, RawTask, Rows, SplitDigest
from trial_runner.tasks.task import Task
from trial_runner.tasks.token_rows import TokenRows

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast

Facts = Mapping[str, Any]
"""What the cache keeps of a task beside its splits: JSON-able."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Texts of a split that are truncated to the length that the task allows.

    Attributes:
        split: Name of the split.
        what: ``examples``, or ``sources`` or ``targets``, or ``dialogues``.
        count: Number of truncated texts.
        of: Number of all texts.
        tokens: Number of tokens that remain.
    """

    split: str
    what: str
    count: int
    of: int
    tokens: int

    def __str__(self) -> str:
        """Return the line for users."""
        verb = "is" if self.count == 1 else "are"
        line = f"{self.split}: {self.count:,} of {self.of:,} {self.what} {verb} cut to {self.tokens:,} tokens."
        return f"{line} Raise task.{'max_target_tokens' if self.what == 'targets' else 'max_tokens'}."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """Task in tokens, ready for training.

    Attributes:
        objective: Name of its objective in `trial_runner.objectives.OBJECTIVES`.
        name: Short name of the task.
        metric: Metric that is maximised, negated if lower is better; see `trial_runner.tasks.evaluation.score_of`.
        splits: ``train``, ``validation`` and ``test``: their length is the number of examples, ``first(n)`` the first
            n.
        notes: One line for each change of the data, dropped and truncated rows included.
        fingerprint: Hash of the task, the data, the tokenizer and the largest lengths, as hex.
        cuts: Counts of the truncated texts.
        dropped: Counts of the unused rows, by split and reason.
        labels: Name of each class, by index; empty without classes.
        digests: Digest of the rows of each split, before they are tokens.
        tokenizer: Hash of the tokenizer, as hex, and the token ids that the task adds.
    """

    objective: ClassVar[str]
    name: str
    metric: str
    splits: Mapping[str, Any]
    notes: tuple[str, ...]
    fingerprint: str
    cuts: tuple[Cut, ...] = ()
    labels: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    digests: Mapping[str, SplitDigest] = field(default_factory=dict)
    tokenizer: str = ""

    @property
    def losses(self) -> tuple[str, ...]:
        """Line for each split and reason for which rows are dropped or texts truncated."""
        return tuple(map(str, (*self.dropped, *self.cuts)))

    @property
    def guessing_loss(self) -> float | None:
        """Mean loss of guessing by the frequencies of the labels in train; None without labels."""
        return None

    @property
    def constant_score(self) -> float | None:
        """Score on validation of predicting the most frequent label of train for everything; None without labels."""
        return None


class Preparation(Protocol):
    """Conversion of one task into tokens of one tokenizer."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Properties of the task that determine the tokens, JSON-able, without the path of a folder."""

    @property
    def identity(self) -> str:
        """Further properties that determine the tokens, besides the behaviour of the tokenizer; empty without any."""

    def read(self, dataset: "Dataset", split: str, group: str) -> Rows:
        """Read the rows of a dataset, which belong to a group unless a column names it.

        Raises:
            TaskError: If they do not fit the task.
        """

    def tokenised(self, raw: RawTask[Any]) -> tuple[Facts, Mapping[str, Any]]:
        """Complete, truncate and tokenise the splits; return them with their `kept_facts`, for the cache."""

    def new_split(self, **held: Any) -> Any:
        """Build a split from its fields."""

    def prepared(self, fingerprint: str, facts: Facts, splits: Mapping[str, Any]) -> Any:
        """Build the `Prepared` task from the contents of the cache."""


class Encoder(ABC):
    """Tokenisation of prompts, and special tokens of the generated answers.

    Attributes:
        tokenizer: Tokenizer of the model.
        stack: Kind of the model.
        decoding: Options of the generation.
        max_new_tokens: Largest number of tokens of an answer.
        separator: Tokens of a decoder between a source and its target; empty without any.
        languages: Languages of source and target; None for a tokenizer without languages.
        eos_token_id: Id of the token that ends an answer.
    """

    separator: str = ""
    languages: tuple[str, str] | None = None
    eos_token_id: int

    def __init__(self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind) -> None:
        """Keep the task and the tokenizer."""
        self._task = task
        self.tokenizer = tokenizer
        self.stack = stack
        self.decoding = task.decoding
        self.max_new_tokens = task.most_new_tokens

    @property
    def start_token_id(self) -> int | None:
        """First token of the decoder of an encoder-decoder; None takes that of the model."""
        return None

    @property
    @abstractmethod
    def identity(self) -> str:
        """Further properties that determine the tokens, besides the behaviour of the tokenizer."""

    @abstractmethod
    def sources(self, texts: Sequence[str]) -> tuple[TokenRows, int]:
        """Tokenise prompts; return also the number of truncated ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind(ABC):
    """Kind of task, listed in `trial_runner.tasks.kinds.TASK_KINDS`.

    Attributes:
        name: Name in a study file.
        usual_metric: Metric that is maximised unless the task names another one.
        column_keys: Keys of a task that name columns of this kind.
        other_keys: Further keys of this kind that some kinds do not have.
        needed: Column keys that must be given, unless the task is embedded.
        prompt: Function from the texts of the read columns to the prompt of a language model; None without generation.
        encoder: Factory of an `Encoder` for these prompts; None without generation.
    """

    name: str
    usual_metric: str
    column_keys: tuple[str, ...]
    other_keys: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    prompt: ClassVar[Any] = None
    encoder: ClassVar[Any] = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of its metrics, the usual one first."""
        return metrics_of(self.name, self.usual_metric)

    @abstractmethod
    def check(self, task: Task) -> None:
        """Refuse a task whose values do not fit each other.

        Raises:
            TaskError: If they do not.
        """

    @abstractmethod
    def read_columns(self, task: Task) -> tuple[str, ...]:
        """Return the columns that a model reads, in the order of the texts of a prediction."""

    @abstractmethod
    def as_read(self, task: Task, column: str, value: object) -> object:
        """Convert a value of one of these columns for a prediction: to a text, if possible."""

    @abstractmethod
    def preparation(
        self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind, position_limit_tokens: int | None
    ) -> Preparation:
        """Return the preparation of a task for a backbone.

        Raises:
            TaskError: If the backbone cannot do such a task, or has not enough positions for its lengths.
        """


def check_length(name: str, tokens: int, limit: int | None) -> None:
    """Refuse a length beyond the positions of the backbone.

    Raises:
        TaskError: If it is.
    """
    if limit is not None and tokens > limit:
        raise TaskError(f"{name} must be at most {limit}, the positions of the backbone; got {tokens}.")


def kept_facts(task: Task, raw: RawTask[Any], cuts: Sequence[Cut], **more: object) -> Facts:
    """Return the facts of a task that a cache keeps beside its splits, JSON-able."""
    counts = {"cuts": [asdict(cut) for cut in cuts], "dropped": [asdict(one) for one in raw.dropped]}
    digests = {name: asdict(SplitDigest.of(rows)) for name, rows in raw.splits.items()}
    notes = [*map(str, raw.dropped), *raw.notes, *map(str, cuts)]
    return {"name": task.title, "notes": notes, "digests": digests, **counts, **more}


def prepared_fields(fingerprint: str, facts: Facts) -> dict[str, Any]:
    """Return the fields of a prepared task that are restored from `kept_facts`."""
    counts = {
        "cuts": tuple(Cut(**cut) for cut in facts["cuts"]),
        "dropped": tuple(Dropped(**one) for one in facts["dropped"]),
    }
    inputs = {
        "digests": {name: SplitDigest(**digest) for name, digest in facts["digests"].items()},
        "tokenizer": facts["tokenizer"],
    }
    same = {"name": facts["name"], "notes": tuple(facts["notes"]), "fingerprint": fingerprint}
    return {**same, **counts, **inputs}


def place_facts(task: Task) -> dict[str, Any]:
    """Return the facts that all kinds have: the place of the data, and the numbers of examples."""
    grouping = task.group
    joined = {} if task.join is None else {"join": task.join}
    return {
        **joined,
        "kind": "embedded" if task.name is not None else "folder" if task.folder is not None else "hub",
        "name": task.title,
        "configuration": None if task.hub is None else task.hub.configuration,
        "revision": None if task.hub is None else task.hub.revision,
        "group": None if grouping is None else {"column": grouping.column, "values": dict(grouping.values)},
        "max_tokens": task.max_tokens,
        "splits": dict(task.splits),
        "train_examples": task.examples.train,
        "validation_examples": task.examples.validation,
    }
