"""What a study learns from, as it is after reading, carving and cutting."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trial_runner.tasks import SPLITS, Prepared
from trial_runner.tasks.kind import Cut

_MANY_CUT = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """The data of a study.

    Attributes:
        examples: Of each split.
        labels: How often each label occurs in a split, the names in the order of their indices; empty without labels.
        metric: What is maximised.
        constant_score: Of predicting the most frequent label of train for every validation example; None without.
        cuts: What is cut to the largest lengths.
        notes: What else was done to the data: carved, left out, seen twice.
    """

    examples: Mapping[str, int]
    labels: Mapping[str, Mapping[str, int]]
    metric: str
    constant_score: float | None
    cuts: tuple[Cut, ...]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        """One line of all of it."""
        sizes = ", ".join(f"{count:,} {split}" for split, count in self.examples.items())
        told = [f"{sizes} examples"]
        if self.constant_score is not None and self.labels:
            count = len(next(iter(self.labels.values())))
            told.append(f"{count} labels, a constant prediction has {self.metric} {self.constant_score:.3f}")
        told += [text for text, is_much in self.cut_texts if is_much]
        return "; ".join(told)

    @property
    def cut_texts(self) -> tuple[tuple[str, bool], ...]:
        """What is cut to each largest length, and whether it is more than one text in ten of some split."""
        groups: dict[tuple[str, int], list[Cut]] = {}
        for cut in self.cuts:
            groups.setdefault((cut.what, cut.tokens), []).append(cut)
        found = []
        for (what, tokens), cuts in groups.items():
            shares = ", ".join(f"{cut.count / cut.of:.1%} of {cut.split}" for cut in cuts)
            is_much = any(cut.count > _MANY_CUT * cut.of for cut in cuts)
            found.append((f"{shares} {what} are cut to {tokens} tokens", is_much))
        return tuple(found)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may spoil a study, a line each."""
        key = {True: "max_target_tokens", False: "max_tokens"}
        cut = [
            f"{text}; a larger task.{key['targets are cut' in text]} keeps more of them."
            for text, is_much in self.cut_texts
            if is_much
        ]
        return (*cut, *self._labels_that_lack())

    def _labels_that_lack(self) -> tuple[str, ...]:
        lines = []
        for split in ("train", "validation"):
            none = [name for name, count in self.labels.get(split, {}).items() if not count]
            if none:
                some = ", ".join(none[:5]) + (", …" if len(none) > 5 else "")
                lines.append(f"{len(none)} of {len(self.labels[split])} labels do not occur in {split}: {some}.")
        return tuple(lines)


def data_facts(task: Prepared) -> DataFacts:
    """What can be said of a prepared task."""
    splits = {name: task.splits[name] for name in SPLITS if name in task.splits}
    said = {str(cut) for cut in task.cuts}
    labels = {}
    if len(task.labels) > 1:  # the one of a regression is the name of its numbers
        for name, split in splits.items():
            counts = np.bincount(split.labels, minlength=len(task.labels))
            labels[name] = dict(zip(task.labels, map(int, counts), strict=True))
    return DataFacts(
        examples={name: len(split) for name, split in splits.items()},
        labels=labels,
        metric=task.metric,
        constant_score=task.constant_score,
        cuts=tuple(task.cuts),
        notes=tuple(note for note in task.notes if note not in said),
    )
