"""Which task the columns of a dataset make: by their names where those are usual, else by what they hold."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from search_space.nearest import nearest
from trial_runner.errors import TaskError
from trial_runner.tasks.data.linearise import last_answer
from trial_runner.tasks.inspection.columns import Column, ColumnKind, refuse_multiple_choice

_LABELS = (
    *("label", "labels", "gold_label", "class", "sentiment", "intent", "emotion", "is_duplicate", "y"),
    *("label_text", "category", "topic", "stance", "target", "rating", "stars"),
)
_STRONG_LABELS = 9
_PAIRS = (
    *(("premise", "hypothesis"), ("sentence1", "sentence2"), ("sentence_a", "sentence_b"), ("text1", "text2")),
    *(("text_a", "text_b"), ("question1", "question2"), ("question", "passage"), ("question", "sentence")),
    *(("query", "passage"), ("query", "document"), ("s1", "s2")),
)
_TEXTS = (
    *("text", "sentence", "content", "review", "comment", "tweet", "body", "document", "utterance", "query"),
    *("question", "message", "messages", "dialogue", "dialog", "title"),
)
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
_REFERENCES = ("references", "reference", "refs", "ref")
_ASKED = ("context", "question", "answers")
_READ = (ColumnKind.TEXT, ColumnKind.TEXTS, ColumnKind.TRIPLES, ColumnKind.CONVERSATION)
_JOIN = "\n"
_MUCH_SHORTER = 3.0
_MANY_NUMBERS = 10
"""More different numbers than these are a scale, not classes; half stars up to five are ten."""
_WORDS_OF_AN_ANSWER = 3
_FILLED = 0.9
"""A column that fewer rows have a value of is no label unless it is named so."""
_OF_LABELS = (None, "classification", "regression")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    """What is said of the task beforehand; the rest is guessed.

    Attributes:
        kind: Of the task.
        columns: Keys of a task, such as ``text``, and the columns they name.
    """

    kind: str | None = None
    columns: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A task that data makes.

    Attributes:
        kind: Of the task.
        keys: Of the task's columns, as a study file has them.
        why: Of some keys, a phrase on why they are so.
        left: Names of columns that nothing is done with.
    """

    kind: str
    keys: Mapping[str, Any]
    why: Mapping[str, str]
    left: tuple[str, ...] = ()


def guess(
    splits: Mapping[str, Sequence[Column]], wishes: ColumnOptions | None = None, *, can_chat: bool = False
) -> Guess:
    """The task that the columns make.

    Args:
        splits: The columns of each split, ``train`` among them.
        wishes: What is known beforehand.
        can_chat: Whether the backbone is one that dialogues are told to as such.

    Raises:
        TaskError: If nothing usual is among them, or a column that is wished for is not.
    """
    wishes = wishes or ColumnOptions()
    columns = {column.name: column for column in splits["train"]}
    wished = {key: value for key, value in (wishes.columns or {}).items() if value}
    for name in _columns_in(wished):
        if name.partition(".")[0] not in columns:
            raise TaskError(f"no column {name!r}; there are: {', '.join(columns)}.{nearest(name, columns)}")
    if set(wished) <= {"label"}:
        named = [columns[name.partition(".")[0]] for name in _columns_in(wished)]
        refuse_multiple_choice(list(columns.values()), answers=named or list(columns.values()))
    talks = can_chat or wishes.kind == "instruction"
    found = _wished(columns, wishes.kind, wished) or _guessed(splits, columns, wishes.kind, can_chat=talks)
    if found is None:
        held = "; ".join(f"{name}: {column.kind.value}" for name, column in columns.items())
        raise TaskError(
            f"a task needs a text and a label, or a text and what is written of it; the columns are {held}. Say which "
            "with --text and --label, or --source and --target."
        )
    used = set(_columns_in(found.keys))
    left = tuple(name for name in columns if name not in used and not any(each.startswith(f"{name}.") for each in used))
    return Guess(kind=found.kind, keys=found.keys, why=_with_alternatives(columns, found, wished), left=left)


