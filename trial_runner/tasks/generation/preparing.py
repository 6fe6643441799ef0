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
from trial_runner.tasks.generation.rows import drop_unanswered, learn_every_reference, merge_sources
from trial_runner.tasks.generation.source import TextTaskSource
from trial_runner.tasks.generation.split import PreparedTextTask, TextSplit, TokenRows
from trial_runner.tasks.splitting import complete_splits, drop_repeated, subsample


def tokenised(
    raw: RawTask[RawTextSplit], source: TextTaskSource, encoder: TextEncoder, fingerprint: str
) -> PreparedTextTask:
    """Complete, cut and tokenise what was read."""
    whole = drop_repeated(complete_splits(drop_unanswered(raw, source)))
    task = subsample(learn_every_reference(merge_sources(whole, source), source), source)
    splits: dict[str, TextSplit] = {}
    notes = list(task.notes)
    for name, split in task.splits.items():
        splits[name], lines = encoder.encode(split, name)
        notes += lines
    facts = {"name": source.title, "notes": notes, "start": encoder.start_token_id, "eos": encoder.eos_token_id}
    return _task(source, encoder.stack, fingerprint, facts, splits)


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
    source: TextTaskSource, stack: StackKind, fingerprint: str, facts: Facts, arrays: Arrays
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
    return _task(source, stack, fingerprint, facts, splits)


def _rows_of(arrays: Arrays, name: str) -> TokenRows:
    return TokenRows(ids=arrays[f"{name}.ids"], offsets=arrays[f"{name}.offsets"])


def _task(
    source: TextTaskSource, stack: StackKind, fingerprint: str, facts: Facts, splits: Mapping[str, TextSplit]
) -> PreparedTextTask:
    """Tokens, and what the source says of measuring and generating, which no cache keeps."""
    return PreparedTextTask(
        name=facts["name"],
        task_kind=source.task_kind,
        stack=stack,
        metric=source.metric,
        metrics=source.measured,
        early_metric=source.early_metric,
        decoding=source.decoding,
        label_smoothing=source.label_smoothing,
        start_token_id=facts["start"],
        eos_token_id=facts["eos"],
        splits=splits,
        notes=tuple(facts["notes"]),
        fingerprint=fingerprint,
    )
