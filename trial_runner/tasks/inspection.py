"""What the columns of a dataset hold, and which task they make: by their names where those are usual."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from search_space.closest_name import name_hint
from trial_runner.errors import TaskError
from trial_runner.tasks.data.columns import column
from trial_runner.tasks.data.linearise import is_conversation
from trial_runner.tasks.kinds import TASK_KINDS

if TYPE_CHECKING:
    from datasets import Dataset

_LABELS = ("label", "labels", "gold_label", "class", "sentiment", "intent", "emotion", "is_duplicate", "y")
_PAIRS = (
    *(("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_a", "sentence_b"), ("text1", "text2")),
    *(("text_a", "text_b"), ("question1", "question2"), ("question", "passage"), ("question", "sentence")),
    *(("query", "passage"), ("query", "document"), ("s1", "s2")),
)
_TEXTS = ("text", "sentence", "content", "review", "comment", "tweet", "body", "document", "utterance", "query")
_FROM_TO: Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]] = (
    (
        "data_to_text",
        ("modified_triple_sets", "meaning_representation", "mr", "triples", "table", "data"),
        ("human_reference", "references", "reference", "ref", "target", "text", "lex"),
    ),
    (
        "summarisation",
        ("document", "article", "dialogue", "dialog", "text", "body", "content", "story"),
        ("summary", "highlights", "headline", "title", "abstract", "tldr"),
    ),
    ("translation", ("source", "src"), ("target", "tgt", "trg", "translation")),
    (
        "summarisation",
        ("input", "prompt", "instruction", "question", "query", "source"),
        ("output", "completion", "response", "answer", "target", "references"),
    ),
)
_OF_LABELS = ("classification", "regression")
_ASKED = ("context", "question", "answers")
_CHOICES = ("choices", "choice", "options", "endings", "candidates", "answers", "alternatives")
_FEW_LABELS = 20
_ROWS_OF_A_LABEL = 20
_WORDS_OF_A_LABEL = 6


class ColumnKind(StrEnum):
    """What stands in a column."""

    TEXT = "text"
    LABEL = "labels"
    """Few different short texts, whole numbers, or true and false."""
    NUMBER = "numbers"
    TEXTS = "lists of texts"
    CONVERSATION = "messages with a role and a content"
    EMPTY = "nothing"
    OTHER = "something else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column as some rows show it.

    Attributes:
        kind: What stands in it.
        values: Of the rows looked at.
    """

    name: str
    kind: ColumnKind
    values: tuple[Any, ...]

    @property
    def is_scale(self) -> bool:
        """Whether it holds numbers, some of them with a fraction."""
        return self.kind is ColumnKind.NUMBER and any(value % 1 > 0 for value in self.values if value is not None)


def look_at(dataset: "Dataset") -> dict[str, Column]:
    """The columns of a dataset by their names, in their order."""
    return {name: _look(dataset, name) for name in dataset.column_names} if len(dataset) else {}


def _look(dataset: "Dataset", name: str) -> Column:
    values = tuple(column(dataset, name, "train"))
    there = [value for value in values if value is not None and value != "" and value != []]
    return Column(name=name, kind=_kind_of(dataset.features[name], there), values=values)


def _kind_of(feature: Any, there: list[Any]) -> ColumnKind:
    if not there:
        return ColumnKind.EMPTY
    if getattr(feature, "names", None) is not None:
        return ColumnKind.LABEL
    if all(isinstance(value, str | int | float) for value in there):
        return _plain_kind_of(there)
    if all(map(is_conversation, there)):
        return ColumnKind.CONVERSATION
    if all(isinstance(value, list) and all(isinstance(text, str) for text in value) for value in there):
        return ColumnKind.TEXTS
    return ColumnKind.OTHER


