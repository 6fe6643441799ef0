"""Tasks whose answer is a text: from the rows as they were read to tokens, and to the cache and back."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from search_space.dimensions import StackKind
from trial_runner.tasks.cache import Arrays, Facts, as_texts, from_texts
from trial_runner.tasks.data.place import SPLITS
from trial_runner.tasks.data.rows import RawTask
from trial_runner.tasks.generation.encode import TextEncoder
from trial_runner.tasks.generation.raw import RawTextSplit
from trial_runner.tasks.generation.split import PreparedTextTask, TextSplit, TokenRows
from trial_runner.tasks.task import Task


def tokenised(
    raw: RawTask[RawTextSplit], task: Task, measured: tuple[str, ...], encoder: TextEncoder, fingerprint: str
) -> PreparedTextTask:
    """Tokenise what was read and chosen; ``measured`` are the names of the metrics."""
    splits: dict[str, TextSplit] = {}
    notes = list(raw.notes)
    for name, split in raw.splits.items():
        splits[name], lines = encoder.encode(split, name)
        notes += lines
    facts = {"name": task.title, "notes": notes, "start": encoder.start_token_id, "eos": encoder.eos_token_id}
    return _prepared(task, measured, encoder.stack, fingerprint, facts, splits)


def stored(task: PreparedTextTask) -> tuple[Facts, Arrays]:
    """What the cache keeps of a task."""
    facts = {"name": task.name, "notes": task.notes, "start": task.start_token_id, "eos": task.eos_token_id}
    arrays: dict[str, npt.NDArray[Any]] = {}
    for split, examples in task.splits.items():
        for side, rows in (("sources", examples.sources), ("targets", examples.targets)):
            arrays[f"{split}.{side}.ids"] = rows.ids
            arrays[f"{split}.{side}.offsets"] = rows.offsets
        arrays[f"{split}.references"] = as_texts(examples.references)
        arrays[f"{split}.groups"] = as_texts(examples.groups)
    return facts, arrays


def restored(
    task: Task, measured: tuple[str, ...], stack: StackKind, fingerprint: str, facts: Facts, arrays: Arrays
) -> PreparedTextTask:
    """A task from what the cache has kept."""
    splits = {
        split: TextSplit(
            stack=stack,
            sources=_rows_of(arrays, f"{split}.sources"),
            targets=_rows_of(arrays, f"{split}.targets"),
            references=tuple(tuple(each) for each in from_texts(arrays[f"{split}.references"])),
            groups=tuple(from_texts(arrays[f"{split}.groups"])),
        )
        for split in SPLITS
    }
    return _prepared(task, measured, stack, fingerprint, facts, splits)


def _rows_of(arrays: Arrays, name: str) -> TokenRows:
    return TokenRows(ids=arrays[f"{name}.ids"], offsets=arrays[f"{name}.offsets"])


def _prepared(
    task: Task,
    measured: tuple[str, ...],
    stack: StackKind,
    fingerprint: str,
    facts: Facts,
    splits: Mapping[str, TextSplit],
) -> PreparedTextTask:
    """Tokens, and what the task says of measuring and generating, which no cache keeps."""
    return PreparedTextTask(
        name=facts["name"],
        task_kind=task.kind,
        stack=stack,
        metric=task.metric,
        metrics=measured,
        early_metric=task.early_metric,
        decoding=task.decoding,
        max_new_tokens=task.most_new_tokens,
        label_smoothing=task.label_smoothing,
        start_token_id=facts["start"],
        eos_token_id=facts["eos"],
        splits=splits,
        notes=tuple(facts["notes"]),
        fingerprint=fingerprint,
    )
