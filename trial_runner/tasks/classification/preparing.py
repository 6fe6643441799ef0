"""Classification: from the rows as they were read to tokens and class indices, and to the cache and back."""

from typing import TYPE_CHECKING, Any

from trial_runner.tasks.cache import Arrays, Facts, as_texts, from_texts
from trial_runner.tasks.classification.encode import encode_split
from trial_runner.tasks.classification.labels import drop_unlabelled, labelling_of
from trial_runner.tasks.classification.raw import RawSplit
from trial_runner.tasks.classification.split import PreparedTask, Split
from trial_runner.tasks.data.place import SPLITS
from trial_runner.tasks.data.rows import RawTask
from trial_runner.tasks.splitting import complete_splits, drop_repeated, subsample
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_ARRAYS = ("input_ids", "offsets", "labels", "token_type_ids")


def tokenised(
    raw: RawTask[RawSplit], task: Task, tokenizer: "PreTrainedTokenizerFast", fingerprint: str
) -> PreparedTask:
    """Complete, cut, label and tokenise what was read."""
    labelled = drop_unlabelled(raw)
    labelling = labelling_of(labelled.splits, task.labels)
    chosen = subsample(drop_repeated(complete_splits(labelled)), task)
    splits: dict[str, Split] = {}
    notes = list(chosen.notes)
    for name, split in chosen.splits.items():
        labels = labelling.encode(split.labels, name)
        splits[name], cut = encode_split(split, labels, tokenizer, task.max_tokens)
        if cut:
            notes.append(f"{name}: {cut} of {len(split)} examples cut to {task.max_tokens} tokens")
    return PreparedTask(
        name=task.title,
        labels=labelling.names,
        metric=task.metric,
        splits=splits,
        notes=tuple(notes),
        fingerprint=fingerprint,
    )


def stored(task: PreparedTask) -> tuple[Facts, Arrays]:
    """What the cache keeps of a task."""
    arrays = {
        f"{split}.{name}": array
        for split, examples in task.splits.items()
        for name in _ARRAYS
        if (array := getattr(examples, name)) is not None
    }
    for split, examples in task.splits.items():
        if examples.groups is not None:
            arrays[f"{split}.groups"] = as_texts(examples.groups)
    return {"name": task.name, "labels": task.labels, "notes": task.notes}, arrays


def restored(task: Task, fingerprint: str, facts: Facts, arrays: Arrays) -> PreparedTask:
    """A task from what the cache has kept."""
    return PreparedTask(
        name=facts["name"],
        labels=tuple(facts["labels"]),
        metric=task.metric,
        splits={split: _split_of(arrays, split) for split in SPLITS},
        notes=tuple(facts["notes"]),
        fingerprint=fingerprint,
    )


def _split_of(arrays: Arrays, split: str) -> Split:
    held: dict[str, Any] = {name: arrays[f"{split}.{name}"] for name in _ARRAYS if f"{split}.{name}" in arrays}
    groups = f"{split}.groups"
    return Split(**held, groups=tuple(from_texts(arrays[groups])) if groups in arrays else None)
