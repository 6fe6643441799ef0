"""What a kind of task is: how its rows are read, made into tokens and kept, and what it is measured by."""

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
    """Texts of a split that were longer than the task lets them be.

    Attributes:
        split: Where they are.
        what: ``examples``, or ``sources`` or ``targets``, or ``dialogues``.
        count: How many were cut.
        of: How many there are.
        tokens: To so many.
    """

    split: str
    what: str
    count: int
    of: int
    tokens: int

    def __str__(self) -> str:
        """The line that users read."""
        verb = "is" if self.count == 1 else "are"
        line = f"{self.split}: {self.count:,} of {self.of:,} {self.what} {verb} cut to {self.tokens:,} tokens."
        return f"{line} Raise task.{'max_target_tokens' if self.what == 'targets' else 'max_tokens'}."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A task that can be trained on, in tokens.

    Attributes:
        objective: What its trials learn: a word of `trial_runner.objectives.OBJECTIVES`.
        name: Short name of the task.
        metric: What the search maximises, negated where lower is better; see `trial_runner.tasks.evaluation.score_of`.
        splits: ``train``, ``validation`` and ``test``: their length is their examples, ``first(n)`` the first of them.
        notes: One line for each thing that was done to the data, what is dropped or cut among them.
        fingerprint: Hash of the task, the data, the tokenizer and the largest lengths, as hex.
        cuts: What was cut to the largest lengths.
        dropped: Counts of the rows that are not used, by split and reason.
        labels: Name of each class, by index; empty where there are none.
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
        """One line for each split and reason for which rows are dropped or texts cut."""
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
    """How one task becomes tokens of one tokenizer."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """All of the task that decides the tokens, JSON-able, without the place of a folder."""

    @property
    def identity(self) -> str:
        """What else decides them, beside what the tokenizer does to a text; empty if nothing does."""

    def read(self, dataset: "Dataset", split: str, group: str) -> Rows:
        """The rows of a dataset, which are in a group unless a column says so.

        Raises:
            TaskError: If they are not what the task says.
        """

    def tokenised(self, raw: RawTask[Any]) -> tuple[Facts, Mapping[str, Any]]:
        """What the cache keeps of what was read: `kept_facts`, and the splits, completed, cut and tokenised."""

    def new_split(self, **held: Any) -> Any:
        """A split of its fields."""

    def prepared(self, fingerprint: str, facts: Facts, splits: Mapping[str, Any]) -> Any:
        """The `Prepared` task of what the cache keeps."""


class Encoder(ABC):
    """How prompts become tokens, and how the answers that are written for them begin, go on and end.

    Attributes:
        stack: Kind of the model.
        decoding: How answers are generated.
        max_new_tokens: Most tokens of an answer.
        separator: What a decoder reads between a source and its target; empty where there is no such thing.
        languages: Of source and target; None where the tokenizer knows none.
        eos_token_id: Ends an answer.
    """

    separator: str = ""
    languages: tuple[str, str] | None = None
    eos_token_id: int

    def __init__(self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind) -> None:
        """Keep them."""
        self._task = task
        self._tokenizer = tokenizer
        self.stack = stack
        self.decoding = task.decoding
        self.max_new_tokens = task.most_new_tokens

    @property
    def start_token_id(self) -> int | None:
        """What the decoder of an encoder-decoder begins with; None leaves it to the model."""
        return None

    @property
    @abstractmethod
    def identity(self) -> str:
        """What, beside what a tokenizer does to a text, decides the tokens."""

    @abstractmethod
    def sources(self, texts: Sequence[str]) -> tuple[TokenRows, int]:
        """Tokens of prompts, and how many of them were cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind(ABC):
    """A kind of task, listed in `trial_runner.tasks.kinds.TASK_KINDS`.

    Attributes:
        name: As written in a study file.
        usual_metric: What is maximised unless the task says otherwise.
        column_keys: Keys of a task that name columns of this kind.
        other_keys: Other keys that only some kinds have, and this one does.
        needed: Those of the columns that must be named, unless the task is embedded.
        prompt: What a language model reads of the texts of the columns that are read; None where it writes no answer.
        encoder: What makes tokens of those prompts, an `Encoder`; None where it writes no answer.
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
        """Names of what it can be measured by, the usual one first."""
        return metrics_of(self.name, self.usual_metric)

    @abstractmethod
    def check(self, task: Task) -> None:
        """Refuse a task whose values do not fit each other.

        Raises:
            TaskError: If they do not.
        """

    @abstractmethod
    def read_columns(self, task: Task) -> tuple[str, ...]:
        """Columns of what a model reads, in the order in which predictions take their texts."""

    @abstractmethod
    def as_read(self, task: Task, column: str, value: object) -> object:
        """What is read of a value in one of these columns for a prediction: a text, where one can be made of it."""

    @abstractmethod
    def preparation(
        self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind, position_limit_tokens: int | None
    ) -> Preparation:
        """How a task is made ready for a backbone.

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
    """The fields that every prepared task has of `kept_facts`."""
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
    """What a kind's facts have in common: where the data stands, and how much of it is used."""
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