def _columns_in(keys: Mapping[str, Any]) -> Iterator[str]:
    """What the keys of a task name, each a column or several."""
    for value in keys.values():
        yield from (value,) if isinstance(value, str) else value


def _with_alternatives(columns: Mapping[str, Column], found: Guess, wished: Mapping[str, Any]) -> dict[str, str]:
    """Why the keys are so, and which other columns could be the text and the label that nobody named."""
    why = dict(found.why)
    used = set(_columns_in(found.keys))
    scales = [name for name, column in columns.items() if _is_scale(column)]
    texts = [name for name, column in columns.items() if column.kind is ColumnKind.TEXT]
    labels = [*_label_names(columns), *scales]
    for key, candidates in (("text", texts), ("label", labels)):
        others = [name for name in dict.fromkeys(candidates) if name not in used]
        if "label" in found.keys and key not in wished and others:
            why[key] = "; ".join([*filter(None, [why.get(key)]), f"or {', '.join(others)}"])
    return why


def _wished(columns: Mapping[str, Column], kind: str | None, wished: Mapping[str, Any]) -> Guess | None:
    """The task of columns that were named; None if none were."""
    if not wished:
        return None
    if "label" in wished or "text" in wished:
        return _labelled_as_wished(columns, kind, wished)
    if "context" in wished or "question" in wished:
        return Guess(kind="question_answering", keys={"questions": wished}, why={})
    source, target = wished.get("source"), wished.get("target")
    if not source or not target:
        raise TaskError("a task from text to text needs both columns; name them with --source and --target.")
    return _written(columns, kind or "summarisation", source, target, {})


def _labelled_as_wished(columns: Mapping[str, Column], kind: str | None, wished: Mapping[str, Any]) -> Guess:
    named = tuple(_columns_in({"text": wished.get("text") or ()}))
    label = wished.get("label") or next((name for name in _label_names(columns) if name not in named), None)
    if label is None:
        raise TaskError(f"a label must be among the columns; of {', '.join(columns)} none is. Name it with --label.")
    text = named or _text_names(columns, label)
    if not text:
        raise TaskError(f"a text must stand beside the label {label!r}; no other column has one. Name it with --text.")
    column = columns.get(label)
    if column is not None and column.kind is ColumnKind.TEXT and 2 * column.distinct > len(column.values):
        raise TaskError(
            f"a label must occur in several rows; {label!r} has {column.distinct} different texts in "
            f"{len(column.values)} rows. Name another with --label."
        )
    return _labelled(columns, text, label, kind, is_named="label" in wished)


def _guessed(
    splits: Mapping[str, Sequence[Column]], columns: Mapping[str, Column], kind: str | None, *, can_chat: bool
) -> Guess | None:
    is_written = kind not in _OF_LABELS
    if kind == "regression":
        return _numbered(columns)
    if kind == "question_answering" or (kind is None and set(_ASKED) <= set(columns)):
        return Guess(kind="question_answering", keys={"questions": {key: key for key in _ASKED}}, why={})
    strong = [name for name in _label_names(columns) if name.lower() in _LABELS[:_STRONG_LABELS]]
    if not is_written and strong and (text := _text_names(columns, strong[0])):
        return _labelled(columns, text, strong[0], kind)
    if kind != "classification" and (found := _by_shape(columns, can_chat=can_chat) or _by_names(splits, columns)):
        return found if kind in (None, found.kind) else Guess(kind=kind, keys=found.keys, why=found.why)
    if not is_written:
        for label in _label_names(columns):
            if text := _text_names(columns, label):
                return _labelled(columns, text, label, kind)
    if kind == "classification":
        return None
    return _two_texts(columns, kind) or (None if is_written else _numbered(columns))


