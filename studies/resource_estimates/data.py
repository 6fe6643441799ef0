"""Data of a study after reading, splitting and cutting."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trial_runner.tasks import SPLITS, Prepared
from trial_runner.tasks.kind import Cut
from trial_runner.tasks.splits import Dropped, normalised
from trial_runner.tasks.token_rows import TokenRows

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MANY = 0.1
"""Share of a split from which on dropped rows or cut texts are a warning."""
_NAMED_LABELS = 5
_SAMPLES = 2
_SAMPLE_TOKENS = 48
"""Number of tokens of a sample, half of them from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """Facts about the data of a study.

    Attributes:
        examples: Number of examples of each split.
        labels: Counts of each label in a split, in the order of their indices; empty without labels.
        metric: Metric that is maximized.
        constant_score: Validation score of always predicting the most frequent label of train; None without labels.
        cuts: Texts that are cut to the largest lengths.
        dropped: Counts of the unused rows by split and reason.
        notes: Other changes of the data: carved splits, samples, duplicates.
        contradictions: Line on texts of train with two labels; empty without any.
        samples: First examples of train as the model reads them.
    """

    examples: Mapping[str, int]
    labels: Mapping[str, Mapping[str, int]]
    metric: str
    constant_score: float | None
    cuts: tuple[Cut, ...]
    notes: tuple[str, ...]
    contradictions: str = ""
    samples: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    @property
    def summary(self) -> str:
        """Summary in one line."""
        sizes = ", ".join(f"{count:,} {split}" for split, count in self.examples.items())
        told = [f"{sizes} examples"]
        if self.constant_score is not None and self.labels:
            count = len(next(iter(self.labels.values())))
            told.append(f"{count} labels, a constant prediction has {self.metric} {self.constant_score:.3f}")
        return "; ".join(told)

    @property
    def losses(self) -> tuple[str, ...]:
        """Line for each split and reason for which rows are dropped or texts cut."""
        return tuple(map(str, (*self.dropped, *self.cuts)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Possible problems, a line each: many dropped or cut rows, missing or contradictory labels."""
        counts: tuple[Dropped | Cut, ...] = (*self.dropped, *self.cuts)
        many = (str(one) for one in counts if one.count > _MANY * one.of)
        return (*many, *self._label_warnings())

    def _label_warnings(self) -> Iterator[str]:
        for split in ("train", "validation"):
            labels = self.labels.get(split, {})
            none = [repr(name) for name, count in labels.items() if not count]
            if none:
                some = ", ".join([*none[:_NAMED_LABELS], *["…"] * (len(none) > _NAMED_LABELS)])
                do = "does" if len(none) == 1 else "do"
                yield f"{len(none)} of {len(labels)} labels {do} not occur in {split}: {some}."
        spellings: dict[str, list[str]] = {}
        for name in self.labels.get("train", {}):
            spellings.setdefault(normalised(name), []).append(repr(name))
        alike = [", ".join(names) for names in spellings.values() if len(names) > 1]
        if alike:
            yield f"labels that differ only in case or white space are labels of their own: {'; '.join(alike)}."
        if self.contradictions:
            yield self.contradictions


def data_facts(task: Prepared, tokenizer: "PreTrainedTokenizerFast | None" = None) -> DataFacts:
    """Return the facts about a prepared task.

    Args:
        task: Prepared task.
        tokenizer: Tokenizer of the task; None to skip the texts, which takes time for many.
    """
    splits = {name: task.splits[name] for name in SPLITS if name in task.splits}
    said = set(task.losses)
    labels = {}
    if len(task.labels) > 1:  # the single label of a regression is the name of its numbers
        for name, split in splits.items():
            counts = np.bincount(split.labels, minlength=len(task.labels))
            labels[name] = dict(zip(task.labels, map(int, counts), strict=True))
    facts = DataFacts(
        examples={name: len(split) for name, split in splits.items()},
        labels=labels,
        metric=task.metric,
        constant_score=task.constant_score,
        cuts=task.cuts,
        dropped=task.dropped,
        notes=tuple(note for note in task.notes if note not in said),
    )
    if tokenizer is None:
        return facts
    train = splits["train"]
    contradictions = _contradictions(train, task.labels, tokenizer) if labels else ""
    return replace(facts, contradictions=contradictions, samples=_samples(train, task.labels, tokenizer))


def _contradictions(split: Any, names: tuple[str, ...], tokenizer: "PreTrainedTokenizerFast") -> str:
    """Return a line on texts with two labels, with the first of them; empty without any."""
    labels_of: dict[bytes, set[int]] = {}
    for row, label in enumerate(split.labels):
        labels_of.setdefault(_tokens(split.rows, row).tobytes(), set()).add(int(label))
    found = [(tokens, sorted(labels)) for tokens, labels in labels_of.items() if len(labels) > 1]
    examples = []
    for tokens, labels in found[:_SAMPLES]:
        text = _text(np.frombuffer(tokens, split.rows.ids.dtype), tokenizer)
        examples.append(f"{text} ({', '.join(names[label] for label in labels)})")
    texts = f"{len(found)} text{'s' * (len(found) > 1)}"
    return f"{texts} of train with two labels: {'; '.join(examples)}." if found else ""


def _samples(split: Any, names: tuple[str, ...], tokenizer: "PreTrainedTokenizerFast") -> tuple[str, ...]:
    """Return the first examples of a split with their answers."""
    rows: TokenRows = split.rows if hasattr(split, "rows") else split.sources
    found = []
    for row in range(min(_SAMPLES, len(split))):
        read = _tokens(rows, row)
        learned = ""
        if hasattr(split, "targets"):
            learned = f" → {_text(_tokens(split.targets, row), tokenizer)}"
        elif hasattr(split, "labels"):
            label = split.labels[row]
            learned = f" → {names[label] if len(names) > 1 else format(label, 'g')}"
        found.append(f"{_text(read, tokenizer)}{learned} ({len(read)} tokens)")
    return tuple(found)


def _tokens(rows: TokenRows, row: int) -> Any:
    return rows.ids[rows.offsets[row] : rows.offsets[row + 1]]


def _text(tokens: Any, tokenizer: "PreTrainedTokenizerFast") -> str:
    """Return tokens as one line of text with the special ones; the middle of a long text is left out."""
    if len(tokens) <= _SAMPLE_TOKENS:
        return " ".join(str(tokenizer.decode(tokens)).split())
    half = _SAMPLE_TOKENS // 2
    return f"{_text(tokens[:half], tokenizer)} … {_text(tokens[-half:], tokenizer)}"
