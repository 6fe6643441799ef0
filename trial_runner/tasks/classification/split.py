"""Tokenised examples and batches of them, as numpy arrays. No torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from trial_runner.tasks.evaluation import compute, score_of
from trial_runner.tasks.kind import Prepared
from trial_runner.tasks.metrics import METRICS, Measures
from trial_runner.tasks.splits import Takeable
from trial_runner.tasks.token_rows import TokenRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Examples padded on the right to the longest of them.

    Attributes:
        input_ids: ``(B, T)``.
        attention_mask: ``(B, T)``; true at tokens, false at padding.
        token_type_ids: ``(B, T)``; None for tokenizers that do not tell the texts of a pair apart.
        labels: Class indices, or the numbers of a regression, ``(B,)``.
    """

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.bool_]
    token_type_ids: npt.NDArray[np.int64] | None
    labels: npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split(Takeable):
    """Tokenised examples, one after the other.

    Attributes:
        input_ids: Token ids of all examples, ``(sum of T,)``.
        offsets: Where each example begins and the last one ends, ``(B + 1,)``.
        labels: Class indices, or the numbers of a regression, ``(B,)``.
        token_type_ids: Which text of a pair a token is of, ``(sum of T,)``; None if the tokenizer does not say.
        groups: Of each example the group that is measured on its own too, or an empty name; None if there is none.
    """

    input_ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    labels: npt.NDArray[Any]
    token_type_ids: npt.NDArray[np.int32] | None = None
    groups: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.labels)

    @property
    def rows(self) -> TokenRows:
        """The tokens of the examples."""
        return TokenRows(ids=self.input_ids, offsets=self.offsets)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each example, ``(B,)``."""
        return self.rows.lengths

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """The examples of the given indices, in their order."""
        taken = self.rows.take(rows)
        return replace(
            self,
            input_ids=taken.ids,
            offsets=taken.offsets,
            labels=self.labels[rows],
            token_type_ids=None if self.token_type_ids is None else self.token_type_ids[self.rows.places(rows)],
            groups=None if self.groups is None else tuple(self.groups[row] for row in rows),
        )

    def batch(self, indices: npt.ArrayLike, pad_token_id: int, *, multiple_of: int = 1) -> Batch:
        """The examples of the given indices, in their order.

        Args:
            indices: ``(B,)``, each in [0, len).
            pad_token_id: Put behind shorter examples.
            multiple_of: The length is rounded up to a multiple of it.
        """
        rows = np.asarray(indices, dtype=np.int64)
        ids, mask = self.rows.padded(rows, pad_token_id, multiple_of=multiple_of)
        types = None
        if self.token_type_ids is not None:
            types, _ = replace(self.rows, ids=self.token_type_ids).padded(rows, 0, multiple_of=multiple_of)
        return Batch(input_ids=ids, attention_mask=mask, token_type_ids=types, labels=self.labels[rows])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedTask(Prepared):
    """A task whose labels are classes."""

    objective: ClassVar[str] = "classification"
    splits: Mapping[str, Split]

    @property
    def guessing_loss(self) -> float:
        """Mean loss of guessing by the frequencies of the labels in train: their entropy."""
        counts = np.bincount(self.splits["train"].labels)
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())

    @property
    def constant_score(self) -> float | None:
        """Score on validation of predicting the most frequent label of train for everything; None of losses."""
        true = self.splits["validation"].labels
        predicted = np.full(len(true), np.bincount(self.splits["train"].labels).argmax())
        if METRICS[self.metric].measures is not Measures.CLASSES:
            return None
        value = compute([self.metric], predicted, true, classes=len(self.labels))[self.metric]
        return score_of(self.metric, value)