def _label_names(columns: Mapping[str, Column]) -> list[str]:
    """Columns that may be the label, the likeliest first."""
    usual = [name for one in _LABELS for name in columns if name.lower() == one]
    by_name = [name for name in usual if columns[name].kind in (ColumnKind.LABEL, ColumnKind.NUMBER)]
    left = {name: column for name, column in columns.items() if name not in by_name}
    others = [name for name, one in left.items() if one.kind is ColumnKind.LABEL and one.filled >= _FILLED]
    strong = _LABELS[:_STRONG_LABELS]
    wide = [name for name, one in left.items() if name.lower() in strong and one.kind is ColumnKind.TEXT]
    return [*by_name, *wide, *reversed(others)]


def _text_names(columns: Mapping[str, Column], label: str | None) -> tuple[str, ...]:
    """The text, or the two of a pair, that a label may be of."""
    readable = {name.lower(): name for name, column in columns.items() if column.kind in _READ and name != label}
    for first, second in _PAIRS:
        if first in readable and second in readable:
            return readable[first], readable[second]
    for usual in _TEXTS:
        if usual in readable:
            return (readable[usual],)
    return (max(readable.values(), key=lambda name: columns[name].words),) if readable else ()


def _is_scale(column: Column) -> bool:
    """Whether a column holds many different numbers, some of them with a fraction."""
    there = [value for value in column.values if isinstance(value, int | float)]
    has_fraction = any(value != int(value) for value in there if math.isfinite(value))
    return column.kind is ColumnKind.NUMBER and column.distinct > _MANY_NUMBERS and has_fraction


def _numbered(columns: Mapping[str, Column]) -> Guess | None:
    """A regression of the last scale among the columns; None if there is none, or no text."""
    scales = [name for name, column in columns.items() if _is_scale(column)]
    text = _text_names(columns, scales[-1]) if scales else ()
    return _labelled(columns, text, scales[-1], "regression") if text else None


def _labelled(
    columns: Mapping[str, Column], text: Sequence[str], label: str, kind: str | None, *, is_named: bool = False
) -> Guess:
    """A classification, or a regression where that is wished or the label is a scale."""
    join, why_join = _joined(columns, text)
    keys = {"text": text[0] if len(text) == 1 else list(text), "label": label, **join}
    column, why = columns.get(label), {}
    if kind == "regression" or (kind is None and column is not None and _is_scale(column)):
        if column is not None:
            there = [value for value in column.values if isinstance(value, int | float)]
            range_of = f" from {min(there):g} to {max(there):g}" if there else ""
            why["label"] = f"{column.distinct} different numbers{range_of}"
        return Guess(kind="regression", keys=keys, why={"kind": "or classification", **why, **why_join})
    if column is not None and column.distinct:
        why["label"] = f"{column.distinct} different ones"
    named = None if is_named else _same_in_words(columns, label, text)
    if named is not None:
        keys["label"], why["label"] = named, f"says the same as {label}, in words"
    elif column is not None and column.distinct > 2 and {*map(type, column.values)} <= {int, float}:
        why["kind"] = "or regression"
    return Guess(kind="classification", keys=keys, why={**why, **why_join})


def _same_in_words(columns: Mapping[str, Column], label: str, text: Sequence[str]) -> str | None:
    """A column that has a word for each number of the label; None if there is none."""
    if label not in columns or any(isinstance(value, str) for value in columns[label].values):
        return None
    for name, column in columns.items():
        if name == label or name in text or not all(isinstance(value, str) for value in column.values):
            continue
        pairs = set(zip(columns[label].values, column.values, strict=True))
        if len(pairs) == columns[label].distinct == column.distinct > 1 and column.words <= 6:
            return name
    return None


def _dialogues(columns: Mapping[str, Column], name: str) -> Guess:
    """Instruction tuning, by exact match where another column has the end of each last answer."""
    column = columns[name]
    for other in columns.values():
        mark = _mark_of(column, other) if other.name != name else None
        if mark is not None:
            measured = {"references": other.name, "metric": "exact_match", "dialogue": {"answer_after": mark}}
            why = {"references": f"each last message ends with it, behind {mark!r}"}
            return Guess(kind="instruction", keys={"messages": name, **measured}, why=why)
    return Guess(kind="instruction", keys={"messages": name}, why={"messages": "their answers are learned"})


