"""Task in a study file: the place of its texts, their use, and its metrics."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, field, fields
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from search_space.field_types import Distinct, Integer, Name, Number, Size, Text
from trial_runner.errors import TaskError
from trial_runner.files import expanded

KEYS_ARE_KNOWN = ConfigDict(extra="forbid", validate_default=True)

NO_GROUP = ""
_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")


def _group_values(value: object) -> tuple[str, ...]:
    """Return values of a column as texts; a single value stands for a list of one."""
    values = value if isinstance(value, list | tuple) else [value]
    if not values or not all(isinstance(each, str | int) for each in values):
        raise ValueError("must be a list of texts, whole numbers or true and false")
    return tuple(str(each).lower() if isinstance(each, bool) else str(each) for each in values)


_GroupValues = Annotated[tuple[str, ...], BeforeValidator(_group_values)]


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Grouping:
    """Column that names the group of an example.

    Attributes:
        column: Column of strings, integers or booleans.
        values: Name of each group with its values of the column, as text; examples with other values are in no group.
            If empty, every value is a group of its own, named by itself.

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
        """Return the group of an example with that value; ``NO_GROUP`` if it is in none."""
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
    """Return the rows of each group, groups in the order of their names; rows without a group are left out."""
    rows: dict[str, list[int]] = {name: [] for name in sorted(set(groups)) if name != NO_GROUP}
    for row, name in enumerate(groups):
        if name != NO_GROUP:
            rows[name].append(row)
    return rows


SplitName = str | dict[str, str]
"""Name of a split in the data; a mapping from groups to names joins several."""

SPLITS = ("train", "validation", "test")


def _split_once(value: object) -> object:
    """Return a single column name as a list of one."""
    return [value] if isinstance(value, str) else value


def _split_name(value: object) -> object:
    """Check the name of a split, or the group and name of each split that it is joined from."""
    names = value.items() if isinstance(value, Mapping) else [("all", value)]
    if not names or not all(isinstance(text, str) and text for pair in names for text in pair):
        raise ValueError("must be the name of a split, or a mapping from groups to names of splits")
    return value


