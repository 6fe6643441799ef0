"""Tokenised examples and their batches as numpy arrays, without torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from trial_runner.tasks.evaluation import compute, score_of
from trial_runner.tasks.kind import Prepared
from trial_runner.tasks.metrics import METRICS, Measures
from trial_runner.tasks.splits import Sliceable
from trial_runner.tasks.token_rows import TokenRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Examples padded on the right to the longest of them.

    Attributes:
        input_ids: Token ids, ``(B, T)``.
        attention_mask: Mask ``(B, T)``; true at tokens, false at padding.
        token_type_ids: Text of a pair that each token belongs to, 0 or 1, ``(B, T)``; None if all are 0.
        labels: Class indices, or the numbers of a regression, ``(B,)``.
    """

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.bool_]
    token_type_ids: npt.NDArray[np.int64] | None
    labels: npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split(Sliceable):
    """Tokenised examples, concatenated.

    Attributes:
        input_ids: Token ids of all examples, ``(sum of T,)``.
        offsets: Start of each example and end of the last one, ``(B + 1,)``.
        labels: Class indices, or the numbers of a regression, ``(B,)``.
        token_type_ids: Text of a pair that each token belongs to, 0 or 1, ``(sum of T,)``; None if all are 0.
        groups: Group of each example that is also measured separately, or an empty name; None without groups.
    """

    input_ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    labels: npt.NDArray[Any]
    token_type_ids: npt.NDArray[np.int32] | None = None
    groups: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.labels)

    @property
    def rows(self) -> TokenRows:
        """Tokens of the examples."""
        return TokenRows(ids=self.input_ids, offsets=self.offsets)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of tokens of each example, ``(B,)``."""
        return self.rows.lengths

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Return the examples of the given indices, in their order."""
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
        """Return a padded batch of the examples of the given indices, in their order.

        Args:
            indices: Indices of examples, ``(B,)``, each in [0, len).
            pad_token_id: Token id of the padding.
            multiple_of: Divisor that the padded length is rounded up to.
        """
        rows = np.asarray(indices, dtype=np.int64)
        ids, mask = self.rows.padded(rows, pad_token_id, multiple_of=multiple_of)
        types = None
        if self.token_type_ids is not None:
            types, _ = replace(self.rows, ids=self.token_type_ids).padded(rows, 0, multiple_of=multiple_of)
        return Batch(input_ids=ids, attention_mask=mask, token_type_ids=types, labels=self.labels[rows])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedTask(Prepared):
    """Prepared task whose labels are classes."""

    objective: ClassVar[str] = "classification"
    splits: Mapping[str, Split]

    @property
    def guessing_loss(self) -> float:
        """Mean loss of predicting the label frequencies of train, equal to their entropy."""
        counts = np.bincount(self.splits["train"].labels)
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())

    @property
    def constant_score(self) -> float | None:
        """Validation score of predicting the most frequent label of train for every example; None for losses."""
        true = self.splits["validation"].labels
        predicted = np.full(len(true), np.bincount(self.splits["train"].labels).argmax())
        if METRICS[self.metric].measures is not Measures.CLASSES:
            return None
        value = compute([self.metric], predicted, true, classes=len(self.labels))[self.metric]
        return score_of(self.metric, value)
