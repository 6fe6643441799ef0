"""Tokenised dialogues and batches of them, as numpy arrays. No torch."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from search_space.dimensions import StackKind
from trial_runner.tasks.generation.split import IGNORED, TextBatch, WrittenSplit
from trial_runner.tasks.token_rows import TokenRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChatSplit(WrittenSplit):
    """Tokenised dialogues; their sources are what is read before the last answer, of plain texts nothing.

    Attributes:
        rows: Whole dialogues.
        learned: Of each of their tokens whether it is learned, ``(sum of T,)``; of no row the first one.
    """

    stack: StackKind = StackKind.DECODER
    rows: TokenRows
    learned: npt.NDArray[np.bool_]

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """See `WrittenSplit`."""
        learned = self.learned[self.rows.places(rows)]
        return replace(WrittenSplit.take(self, rows), rows=self.rows.take(rows), learned=learned)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """See `WrittenSplit`."""
        return self.rows.lengths

    def batch(
        self, indices: npt.ArrayLike, pad_token_id: int, *, start_token_id: int = 0, multiple_of: int = 1
    ) -> TextBatch:
        """See `WrittenSplit`; only where the next token is learned there is a label."""
        chosen = np.asarray(indices, dtype=np.int64)
        ids, mask = self.rows.padded(chosen, pad_token_id, multiple_of=multiple_of)
        is_learned = np.zeros(mask.shape, dtype=np.bool_)
        is_learned[mask] = self.learned[self.rows.places(chosen)]
        labels = np.full(ids.shape, IGNORED, dtype=np.int64)
        labels[:, :-1] = np.where(is_learned[:, 1:], ids[:, 1:], IGNORED)
        return TextBatch(input_ids=ids, attention_mask=mask, decoder_input_ids=None, labels=labels)