def _named(key: str) -> BeforeValidator:
    """Return a validator that accepts one text in place of a mapping, as the value of a key."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


Columns = Annotated[tuple[Text, ...], BeforeValidator(_split_once), Field(min_length=1, max_length=2)]
_SplitName = Annotated[SplitName, BeforeValidator(_split_name)]


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Decoding:
    """Generation of texts.

    Attributes:
        beams: Width of the beam search; 1 is greedy.
        max_new_tokens: Largest number of tokens of a generated text, its end included; null is ``max_target_tokens``.
        min_new_tokens: Smallest number of tokens of a generated text.
        length_penalty: Power of the length by which a beam's score is divided; above 0 it favours longer texts.
        no_repeat_ngram: Length of n-grams that occur at most once in a text; 0 sets no bound.
    """

    beams: Size = 1
    max_new_tokens: Size | None = None
    min_new_tokens: Annotated[Integer, Field(ge=0)] = 0
    length_penalty: Number = 1.0
    no_repeat_ngram: Annotated[Integer, Field(ge=0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class HubData:
    """Data set of the Hugging Face hub.

    Attributes:
        name: Name such as ``nyu-mll/glue``.
        configuration: Configuration such as ``sst2``.
        revision: Branch, tag or commit; null is the newest.
    """

    name: Text
    configuration: Text | None = None
    revision: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class QuestionColumns:
    """Columns of question answering.

    Attributes:
        context: Column of the context.
        question: Column of the question, or of all questions of a conversation.
        answers: Column of a text, a list of texts, or ``{"text": [...]}`` as in SQuAD; of a conversation the answer of
            each
            question, or ``{"input_text": [...]}`` as in CoQA.
    """

    context: Text = "context"
    question: Text = "question"
    answers: Text = "answers"


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Dialogue:
    """Format and training of dialogues.

    Attributes:
        system: System message of dialogues that have none.
        learned_turns: Learned answers of a dialogue: ``all`` or the ``last``.
        answer_after: Mark before the answer proper in a generated text, such as ``Answer:``.
        template_options: Further variables of the tokenizer's chat template.
    """

    system: Text | None = None
    learned_turns: Literal["all", "last"] = "all"
    answer_after: Text | None = None
    template_options: dict[Text, bool | int | Text] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Examples:
    """Largest number of used examples of a split, a fixed choice by hash; null uses all.

    Attributes:
        train: Number of training examples.
        validation: Number of examples on which a trial is measured.
    """

    train: Size | None = None
    validation: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Task:
    """Task of a study. Exactly one of ``name``, ``folder`` and ``hub``.

    `trial_runner.tasks.kinds.check_task` checks the keys against the kind; columns are checked when the data is read.

    Attributes:
        kind: ``classification`` (of a text or a pair), ``regression``, ``summarisation``, ``translation``,
            ``data_to_text``, ``question_answering`` or ``instruction``; the last five need a backbone that generates.
        name: Embedded task, such as ``docstrings``.
        folder: Folder with ``train``, ``validation`` and ``test`` as .jsonl, .json, .csv of any separator, .tsv,
            .parquet
            or .arrow, packed as .gz or not, or as folders that ``datasets`` has saved; relative to the study file.
        hub: Data set of the Hugging Face hub, such as ``nyu-mll/glue``, or ``{name, configuration, revision}``: a
            configuration such as ``sst2``; a branch, tag or commit, null for the newest.
        text: Column of the text in classification and regression, or the two columns of a pair. In instruction, column
            of
            texts without roles, of which every token is learned.
        label: Column of the label in classification and regression.
        labels: Labels in the order of their indices; null takes them from train, sorted.
        source: Column of the input: a text, or a list of triples. A path such as ``lex.text`` leads into a column;
            a language such as ``en`` into the column ``translation``.
        target: Column of the output: a text, or a list of texts, each of which is learned and is a reference.
        references: Column of the references of validation and test; null is ``target``.
        questions: Columns of question answering with other names: ``context``; ``question``, or all questions of a
            conversation; ``answers``, a text, a list of texts, or ``{"text": [...]}`` as in SQuAD, of a conversation
            the
            answer of each question, or ``{"input_text": [...]}`` as in CoQA.
        messages: Column of the dialogues in instruction: lists of messages, each with a ``role`` and a ``content``
            (or ``from`` and ``value``). Null is ``messages``, unless ``source`` and ``target`` name the columns of a
            user's message and its answer, or ``text`` that of texts.
        dialogue: Options of instruction: ``system``, the system message of dialogues that have none; ``learned_turns``,
            ``all`` answers or the ``last``, texts of users and systems never; ``answer_after``, the mark before the
            answer
            proper in a generated text, such as ``Answer:``, for ``exact_match`` and ``token_f1``; ``template_options``,
            further variables of the tokenizer's chat template, such as ``{enable_thinking: false}``.
        join: Separator of the texts of a column with lists of texts, such as the turns of a dialogue; null refuses
            lists.
            Of messages with a role and a content, a text task whose source is its target, too, reads all but the last
            and
            learns the last.
        group: Column whose values are measured on their own too, as ``bleu_seen``; or ``{column, values}`` with those
            of each group, such as ``{seen: [true], unseen: [false]}``.
        instruction: Text before every source, such as ``translate English to German:``.
        languages: Languages of source and target, for a tokenizer with languages: ``[en_XX, ro_RO]``.
        splits: Names of splits that are not called train, validation and test (of a folder: of files, also by a path
            such as ``more/dev.csv``); several, each measured on its own too, as
            ``{matched: validation_matched, mismatched: validation_mismatched}``.
        metric: Metric that is maximised; ``ter``, ``loss`` and ``perplexity`` with a minus sign.
        metrics: Measured metrics, ``metric`` among them; empty for all of the kind.
        max_tokens: Largest number of tokens of a text, the rest is cut; of a pair, the longer text is cut first; for a
            decoder the separator is counted too.
        max_target_tokens: Largest number of tokens of a target, the rest is cut, the end of text is kept.
        label_smoothing: Share of the probability that the loss spreads over the vocabulary.
        decoding: Options of the generation.
        examples: Largest number of used examples of ``train`` and ``validation``, a fixed choice by hash; null
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
    metric: str = "accuracy"
    metrics: Annotated[tuple[str, ...], Distinct] = ()
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
        """Largest number of tokens of a generated text."""
        return self.decoding.max_new_tokens or self.max_target_tokens


def defaults_of(task: Task) -> dict[str, Any]:
    """Return the default of each key of a task."""
    return {
        each.name: each.default_factory() if each.default_factory is not MISSING else each.default
        for each in fields(task)
    }


def parts_of(names: SplitName) -> Iterator[tuple[str, str]]:
    """Yield group and name of each part that a split is joined from."""
    yield from [(NO_GROUP, names)] if isinstance(names, str) else names.items()


def taken_names(splits: Iterable[SplitName]) -> set[str]:
    """Return the names of the data's splits that the task uses in another role."""
    return {name for names in splits for _, name in parts_of(names)}