def _plain_kind_of(there: list[Any]) -> ColumnKind:
    distinct = len(set(there))
    words = sum(len(str(value).split()) for value in there) / len(there)
    is_few = distinct <= max(_FEW_LABELS, len(there) // _ROWS_OF_A_LABEL) and 2 * distinct <= max(4, len(there))
    if any(isinstance(value, float) for value in there):
        return ColumnKind.NUMBER
    if is_few and words <= _WORDS_OF_A_LABEL:
        return ColumnKind.LABEL
    return ColumnKind.TEXT if any(isinstance(value, str) for value in there) else ColumnKind.NUMBER


Keys = dict[str, Any]
"""Keys of a task as a study file has them: its kind, and the columns."""


def guess(columns: Mapping[str, Column], kind: str | None = None, wished: Mapping[str, Any] | None = None) -> Keys:
    """The task that the columns of train make.

    Args:
        columns: By their names.
        kind: Of the task, if that is known.
        wished: Keys of a task, such as ``text``, and the columns that are known to be theirs.

    Raises:
        TaskError: If nothing usual is among them, or a column that is wished for is not.
    """
    wished = {key: value for key, value in (wished or {}).items() if value}
    if kind not in (None, *TASK_KINDS):
        raise TaskError(f"the kind of a task must be one of {', '.join(TASK_KINDS)}; got {kind!r}.")
    named = []
    for name in columns_in(wished):
        found = columns.get(name) or columns.get(name.partition(".")[0])
        if found is None:
            raise TaskError(f"no column {name!r}; there are: {', '.join(columns)}.{name_hint(name, columns)}")
        named.append(found)
    if set(wished) <= {"label"}:
        _refuse_multiple_choice(list(columns.values()), answers=named or list(columns.values()))
    if "label" in wished or "text" in wished:
        return _labelled(columns, kind, wished)
    if set(wished) & set(_ASKED):
        return {"kind": "question_answering", "questions": wished}
    if wished:
        if not {"source", "target"} <= set(wished):
            raise TaskError("a task from text to text needs both columns; name them with --source and --target.")
        return _written(columns, kind or "summarisation", wished["source"], wished["target"])
    guessed = _guessed(columns, kind)
    if guessed is None:
        held = "; ".join(f"{name}: {one.kind.value}" for name, one in columns.items())
        raise TaskError(
            f"a task needs a text and a label, or a text and what is written of it; the columns are {held}. Say which "
            "with --text and --label, or --source and --target."
        )
    return guessed


def columns_in(keys: Mapping[str, Any]) -> Iterator[str]:
    """The columns that the keys of a task name, each one or several."""
    for key, value in keys.items():
        if key not in ("kind", "join"):
            yield from (value,) if isinstance(value, str) else value.values() if isinstance(value, dict) else value


def _guessed(columns: Mapping[str, Column], kind: str | None) -> Keys | None:
    """The task that nothing is said of but maybe its kind; None if it is not clear."""
    labels = _label_names(columns, kind) if kind in (None, *_OF_LABELS) else []
    if kind in (None, "question_answering") and set(_ASKED) <= set(columns):
        return {"kind": "question_answering", "questions": {key: key for key in _ASKED}}
    if labels and labels[0].lower() in _LABELS:
        return _labelled(columns, kind, {})
    for name, one in columns.items():
        if one.kind is ColumnKind.CONVERSATION and kind in (None, "instruction"):
            return {"kind": "instruction", "messages": name}
    kinds = (ColumnKind.TEXT, ColumnKind.TEXTS, ColumnKind.OTHER)
    readable = {name.lower(): name for name, one in columns.items() if one.kind in kinds}
    for usual, sources, targets in _FROM_TO if kind not in _OF_LABELS else ():
        read = [readable[each] for each in sources if each in readable][:1]
        written = [readable[each] for each in targets if each in readable and readable[each] not in read]
        if read and written:
            return _written(columns, kind or usual, read[0], written[0])
    return _labelled(columns, kind, {}) if labels and _text_names(columns, labels[0]) else None


def _label_names(columns: Mapping[str, Column], kind: str | None) -> list[str]:
    """Columns that may be the label: one that is called so, else all of few values, else numbers on a scale."""
    scales = [name for name, one in columns.items() if one.is_scale]
    if kind == "regression":
        return scales
    plain = (ColumnKind.LABEL, ColumnKind.NUMBER, ColumnKind.TEXT)
    named = [name for usual in _LABELS for name in columns if name.lower() == usual and columns[name].kind in plain]
    few = [name for name, one in columns.items() if one.kind is ColumnKind.LABEL]
    return named[:1] or few or (scales if kind is None else [])


def _labelled(columns: Mapping[str, Column], kind: str | None, wished: Mapping[str, Any]) -> Keys:
    """A classification, or a regression where that is wished or the label is a scale.

    Raises:
        TaskError: If there is no label or no text, or it is not clear which column is the label.
    """
    named = tuple(columns_in({"text": wished.get("text", ())}))
    labels = [name for name in _label_names(columns, kind) if name not in named]
    if "label" in wished:
        labels = [wished["label"]]
    if len(labels) != 1:
        which = f"{', '.join(labels)} may be it" if labels else f"of {', '.join(columns)} none is"
        raise TaskError(f"a label must be among the columns; {which}. Name it with --label.")
    label = labels[0]
    text = named or _text_names(columns, label)
    if not text:
        raise TaskError(f"a text must stand beside the label {label!r}; no other column has one. Name it with --text.")
    keys = {"text": text[0] if len(text) == 1 else list(text), "label": label, **_joined(columns, text)}
    one = columns.get(label)
    if kind == "regression" or (kind is None and one is not None and one.is_scale):
        return {"kind": "regression", **keys}
    distinct = len(set(one.values)) if one is not None and one.kind is ColumnKind.TEXT else 0
    if one is not None and 2 * distinct > len(one.values):
        raise TaskError(
            f"a label must occur in several rows; {label!r} has {distinct} different texts in "
            f"{len(one.values)} rows. Name another with --label."
        )
    return {"kind": "classification", **keys}


def _text_names(columns: Mapping[str, Column], label: str) -> tuple[str, ...]:
    """The text, or the two of a pair, that a label may be of: one of a usual name, else the longest."""
    kinds = (ColumnKind.TEXT, ColumnKind.TEXTS, ColumnKind.CONVERSATION)
    readable = {name.lower(): name for name, one in columns.items() if one.kind in kinds and name != label}
    for usual in (*_PAIRS, *((name,) for name in _TEXTS)):
        if all(name in readable for name in usual):
            return tuple(readable[name] for name in usual)
    return (max(readable.values(), key=lambda name: len(str(columns[name].values))),) if readable else ()


def _written(columns: Mapping[str, Column], kind: str, source: str, target: str) -> Keys:
    join = {} if kind == "data_to_text" else _joined(columns, (source,))
    return {"kind": kind, "source": source, "target": target, **join}


def _joined(columns: Mapping[str, Column], names: Sequence[str]) -> dict[str, str]:
    """The key ``join`` if one of the columns holds lists."""
    of_lists = (ColumnKind.TEXTS, ColumnKind.CONVERSATION)
    return {"join": "\n"} if any(name in columns and columns[name].kind in of_lists for name in names) else {}


def _refuse_multiple_choice(columns: Sequence[Column], answers: Sequence[Column]) -> None:
    """Refuse a column that lists the choices of its row where another says which is right.

    Args:
        columns: All there are.
        answers: Those of them that may be the label.

    Raises:
        TaskError: If there is such a pair.
    """
    kinds = (ColumnKind.TEXTS, ColumnKind.OTHER)
    for choices in (one for one in columns if one.kind in kinds and one.name in _CHOICES):
        for right in answers:
            if right is not choices and _says_which(right, choices):
                raise TaskError(
                    f"multiple choice is no kind of task here: {right.name!r} says which text of {choices.name!r} is "
                    "right. Make a row of every choice, beside its question, and label it right or wrong."
                )


def _says_which(right: Column, choices: Column) -> bool:
    """Whether each value is a place in the list of its row, from 0 or 1 or as a letter, or one of its texts."""
    pairs = zip(right.values, map(_offered, choices.values), strict=True)
    return all(value in (*range(len(texts) + 1), *texts, *ascii_uppercase[: len(texts)]) for value, texts in pairs)


def _offered(value: Any) -> Sequence[str]:
    """The choices of a row: a list of texts, or texts that have labels of their own beside them."""
    found = value.get("label") if isinstance(value, dict) else value
    return found if isinstance(found, list) and all(isinstance(text, str) for text in found) else ()
