"""Classification of texts or pairs of texts as a task kind: from rows to tokens; regression shares most of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.tasks.classification.raw import Label, RawSplit, label_column, read_split, text_columns
from trial_runner.tasks.classification.split import PreparedTask, Split
from trial_runner.tasks.data.linearise import as_one_text
from trial_runner.tasks.kind import Cut, Facts, TaskKind, check_length, kept_facts, place_facts, prepared_fields
from trial_runner.tasks.splits import RawTask, beginning, complete_splits, drop_repeated, drop_rows, subsample
from trial_runner.tasks.task import Task
from trial_runner.tasks.token_rows import TokenRows, encoded

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast


_HIDDEN = -1


Encode = Callable[[RawSplit, str], npt.NDArray[Any]]
"""Function from the rows and the name of a split to an array of its labels; the name is for error messages."""


def _class_indices(names: tuple[str, ...], by_position: bool, rows: RawSplit, split: str) -> npt.NDArray[np.int64]:
    """Return the class index of each label, ``(B,)``.

    Args:
        names: Names of the classes, in their order.
        by_position: Whether integers in the data are positions in ``names`` rather than names themselves.
        rows: Rows with the labels.
        split: Name of the split in error messages.

    Raises:
        TaskError: If a label is not among the names.
    """
    index: dict[Label, int] = {(row if by_position else name): row for row, name in enumerate(names)}
    keys = rows.labels if by_position else tuple(str(label) for label in rows.labels)
    for key, text in zip(keys, rows.columns[0], strict=True):
        if key not in index:
            raise TaskError(
                f"labels must be among those of train: {_listed(names)}; got the unknown label {key!r} of the text "
                f"{beginning(text)!r} in split {split!r}."
            )
    return np.array([index[key] for key in keys if key is not None], dtype=np.int64)


def drop_unlabelled(task: RawTask[RawSplit]) -> RawTask[RawSplit]:
    """Drop splits whose labels are hidden (-1 or null everywhere), and rows without a label or a text.

    Raises:
        TaskError: If train is missing or has no labels, or if no row of another split has both.
    """
    minus_one_is_a_label = "train" in task.splits and _HIDDEN in task.splits["train"].labels

    def unlabelled(name: str, split: RawSplit) -> list[str | None]:
        if set(split.labels) <= ({None} if minus_one_is_a_label else {None, _HIDDEN}):
            if name == "train":
                raise TaskError("split 'train' must have labels; every one is missing.")
            return ["no label"] * len(split)
        texts = zip(*split.columns, strict=True)
        return [
            "no label" if label is None else None if all(row) else "no text"
            for label, row in zip(split.labels, texts, strict=True)
        ]

    return drop_rows(task, unlabelled)


def labelling_of(splits: Mapping[str, RawSplit], declared: tuple[str, ...] | None) -> tuple[tuple[str, ...], Encode]:
    """Return the classes of a task, as declared or else those in train, and the encoder of labels as indices.

    The order is that of the declaration, else of the data's own class list, else sorted (integers by value).
    Labels of train are positions in the declared names if all are such positions and none is a declared name.

    Raises:
        TaskError: If train has fewer than two labels, or one that is not declared.
    """
    train = splits["train"]
    found = {label for label in train.labels if label is not None}
    if len(found) < 2:
        raise TaskError(f"train must have at least two different labels; got {_listed([str(f) for f in found])}.")
    if declared is not None:
        positions = {label for label in found if isinstance(label, int) and 0 <= label < len(declared)}
        by_position = positions == found and not {str(label) for label in found} & set(declared)
        encode = partial(_class_indices, declared, by_position)
        encode(train, "train")
        return declared, encode
    if train.class_names is not None:
        names = tuple(name for name in train.class_names if name in found)
    else:
        names = tuple(str(label) for label in sorted(found, key=lambda label: (isinstance(label, str), label)))
    return names, partial(_class_indices, names, False)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    """Return at most ten names as text for an error message."""
    return ", ".join(names[:10]) + (f", … ({len(names)} in all)" if len(names) > 10 else "")


def encode_split(
    columns: Sequence[Sequence[str]],
    labels: npt.NDArray[Any],
    tokenizer: "PreTrainedTokenizerFast",
    max_tokens: int,
    *,
    groups: tuple[str, ...] = (),
) -> tuple[Split, int]:
    """Tokenise texts or pairs; return the split and the number of texts that were cut to ``max_tokens``.

    Token types are kept only if some token is of the second type, groups only if some example is in one.

    Args:
        columns: Texts; for pairs also the second ones.
        labels: Class or number of each example, ``(B,)``.
        tokenizer: Tokenizer of the backbone.
        max_tokens: Largest number of tokens of an example; longer ones are cut.
        groups: Group of each example.
    """
    texts = dict(zip(("text", "text_pair"), columns, strict=False))
    found, cut = encoded(tokenizer, texts, max_tokens, truncation="longest_first")
    rows, types = TokenRows.of(found["input_ids"]), TokenRows.of(found["token_type_ids"]).ids
    split = Split(
        input_ids=rows.ids,
        offsets=rows.offsets,
        labels=labels,
        token_type_ids=types if types.any() else None,
        groups=groups if any(groups) else None,
    )
    return split, cut


@dataclass(frozen=True, slots=True)
class ClassificationPreparation:
    """Preparation of a classification task: from rows to labelled tokens."""

    task: Task
    tokenizer: "PreTrainedTokenizerFast"
    identity = ""
    made: ClassVar[type[PreparedTask]] = PreparedTask

    @property
    def facts(self) -> Mapping[str, Any]:
        """Settings of the task that decide the tokens, JSON-able."""
        own = {"text": text_columns(self.task), "label": label_column(self.task), "labels": self.task.labels}
        return {**place_facts(self.task), **own}

    def read(self, dataset: "Dataset", split: str, group: str) -> RawSplit:
        """Return the rows of a dataset."""
        return read_split(dataset, self.task, split, group)

    def tokenised(self, raw: RawTask[RawSplit]) -> tuple[Facts, dict[str, Split]]:
        """Split, encode and tokenise the labelled rows; return the facts for the cache and the splits."""
        labelled = drop_unlabelled(raw)
        names, encode = self.encoder(labelled.splits)
        chosen = subsample(drop_repeated(complete_splits(labelled)), self.task)
        longest = self.task.max_tokens
        splits: dict[str, Split] = {}
        cuts: list[Cut] = []
        for name, split in chosen.splits.items():
            labels = encode(split, name)
            splits[name], cut = encode_split(split.columns, labels, self.tokenizer, longest, groups=split.groups)
            cuts += [Cut(split=name, what="examples", count=cut, of=len(split), tokens=longest)] if cut else []
        return kept_facts(self.task, chosen, cuts, labels=names), splits

    def encoder(self, splits: Mapping[str, RawSplit]) -> tuple[tuple[str, ...], Encode]:
        """Return the names of the classes, and the encoder of a split's labels as class indices."""
        return labelling_of(splits, self.task.labels)

    def new_split(self, **held: Any) -> Split:
        """Build a split from its fields."""
        return Split(**held)

    def prepared(self, fingerprint: str, facts: Facts, splits: Mapping[str, Split]) -> PreparedTask:
        """Build the prepared task from cached facts and splits."""
        same = prepared_fields(fingerprint, facts)
        return self.made(labels=tuple(facts["labels"]), metric=self.task.metric, splits=splits, **same)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled(TaskKind):
    """Kind of tasks whose texts have a label.

    Attributes:
        made_ready_by: Class of their preparation.
    """

    needed: tuple[str, ...] = ("text", "label")
    made_ready_by: type[ClassificationPreparation]

    def check(self, task: Task) -> None:
        """Check that the columns of texts and labels differ.

        Raises:
            TaskError: If two of them are the same.
        """
        text, label = text_columns(task), label_column(task)
        if len({*text, label}) != len(text) + 1:
            raise TaskError(
                f"a task must have one or two text columns beside its label column; got {', '.join(text)} and {label}."
            )

    def read_columns(self, task: Task) -> tuple[str, ...]:
        """Return the columns of the texts."""
        return text_columns(task)

    def as_read(self, task: Task, column: str, value: object) -> object:
        """Return a value of a text column as the model reads it; a list is joined to one text."""
        return as_one_text(value, task.join)

    def preparation(
        self, task: Task, tokenizer: "PreTrainedTokenizerFast", stack: StackKind, position_limit_tokens: int | None
    ) -> ClassificationPreparation:
        """Return the preparation of a task for a backbone.

        Raises:
            TaskError: If the backbone has too few positions for ``max_tokens``.
        """
        check_length("max_tokens", task.max_tokens, position_limit_tokens)
        return self.made_ready_by(task, tokenizer)


CLASSIFICATION = Labelled(
    name="classification",
    usual_metric="accuracy",
    column_keys=("text", "label", "labels"),
    made_ready_by=ClassificationPreparation,
)
