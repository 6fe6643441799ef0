"""Predictions of an export for the lines of a file, or for texts."""

import json
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from search_space.closest_name import name_hint
from studies.errors import InvalidRequestError, StudiesError
from studies.study_file.sections import task_from_json
from trial_runner.files import check_regular, halved_character, whole_file
from trial_runner.tasks import TASK_KINDS, Task
from trial_runner.tasks.data.formats import opened_rows, reader_of, reading_notes
from trial_runner.tasks.data.text_file import check_no_pointer, encoding_of, opened_text

if TYPE_CHECKING:
    from trial_runner.export.predictions import Prediction, Tell

Given = str | Sequence[object]
"""Text, or a text for each column of the task, or a list in place of such a text."""

_ADDED = ("prediction", "scores")
_TRANSLATION = "translation"


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionResult:
    """Outcome of a prediction.

    Attributes:
        labels: Number of lines by prediction, the most frequent first; empty for generated texts.
        notes: Lines on the encoding of the input, and on texts that are truncated.
    """

    output: Path
    lines: int
    labels: Mapping[str, int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _InferencePlan:
    """Columns and task of a prediction.

    Attributes:
        columns: Keys of a line.
        task: Task of the training; None for a classification known by its labels alone.
    """

    columns: tuple[str, ...]
    task: Task | None

    def texts(self, values: Sequence[object]) -> list[object]:
        """Return the values of the keys as training read them, such as the joined turns of a dialogue."""
        if self.task is None:
            return list(values)
        kind = TASK_KINDS[self.task.kind]
        names = kind.read_columns(self.task)
        return [kind.as_read(self.task, name, value) for name, value in zip(names, values, strict=True)]


def predict(  # noqa: PLR0913 - one argument per option
    folder: Path,
    source: Path,
    output: Path,
    *,
    columns: tuple[str, ...] = (),
    batch_size: int,
    backbone: str | None = None,
    tell: "Tell",
) -> PredictionResult:
    """Write the lines of a file with a prediction each to a new file.

    Every line is checked before the backbone is loaded; the new file is written atomically.

    Args:
        folder: Folder of the export.
        source: File with one JSON object per line, or a csv, tsv or parquet file.
        output: File that must not exist.
        columns: Keys of the texts; empty for those of the training.
        batch_size: Lines per forward pass.
        backbone: Name or folder of the backbone; None for that of the export.
        tell: Function that receives the number of predicted lines and of all lines.

    Raises:
        StudiesError: If a line is not valid, or the output cannot be written.
        RunnerError: If the export or its backbone cannot be used.
    """
    from trial_runner.export.facts import read_json
    from trial_runner.export.trained import DELTA_FACTS
    from trial_runner.files import check_all_regular

    _check_is_new(output)
    check_all_regular(folder)
    plan = _plan(read_json(folder / DELTA_FACTS), columns, folder)
    rows = _read_table(source) if reader_of(source) in _TABLES else _read_lines(source)
    texts = [_texts(row, plan, where) for where, row in rows.items()]
    predictions, note = _predictions(folder, texts, plan, batch_size, backbone, tell) if rows else ([], "")
    write_rows(output, [*rows.values()], predictions)
    notes = (*reading_notes((source,)), *([note] if note else []))
    labels = Counter(one.answer for one in predictions if one.scores is not None)
    return PredictionResult(output=output, lines=len(rows), labels=dict(labels.most_common()), notes=notes)


def _check_is_new(output: Path) -> None:
    if output.exists() or output.is_symlink():
        raise InvalidRequestError(f"the output must be a new file; got {output}, which exists. Choose another one.")
    if not output.parent.is_dir():
        raise InvalidRequestError(f"the folder of the output must exist; got {output.parent}. Create it first.")


def _plan(facts: Mapping[str, Any], columns: tuple[str, ...], folder: Path) -> _InferencePlan:
    """Return the plan by the task of the training, with other columns if given."""
    if facts.get("task") is None:
        if facts.get("labels") is None or not columns:
            raise InvalidRequestError(
                f"the export in {folder} must say its task, or have labels and be given the keys of the text; got "
                "neither. Give them with --text."
            )
        return _InferencePlan(columns=columns, task=None)
    try:
        task = task_from_json(facts["task"])
    except ValidationError as error:
        raise StudiesError(
            f"the export in {folder} must have a task that this release can read; {error.error_count()} of its keys "
            "are not known or not valid. Use the release that wrote it."
        ) from error
    own = TASK_KINDS[task.kind].read_columns(task)
    if columns and len(columns) != len(own):
        raise InvalidRequestError(
            f"the text must be in {len(own)} keys, as {', '.join(own)}; got {', '.join(columns)}."
        )
    return _InferencePlan(columns=columns or own, task=task)


_TABLES = ("csv", "parquet")


def _read_table(source: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a file of columns by their places."""
    check_regular(source)
    with opened_rows((source,), "input") as dataset:
        rows = enumerate(dataset, start=1)
        return {(where := f"row {number} of {source}"): _checked(row, where) for number, row in rows}


def _read_lines(source: Path) -> dict[str, dict[str, Any]]:
    """Return the objects of a file by their places, without blank lines at its end."""
    try:
        check_regular(source)
        check_no_pointer(source)
        with opened_text(source, encoding_of(source)) as file:
            text = file.read()
    except FileNotFoundError:
        raise InvalidRequestError(f"the input must be an existing file; got {source}.") from None
    except OSError as error:
        raise StudiesError(f"cannot read the input: {error}.") from error
    lines = text.rstrip().split("\n") if text.strip() else []
    rows = enumerate(lines, start=1)
    return {(where := f"line {number} of {source}"): _row(line, where) for number, line in rows}


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(f"{where} must be a JSON object; got: {error}.") from error
    return _checked(row, where)


def _checked(row: object, where: str) -> dict[str, Any]:
    """Return a row that can be written again.

    Raises:
        InvalidRequestError: If it cannot.
    """
    try:
        half = halved_character(row)
        _as_line(row)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequestError(f"{where} must be a JSON object; got: {error}.") from error
    if half:
        raise InvalidRequestError(f"{where} {half}")
    if not isinstance(row, dict):
        raise InvalidRequestError(f"{where} must be a JSON object; got {type(row).__name__}.")
    taken = [key for key in _ADDED if key in row]
    if taken:
        raise InvalidRequestError(f"{where} must not have a key {taken[0]!r}, which is written there. Rename it.")
    return row


def _texts(row: Mapping[str, Any], plan: _InferencePlan, where: str) -> tuple[str, ...]:
    """Return the texts of a line."""
    texts = []
    for name, value in zip(plan.columns, plan.texts([_value(row, name, where) for name in plan.columns]), strict=True):
        if not isinstance(value, str) or not value.strip():
            raise InvalidRequestError(f"{where} must have a text that is not blank at {name!r}; got {value!r}.")
        texts.append(value)
    return tuple(texts)


def _value(row: Mapping[str, Any], name: str, where: str) -> Any:
    """Return the value at a key; a path such as ``lex.text`` leads into mappings, a language into ``translation``."""
    if name in row:
        return row[name]
    for steps in (name.split("."), [_TRANSLATION, name]):
        value: Any = row
        for step in steps:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    raise InvalidRequestError(
        f"{where} must have a key {name!r}; got: {', '.join(row) or 'none'}.{name_hint(name, row)} Name the key of "
        "the text with --text."
    )


def _predictions(
    folder: Path,
    texts: Sequence[tuple[str, ...]],
    plan: _InferencePlan,
    batch_size: int,
    backbone: str | None,
    tell: "Tell",
) -> "tuple[list[Prediction], str]":
    from trial_runner.export.predictions import classify, write

    task = plan.task
    prompt = None if task is None else TASK_KINDS[task.kind].prompt
    if task is not None and prompt is not None:
        sources = [prompt(task, each) for each in texts]
        return write(folder, sources, task=task, batch_size=batch_size, backbone=backbone, tell=tell)
    most = None if task is None else task.max_tokens
    return classify(folder, texts, max_tokens=most, batch_size=batch_size, backbone=backbone, tell=tell)


def write_rows(output: Path, rows: Sequence[Mapping[str, Any]], predictions: "Sequence[Prediction]") -> None:
    """Write rows with their predictions to a new file.

    Raises:
        StudiesError: If the file cannot be written.
    """
    try:
        with whole_file(output) as place, place.open("w", encoding="utf-8") as file:
            for row, one in zip(rows, predictions, strict=True):
                added = {"prediction": one.answer} | ({} if one.scores is None else {"scores": one.scores})
                file.write(_as_line({**row, **added}) + "\n")
            _check_is_new(output)
    except OSError as error:
        why = error.strerror.lower() if error.strerror else error
        raise StudiesError(f"cannot write predictions to {output}: {why}. Choose another file.") from error


def _as_line(row: object) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False)


def predict_texts(
    folder: Path, texts: Sequence[Given], *, batch_size: int, backbone: str | None = None
) -> "list[Prediction]":
    """Return the predictions of texts, in their order; warn if texts are truncated.

    Args:
        folder: Folder of the export.
        texts: One text each, or as many as the task reads: premise and hypothesis, context and question. Where the task
            joins lists, a list takes the place of a text: the turns of a dialogue, plain or as messages.
        batch_size: Texts per forward pass.
        backbone: See `predict`.

    Raises:
        StudiesError: If a text is blank, or their number is not that of the task.
        RunnerError: If the export or its backbone cannot be used.
    """
    from trial_runner.export.facts import read_json
    from trial_runner.export.trained import DELTA_FACTS

    plan = _plan(read_json(folder / DELTA_FACTS), (), folder)
    rows = [_given_texts(given, plan, number) for number, given in enumerate(texts, start=1)]
    if not rows:
        return []
    predictions, note = _predictions(folder, rows, plan, batch_size, backbone, lambda done, lines: None)
    if note:
        warnings.warn(note, stacklevel=3)
    return predictions


def _given_texts(given: Given, plan: _InferencePlan, number: int) -> tuple[str, ...]:
    """Return the texts of one input; for one column a list is its text, except a list of one text."""
    count = len(plan.columns)
    if isinstance(given, str):
        parts: tuple[object, ...] = (given,)
    elif count == 1 and not (len(given) == 1 and isinstance(given[0], str)):
        parts = (list(given),)
    else:
        parts = tuple(given)
    if half := halved_character(parts):
        raise InvalidRequestError(f"text {number} {half}")
    read = plan.texts(parts) if len(parts) == count else []
    row = tuple(text for text in read if isinstance(text, str) and text.strip())
    if len(row) != count:
        raise InvalidRequestError(
            f"text {number} must be {count} texts that are not blank ({', '.join(plan.columns)}); got {parts!r}."
        )
    return row
