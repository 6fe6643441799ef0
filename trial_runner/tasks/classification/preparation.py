"""Classification: from the rows as they were read to tokens and class indices, and to the cache and back."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy.typing as npt

from trial_runner.tasks.cache import Arrays, Facts, as_texts, from_texts
from trial_runner.tasks.classification.encode import encode_split
from trial_runner.tasks.classification.labels import drop_unlabelled, labelling_of
from trial_runner.tasks.classification.raw import Label, RawSplit, label_column, read_split, text_columns
from trial_runner.tasks.classification.split import PreparedTask, Split
from trial_runner.tasks.data.rows import RawTask
from trial_runner.tasks.kind import Cut, place_facts
from trial_runner.tasks.splits import complete_splits, drop_repeated, subsample
from trial_runner.tasks.task import SPLITS, Task

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast

Encode = Callable[[tuple[Label | None, ...], str], npt.NDArray[Any]]

_ARRAYS = ("input_ids", "offsets", "labels", "token_type_ids")


@dataclass(frozen=True, slots=True)
class ClassificationPreparation:
    """See `trial_runner.tasks.kind.Preparation`."""

    task: Task
    tokenizer: "PreTrainedTokenizerFast"
    identity = ""
    made: ClassVar[type[PreparedTask]] = PreparedTask

    @property
    def facts(self) -> Mapping[str, Any]:
        """See `Preparation`."""
        own = {"text": text_columns(self.task), "label": label_column(self.task), "labels": self.task.labels}
        return {**place_facts(self.task), **own}

    def read(self, dataset: "Dataset", split: str, group: str) -> RawSplit:
        """See `Preparation`."""
        return read_split(dataset, self.task, split, group)

    def tokenised(self, raw: RawTask[RawSplit], fingerprint: str) -> PreparedTask:
        """See `Preparation`."""
        labelled = drop_unlabelled(raw)
        names, encode = self.encoder(labelled.splits)
        chosen = subsample(drop_repeated(complete_splits(labelled)), self.task)
        longest = self.task.max_tokens
        splits: dict[str, Split] = {}
        cuts: list[Cut] = []
        for name, split in chosen.splits.items():
            labels = encode(split.labels, name)
            splits[name], cut = encode_split(split.columns, labels, self.tokenizer, longest, groups=split.groups)
            cuts += [Cut(split=name, what="examples", count=cut, of=len(split), tokens=longest)] if cut else []
        facts = {
            "name": self.task.title,
            "labels": names,
            "notes": [*chosen.notes, *map(str, cuts)],
            "cuts": [asdict(cut) for cut in cuts],
        }
        return self._prepared(fingerprint, facts, splits)

    def encoder(self, splits: Mapping[str, RawSplit]) -> tuple[tuple[str, ...], Encode]:
        """The names of the classes, and what makes class indices of the labels of a split."""
        labelling = labelling_of(splits, self.task.labels)
        return labelling.names, labelling.encode

    def stored(self, prepared: PreparedTask) -> tuple[Facts, Arrays]:
        """See `Preparation`."""
        arrays = {
            f"{split}.{name}": array
            for split, examples in prepared.splits.items()
            for name in _ARRAYS
            if (array := getattr(examples, name)) is not None
        }
        for split, examples in prepared.splits.items():
            if examples.groups is not None:
                arrays[f"{split}.groups"] = as_texts(examples.groups)
        facts = {"name": prepared.name, "labels": prepared.labels, "notes": prepared.notes}
        return {**facts, "cuts": [asdict(cut) for cut in prepared.cuts]}, arrays

    def restored(self, fingerprint: str, facts: Facts, arrays: Arrays) -> PreparedTask:
        """See `Preparation`."""
        return self._prepared(fingerprint, facts, {split: _split_of(arrays, split) for split in SPLITS})

    def _prepared(self, fingerprint: str, facts: Facts, splits: Mapping[str, Split]) -> PreparedTask:
        return self.made(
            name=facts["name"],
            labels=tuple(facts["labels"]),
            metric=self.task.metric,
            splits=splits,
            notes=tuple(facts["notes"]),
            cuts=tuple(Cut(**cut) for cut in facts["cuts"]),
            fingerprint=fingerprint,
        )


def _split_of(arrays: Arrays, split: str) -> Split:
    held: dict[str, Any] = {name: arrays[f"{split}.{name}"] for name in _ARRAYS if f"{split}.{name}" in arrays}
    groups = f"{split}.groups"
    return Split(**held, groups=tuple(from_texts(arrays[groups])) if groups in arrays else None)
