"""A task as a study file has it: where its texts stand, what is made of them, how that is measured."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, field, fields
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from search_space.field_types import Distinct, Integer, Name, Number, Size, Text, choice
from trial_runner.errors import TaskError
from trial_runner.files import expanded
from trial_runner.tasks.metrics import METRICS

KEYS_ARE_KNOWN = ConfigDict(extra="forbid", validate_default=True)

NO_GROUP = ""
_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")


def _group_values(value: object) -> tuple[str, ...]:
    """Values of a column as text; one stands for a list of one."""
    values = value if isinstance(value, list | tuple) else [value]
    if not values or not all(isinstance(each, str | int) for each in values):
        raise ValueError("must be a list of texts, whole numbers or true and false")
    return tuple(str(each).lower() if isinstance(each, bool) else str(each) for each in values)


_GroupValues = Annotated[tuple[str, ...], BeforeValidator(_group_values)]


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Grouping:
    """Which column says to which group an example belongs.

    Attributes:
        column: Of strings, integers or booleans.
        values: Name of each group and the values of the column that belong to it, as text; examples with other values
            are in no group. Empty: every value is a group of its own, named by itself.

    Raises:
        TaskError: If a group's name cannot be part of a metric's, or a value is in two groups.
    """

    column: Text
    values: dict[Text, _GroupValues] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check names and values."""
        for name in self.values:
            check_group_name(name)
        listed = [value for values in self.values.values() for value in values]
        if len(set(listed)) != len(listed):
            raise TaskError(f"a value of column {self.column!r} must be in one group; got {', '.join(listed)}.")

    def name_of(self, value: object) -> str:
        """The group of an example with that value; ``NO_GROUP`` if it is in none."""
        text = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value).strip()
        if self.values:
            return next((name for name, values in self.values.items() if text in values), NO_GROUP)
        return "_".join(re.findall(r"[a-z0-9]+", text.lower()))


def check_group_name(name: str) -> None:
    """Refuse a name that cannot follow a metric's, as in ``bleu_seen``.

    Raises:
        TaskError: If it has other characters than a-z, 0-9 and ``_``.
    """
    if not _NAME.fullmatch(name):
        raise TaskError(f"a group must be named with a-z, 0-9 and '_'; got {name!r}.")


