"""Inference of a task from the columns of a dataset, by usual names and by values."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from string import ascii_uppercase
from typing import Any

from search_space.closest_name import name_hint
from trial_runner.errors import TaskError
from trial_runner.tasks.data.column_kinds import Column, ColumnKind, flat, names_of
from trial_runner.tasks.data.columns import TRANSLATION_COLUMN
from trial_runner.tasks.kinds import TASK_KINDS

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
_ASKED_NAMES: Mapping[str, tuple[str, ...]] = {
    "context": ("context", "passage", "paragraph", "story", "article", "document", "dialogue", "dialog", "text"),
    "question": ("question", "query"),
    "answers": ("answers", "answer", "response"),
}
_OPTIONS = ("text", "label", "source", "target", *_ASKED)
"""Keys of a task that have an option of ``deltaspace init``."""
_LANGUAGE = re.compile(r"[a-z]{2,3}([-_][A-Za-z]{2,4})?")
_CHOICES = ("choices", "choice", "options", "endings", "candidates", "answers", "alternatives")


Keys = dict[str, Any]
"""Keys of a task in a study file: its kind, and the columns."""


def guess(columns: Mapping[str, Column], kind: str | None = None, given: Mapping[str, Any] | None = None) -> Keys:
    """Infer the task of the columns of train.

    Args:
        columns: Columns by their names.
        kind: Kind of the task, if it is given.
        given: Keys of a task, such as ``text``, with given columns.

    Raises:
        TaskError: If no task fits, or a given column is missing.
    """
    if kind not in (None, *TASK_KINDS):
        raise TaskError(f"the kind of a task must be one of {', '.join(TASK_KINDS)}; got {kind!r}.")
    known = flat(columns)
    given = {key: _path_of(known, value) for key, value in (given or {}).items() if value}
    named = [known.get(name) or known[name.partition(".")[0]] for name in columns_in(given)]
    if kind is not None:
        _check_keys(kind, given)
    if any(one.name not in columns for one in named):
        columns = known
    if set(given) <= {"label"} and kind in (None, *_OF_LABELS):
        _refuse_multiple_choice(list(columns.values()), answers=named or list(columns.values()))
    found = _given_task(columns, kind, given) or _guessed(columns, kind)
    if found is None:
        held = "; ".join(f"{name}: {one.kind.value}" for name, one in known.items() if not one.fields)
        pair = "a text and a label" if kind in _OF_LABELS else "a text and a text to generate from it"
        needed = f"a task of kind {kind} needs {pair}"
        if kind is None:
            needed = f"a task needs a text and a label, or {pair}"
        raise TaskError(f"{needed}; the columns are {held}. {_suggestion(columns, kind)}")
    return found


def _given_task(columns: Mapping[str, Column], kind: str | None, given: Mapping[str, Any]) -> Keys | None:
    """Return the task of the columns that are named; None if none is, unless the kind alone says it."""
    if kind == "instruction" and "text" in given:
        return {"kind": kind, **given}
    if "label" in given or "text" in given:
        return _labelled(columns, kind, given)
    if kind == "question_answering" or set(given) & set(_ASKED):
        return _questions(columns, given)
    if not given:
        return None
    if not {"source", "target"} <= set(given):
        raise TaskError("a task from text to text needs both columns; name them with --source and --target.")
    source, target = given["source"], given["target"]
    return _written(columns, kind or _written_kind(columns, source, target), source, target)


def _path_of(known: Mapping[str, Column], value: Any) -> Any:
    """Return the path of a column that is named, or of each of a list; a field of ``translation`` by its own name.

    Raises:
        TaskError: If there is no such column.
    """
    if not isinstance(value, str):
        return [_path_of(known, each) for each in value]
    for name in (value, f"{TRANSLATION_COLUMN}.{value}"):
        if name in known:
            return name
    holder = known.get(value.partition(".")[0])
    if holder is not None and not holder.fields:
        return value  # into lists of mappings, which is checked where they are read
    names = [name for name, one in known.items() if not one.fields]
    raise TaskError(f"no column {value!r}; there are: {', '.join(names)}.{name_hint(value, names)}")


def _check_keys(kind: str, given: Mapping[str, Any]) -> None:
    """Refuse columns that a kind of task does not have.

    Raises:
        TaskError: If one of them is named.
    """
    own = _ASKED if kind == "question_answering" else TASK_KINDS[kind].column_keys
    wrong = [f"--{key}" for key in given if key not in own]
    if wrong:
        options = ", ".join(f"--{key}" for key in own if key in _OPTIONS)
        raise TaskError(f"--kind {kind} takes {options}; got {', '.join(wrong)}. Leave it out, or take another kind.")


def _questions(columns: Mapping[str, Column], given: Mapping[str, Any]) -> Keys:
    """Return a task of questions: its columns by the given names, else by usual ones.

    Raises:
        TaskError: If one of them is missing.
    """
    by_name = {name.lower(): name for name in columns}
    found = dict(given)
    for key, names in _ASKED_NAMES.items():
        found.setdefault(key, next((by_name[name] for name in names if name in by_name), None))
    missing = [key for key, name in found.items() if name is None]
    if missing:
        raise TaskError(
            f"a task of kind question_answering needs a context, a question and answers; of {', '.join(columns)} none "
            f"is called {missing[0]}. Name it with --{missing[0]}."
        )
    questions = {key: found[key] for key in _ASKED}
    return {"kind": "question_answering", "questions": questions, **_joined(columns, (found["context"],))}


def _written_kind(columns: Mapping[str, Column], source: str, target: str) -> str:
    """Return the kind of a task of two columns: translation if both are in one column of texts by language."""
    holder = source.rpartition(".")[0]
    is_translation = holder == target.rpartition(".")[0] and holder in columns and _is_translation(columns[holder])
    return "translation" if is_translation else "summarisation"


def _is_translation(one: Column) -> bool:
    """Return whether a column holds texts by language: called so, or with codes of languages as its fields."""
    names = _names_of_texts(one)
    return len(names) > 1 and (one.name == TRANSLATION_COLUMN or all(map(_LANGUAGE.fullmatch, names)))


def _names_of_texts(one: Column) -> list[str]:
    texts = (ColumnKind.TEXT, ColumnKind.LABEL)
    return [
        name.rpartition(".")[2]
        for name, each in one.fields.items()
        if each.kind in texts and any(isinstance(value, str) for value in each.values)
    ]


def _suggestion(columns: Mapping[str, Column], kind: str | None) -> str:
    """Return a sentence on how to name the columns: those inside another column if there are such."""
    for one in columns.values():
        fields = {name.rpartition(".")[2]: each for name, each in one.fields.items()}
        if fields and kind in (None, *_OF_LABELS) and not _is_translation(one):
            with suppress(TaskError):
                keys = _labelled(fields, kind, {})
                texts = ",".join(f"{one.name}.{name}" for name in columns_in({"text": keys["text"]}))
                options = f"--text {texts} --label {one.name}.{keys['label']}"
                return f"The column {one.name} holds {_enumerated(list(fields))}: {options}."
        texts_inside = _names_of_texts(one)
        if len(texts_inside) > 1 and kind not in _OF_LABELS:
            options = f"--source {one.name}.{texts_inside[0]} --target {one.name}.{texts_inside[1]}"
            return f"The column {one.name} holds {_enumerated(texts_inside)}: {options}."
    return "Say which with --text and --label, or --source and --target."


def _enumerated(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def columns_in(keys: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns that the keys of a task name, each one or several."""
    for key, value in keys.items():
        if key not in ("kind", "join"):
            yield from (value,) if isinstance(value, str) else value.values() if isinstance(value, dict) else value