def _mark_of(chats: Column, other: Column) -> str | None:
    """The word that stands before what another column has, at the end of every last message; None if there is none."""
    if other.words > _WORDS_OF_AN_ANSWER or other.kind not in (ColumnKind.TEXT, ColumnKind.LABEL, ColumnKind.NUMBER):
        return None
    marks = set()
    for chat, answer in zip(chats.values, other.values, strict=True):
        text, ending = str(last_answer(chat)).rstrip(), str(answer).strip()
        if not ending or not text.endswith(ending):
            return None
        marks.add(next(iter(text[: -len(ending)].split()[-1:]), ""))
    return marks.pop() or None if len(marks) == 1 else None


def _by_shape(columns: Mapping[str, Column], *, can_chat: bool) -> Guess | None:
    """Conversations and texts by language need no names."""
    for name, column in columns.items():
        if column.kind is ColumnKind.CONVERSATION and can_chat:
            return _dialogues(columns, name)
        if column.kind is ColumnKind.CONVERSATION:
            why = {"source": "all messages but the last", "target": "the last message"}
            return _written(columns, "summarisation", name, name, why, metric="rougeL")
        if column.kind is ColumnKind.LANGUAGES and len(column.keys) == 2:
            paths = column.keys if name == "translation" else tuple(f"{name}.{key}" for key in column.keys)
            why = {"source": f"of the column {name}; the other way round is as good"}
            return Guess(kind="translation", keys={"source": paths[0], "target": paths[1]}, why=why)
    return None


def _by_names(splits: Mapping[str, Sequence[Column]], columns: Mapping[str, Column]) -> Guess | None:
    readable = {name.lower(): name for name, column in columns.items() if column.kind in _READ}
    for kind, sources, targets in _FROM_TO:
        for source in (readable[each] for each in sources if each in readable):
            for target in (readable[each] for each in targets if readable.get(each, source) != source):
                is_free = kind == "summarisation" and source.lower() in _FROM_TO[-1][1]
                metric = {"metric": "rougeL"} if is_free else {}
                return _with_references(splits, _written(columns, kind, source, target, {}, **metric), target)
    return None


def _with_references(splits: Mapping[str, Sequence[Column]], found: Guess, target: str) -> Guess:
    """The same task; where the other splits lack the target, with what they have in its place."""
    others = [{column.name for column in held} for name, held in splits.items() if name != "train"]
    if not any(target not in names for names in others):
        return found
    for usual in _REFERENCES:
        if all(usual in names for names in others):
            why = {**found.why, "references": "what validation and test have in place of the target"}
            return Guess(kind=found.kind, keys={**found.keys, "references": usual}, why=why)
    return found


def _two_texts(columns: Mapping[str, Column], kind: str | None) -> Guess | None:
    """Two columns of text and nothing else: the longer is read, unless they are of a length."""
    texts = sorted((column for column in columns.values() if column.kind in _READ), key=lambda each: -each.words)
    if len(texts) != 2:
        return None
    longer, shorter = texts
    if longer.words >= _MUCH_SHORTER * shorter.words:
        return _written(columns, kind or "summarisation", longer.name, shorter.name, {"target": "the shorter text"})
    first, second = (name for name in columns if name in (longer.name, shorter.name))
    why = {"source": "guessed from the order of the columns"}
    return _written(columns, kind or "translation", first, second, why)


def _written(
    columns: Mapping[str, Column], kind: str, source: str, target: str, why: Mapping[str, str], **more: str
) -> Guess:
    join, why_join = _joined(columns, (source,))
    keys = {"source": source, "target": target, **join, **more}
    return Guess(kind=kind, keys=keys, why={**why, **why_join})


def _joined(columns: Mapping[str, Column], names: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The key ``join`` if one of the columns holds lists, and why."""
    of_lists = (ColumnKind.TEXTS, ColumnKind.CONVERSATION)
    lists = [name for name in names if name in columns and columns[name].kind in of_lists]
    if not lists:
        return {}, {}
    return {"join": _JOIN}, {"join": f"between the texts of {lists[0]}, which holds {columns[lists[0]].kind.value}"}