def rows_by_group(groups: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each group, groups in the order of their names; rows without a group are left out."""
    rows: dict[str, list[int]] = {name: [] for name in sorted(set(groups)) if name != NO_GROUP}
    for row, name in enumerate(groups):
        if name != NO_GROUP:
            rows[name].append(row)
    return rows


SplitName = str | dict[str, str]
"""What the data calls a split; a mapping from groups to names joins several."""

SPLITS = ("train", "validation", "test")


def _split_once(value: object) -> object:
    """One column name stands for a list of one."""
    return [value] if isinstance(value, str) else value


def _split_name(value: object) -> object:
    """The name of a split, or group and name of each split that it is joined from."""
    names = value.items() if isinstance(value, Mapping) else [("all", value)]
    if not names or not all(isinstance(text, str) and text for pair in names for text in pair):
        raise ValueError("must be the name of a split, or a mapping from groups to names of splits")
    return value


def _named(key: str) -> BeforeValidator:
    """One text stands for a mapping of which it is a key."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


Columns = Annotated[tuple[Text, ...], BeforeValidator(_split_once), Field(min_length=1, max_length=2)]
MetricName = Annotated[str, AfterValidator(lambda name: choice(name, METRICS))]
_SplitName = Annotated[SplitName, BeforeValidator(_split_name)]


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Decoding:
    """How texts are generated.

    Attributes:
        beams: Width of the beam search; 1 is greedy.
        max_new_tokens: Most tokens of a generated text, the end of text among them; null is ``max_target_tokens``.
        min_new_tokens: No text ends before.
        length_penalty: Power of the length that a beam's score is divided by; above 0 it favours longer texts.
        no_repeat_ngram: No n-gram of that many tokens occurs twice in a text; 0 lets everything through.
    """

    beams: Size = 1
    max_new_tokens: Size | None = None
    min_new_tokens: Annotated[Integer, Field(ge=0)] = 0
    length_penalty: Number = 1.0
    no_repeat_ngram: Annotated[Integer, Field(ge=0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class HubData:
    """A data set of the Hugging Face hub.

    Attributes:
        name: Such as ``nyu-mll/glue``.
        configuration: Such as ``sst2``.
        revision: Branch, tag or commit; null is the newest.
    """

    name: Text
    configuration: Text | None = None
    revision: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class QuestionColumns:
    """Columns of question answering.

    Attributes:
        context: Of what is asked about.
        question: Of the question, or of all questions of a conversation.
        answers: A text, a list of texts, or ``{"text": [...]}`` as in SQuAD; of a conversation the answer of each
            question, or ``{"input_text": [...]}`` as in CoQA.
    """

    context: Text = "context"
    question: Text = "question"
    answers: Text = "answers"


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Dialogue:
    """How dialogues are written and learned.

    Attributes:
        system: The system's message before dialogues that have none.
        learned_turns: Whether ``all`` answers of a dialogue are learned or the ``last``.
        answer_after: What the answer proper stands behind in a written text, such as ``Answer:``.
        template_options: What else the tokenizer's chat template is told.
    """

    system: Text | None = None
    learned_turns: Literal["all", "last"] = "all"
    answer_after: Text | None = None
    template_options: dict[Text, bool | int | Text] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Examples:
    """Most examples of a split that are used, the same ones always, chosen by hash; null uses all.

    Attributes:
        train: That are learned from.
        validation: That a trial is measured on.
    """

    train: Size | None = None
    validation: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Task:
    """What is learned. Exactly one of ``name``, ``folder`` and ``hub``.

    Whether its keys fit its kind is said by `trial_runner.tasks.kinds.check_task`; whether the data has the columns is
    seen when it is read.

    Attributes:
        kind: ``classification`` (of a text or a pair), ``regression``, ``summarisation``, ``translation``,
            ``data_to_text``, ``question_answering`` or ``instruction``; the last five need a backbone that generates.
        name: An embedded task, such as ``docstrings``.
        folder: Holds ``train``, ``validation`` and ``test`` as .jsonl, .json, .csv of any separator, .tsv, .parquet or
            .arrow, packed as .gz or not, or as folders that ``datasets`` has saved; relative to the study file.
        hub: A data set of the Hugging Face hub, such as ``nyu-mll/glue``, or ``{name, configuration, revision}``: a
            configuration such as ``sst2``; a branch, tag or commit, null for the newest.
        text: Of classification and regression, the column of the text, or the two columns of a pair. Of instruction,
            the column of texts without roles, of which every token is learned.
        label: Of classification, the column of the label.
        labels: In the order of their indices; null takes them from train, sorted.
        source: Column of what is read: a text, or a list of triples. A path such as ``lex.text`` leads into a column;
            a language such as ``en`` into the column ``translation``.
        target: Column of what is to be written: a text, or a list of texts, each of which is learned and measured
            against.
        references: Column of the texts that validation and test are measured against; null is ``target``.
        questions: Of question answering, columns not called so: ``context``, what is asked about; ``question``,
            or all questions of a conversation; ``answers``, a text, a list of texts, or ``{"text": [...]}`` as in
            SQuAD, of a conversation the answer of each question, or ``{"input_text": [...]}`` as in CoQA.
        messages: Of instruction, the column of the dialogues: lists of messages, each with a ``role`` and a ``content``
            (or ``from`` and ``value``). Null is ``messages``, unless ``source`` and ``target`` name the columns of a
            user's message and its answer, or ``text`` that of texts.
        dialogue: Of instruction: ``system``, the system's message before dialogues that have none; ``learned_turns``,
            whether ``all`` answers are learned or the ``last``, texts of users and systems never; ``answer_after``,
            what the answer proper stands behind in a written text, such as ``Answer:``, for ``exact_match`` and
            ``token_f1``; ``template_options``, what else the tokenizer's chat template is told, such as
            ``{enable_thinking: false}``.
        join: Put between the texts where a column of what is read holds lists of texts, such as the turns of a
            dialogue; null refuses lists. Of messages with a role and a content, a text task whose source is its
            target, too, reads all but the last and learns the last.
        group: Column whose values are measured on their own too, as ``bleu_seen``; or ``{column, values}`` with those
            of each group, such as ``{seen: [true], unseen: [false]}``.
        instruction: Put before every source, such as ``translate English to German:``.
        languages: Of source and target, as a tokenizer that knows languages calls them: ``[en_XX, ro_RO]``.
        splits: Names of splits that are not called train, validation and test (of a folder: of files, also by a path
            such as ``more/dev.csv``); several, each measured on its own too, as
            ``{matched: validation_matched, mismatched: validation_mismatched}``.
        metric: What is maximised; ``ter``, ``loss`` and ``perplexity`` with a minus sign.
        metrics: What is measured, ``metric`` among it; empty is all of the kind.
        max_tokens: Longer texts are cut; of a pair, the longer text first; of a decoder the separator is counted too.
        max_target_tokens: Longer targets are cut, the end of text is kept.
        label_smoothing: Share of the probability that the loss spreads over the vocabulary.
        decoding: How texts are generated.
        examples: Most examples of ``train`` and ``validation`` that are used, the same always, chosen by hash; null
            uses all. A trial is measured on those of validation at each rung and at its end, which costs a third of
            training on them once.
    """

    kind: str = "classification"
    name: Name | None = None
    folder: Text | None = None
    hub: Annotated[HubData, _named("name")] | None = None
    text: Columns | None = None
    label: Text | None = None
    labels: Annotated[tuple[Text, ...], Distinct, Field(min_length=2)] | None = None
    source: Text | None = None
    target: Text | None = None
    references: Text | None = None
    questions: QuestionColumns = QuestionColumns()
    messages: Text | None = None
    dialogue: Dialogue = Dialogue()
    join: Annotated[str, Field(min_length=1)] | None = None
    group: Annotated[Grouping, _named("column")] | None = None
    instruction: Text | None = None
    languages: tuple[Text, Text] | None = None
    splits: dict[Literal["train", "validation", "test"], _SplitName] = field(default_factory=dict)
    metric: MetricName = "accuracy"
    metrics: Annotated[tuple[MetricName, ...], Distinct] = ()
    max_tokens: Annotated[Integer, Field(ge=8)] = 64  # room for the special tokens of a pair and a token of each text
    max_target_tokens: Annotated[Integer, Field(ge=4)] = 64  # a token of text beside the special tokens around it
    label_smoothing: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    decoding: Decoding = Decoding()
    examples: Examples = Examples()

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        given = [key for key in ("name", "folder", "hub") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(f"must have exactly one of name, folder and hub; got {' and '.join(given) or 'none'}")
        return self

    @property
    def title(self) -> str:
        """Short name of the task, the same wherever its folder is."""
        if self.folder is not None:
            return expanded(self.folder).absolute().name
        if self.hub is None:
            return self.name or ""
        return f"{self.hub.name}/{self.hub.configuration}" if self.hub.configuration else self.hub.name

    @property
    def most_new_tokens(self) -> int:
        """Most tokens of a generated text."""
        return self.decoding.max_new_tokens or self.max_target_tokens


def defaults_of(task: Task) -> dict[str, Any]:
    """What each key of a task is where it is left out."""
    return {
        each.name: each.default_factory() if each.default_factory is not MISSING else each.default
        for each in fields(task)
    }


def parts_of(names: SplitName) -> Iterator[tuple[str, str]]:
    """Group and name of each part that a split is joined from."""
    yield from [(NO_GROUP, names)] if isinstance(names, str) else names.items()


def taken_names(splits: Iterable[SplitName]) -> set[str]:
    """Names of the data's splits that the task uses as something it says itself."""
    return {name for names in splits for _, name in parts_of(names)}