def _guessed(columns: Mapping[str, Column], kind: str | None) -> Keys | None:
    """Infer the task from at most its kind; None if it is ambiguous."""
    labels = _label_names(columns, kind) if kind in (None, *_OF_LABELS) else []
    if kind is None and set(_ASKED) <= set(columns):
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
    """Return columns that may be the label: one of a usual name, else all with few values, else numbers on a scale."""
    scales = [name for name, one in columns.items() if one.is_scale]
    plain = (ColumnKind.LABEL, ColumnKind.NUMBER, ColumnKind.TEXT)
    named = [name for usual in _LABELS for name in columns if name.lower() == usual and columns[name].kind in plain]
    few = [name for name, one in columns.items() if one.kind is ColumnKind.LABEL]
    if kind == "regression":
        return scales or [name for name in (*named, *few) if columns[name].is_whole][:1]
    return named[:1] or few or (scales if kind is None else [])


def _labelled(columns: Mapping[str, Column], kind: str | None, given: Mapping[str, Any]) -> Keys:
    """Return a classification, or a regression if it is given or the label is a scale.

    Raises:
        TaskError: If there is no label or no text, or the label is ambiguous.
    """
    named = tuple(columns_in({"text": given.get("text", ())}))
    labels = [name for name in _label_names(columns, kind) if name not in named]
    if "label" in given:
        labels = [given["label"]]
    elif kind != "regression":
        labels = list(dict.fromkeys(names_of(columns, name) or name for name in labels))
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
    """Return the column of the text, or the two of a pair, for a label: one of a usual name, else the longest."""
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
    """Return the key ``join`` if one of the columns holds lists."""
    of_lists = (ColumnKind.TEXTS, ColumnKind.CONVERSATION)
    return {"join": "\n"} if any(name in columns and columns[name].kind in of_lists for name in names) else {}


def _refuse_multiple_choice(columns: Sequence[Column], answers: Sequence[Column]) -> None:
    """Refuse a column with the choices of its row, if another one gives the right choice.

    Args:
        columns: All columns.
        answers: Columns that may be the label.

    Raises:
        TaskError: If there is such a pair.
    """
    kinds = (ColumnKind.TEXTS, ColumnKind.OTHER)
    for choices in (one for one in columns if one.kind in kinds and one.name in _CHOICES):
        for right in answers:
            if right is not choices and _is_right_choice(right, choices):
                raise TaskError(
                    f"multiple choice is no kind of task here: {right.name!r} says which text of {choices.name!r} is "
                    "right. Make a row of every choice, beside its question, and label it right or wrong."
                )


def _is_right_choice(right: Column, choices: Column) -> bool:
    """Return whether each value is an index in its row's list (from 0 or 1, or a letter) or one of its texts."""
    pairs = zip(right.values, map(_offered, choices.values), strict=True)
    return all(value in (*range(len(texts) + 1), *texts, *ascii_uppercase[: len(texts)]) for value, texts in pairs)


def _offered(value: Any) -> Sequence[str]:
    """Return the choices of a row: a list of texts, or texts with labels of their own."""
    found = value.get("label") if isinstance(value, dict) else value
    return found if isinstance(found, list) and all(isinstance(text, str) for text in found) else ()
