"""What is done to the rows of a text task before they are tokenised."""

from dataclasses import replace

from trial_runner.errors import TaskError
from trial_runner.tasks.data.rows import RawTask, usable_rows
from trial_runner.tasks.generation.raw import RawTextSplit
from trial_runner.tasks.task import Task

_MEASURED = ("validation", "test")


def drop_unanswered(raw: RawTask[RawTextSplit], task: Task) -> RawTask[RawTextSplit]:
    """Leave out splits whose references are hidden, and rows without a reference, of the hub also blank ones.

    Raises:
        TaskError: If train is missing, or nothing of it remains, or a row of a local train has no target.
    """

    def answered(name: str, split: RawTextSplit) -> list[int]:
        rows = [row for row, references in enumerate(split.references) if references and split.subjects[row]]
        if name == "train" and (not rows or (len(rows) < len(split) and task.hub is None)):
            raise TaskError(f"each row of train must have a target; row {split.references.index(()) + 1} has none.")
        return rows

    return usable_rows(raw, answered, hidden="references", unused="{count} rows without a text or a reference are")


def merge_sources(raw: RawTask[RawTextSplit]) -> RawTask[RawTextSplit]:
    """Make the rows of validation and test with the same source one, with all their references."""
    splits = dict(raw.splits)
    notes = list(raw.notes)
    for name in _MEASURED:
        split = splits[name]
        rows: dict[str, list[int]] = {}
        for row, text in enumerate(split.sources):
            rows.setdefault(text, []).append(row)
        if len(rows) < len(split):
            merged = [
                tuple(dict.fromkeys(text for row in same for text in split.references[row])) for same in rows.values()
            ]
            first = split.take(same[0] for same in rows.values())
            splits[name] = replace(first, references=tuple(merged))
            notes.append(f"{name}: {len(split)} rows have {len(rows)} sources; those of a source are its references")
    return RawTask(splits=splits, notes=tuple(notes))


def learn_every_reference(raw: RawTask[RawTextSplit]) -> RawTask[RawTextSplit]:
    """Make every reference of a row of train a target of its own."""
    train = raw.splits["train"]
    if all(len(each) == 1 for each in train.references):
        return raw
    pairs = [(row, text) for row, references in enumerate(train.references) for text in references]
    rows = train.take(row for row, _ in pairs)
    targets = tuple(text for _, text in pairs)
    learned = replace(rows, targets=targets, references=tuple((text,) for text in targets))
    note = f"train: {len(train)} rows have {len(learned)} references; each is learned"
    return RawTask(splits={**raw.splits, "train": learned}, notes=(*raw.notes, note))
