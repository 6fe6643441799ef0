"""Tokenised dialogues and batches of them, as numpy arrays. No torch."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from search_space.dimensions import StackKind
from trial_runner.tasks.generation.split import IGNORED, TextBatch
from trial_runner.tasks.splits import Takeable
from trial_runner.tasks.token_rows import Prompts, TokenRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChatSplit(Takeable):
    """Tokenised dialogues; see `trial_runner.tasks.generation.split.WrittenSplit`.

    Attributes:
        rows: Whole dialogues.
        learned: Of each of their tokens whether it is learned, ``(sum of T,)``; of no row the first one.
        sources: What is read before the last answer; of a plain text nothing.
        references: Of each dialogue what a written answer is measured against; of train nothing.
        groups: Of each dialogue the group that is measured on its own too, or an empty name.
    """

    rows: TokenRows
    learned: npt.NDArray[np.bool_]
    sources: TokenRows
    references: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        """Number of dialogues."""
        return len(self.groups)

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """The dialogues of the given indices, in their order."""
        return replace(
            self,
            rows=self.rows.take(rows),
            learned=self.learned[self.rows.places(rows)],
            sources=self.sources.take(rows),
            references=tuple(self.references[row] for row in rows),
            groups=tuple(self.groups[row] for row in rows),
        )

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each dialogue, ``(B,)``."""
        return self.rows.lengths

    def batch(
        self, indices: npt.ArrayLike, pad_token_id: int, *, start_token_id: int = 0, multiple_of: int = 1
    ) -> TextBatch:
        """The dialogues of the given indices to learn from, in their order; see `TextSplit.batch`.

        Only where the next token is learned there is a label.
        """
        chosen = np.asarray(indices, dtype=np.int64)
        ids, mask = self.rows.padded(chosen, pad_token_id, multiple_of=multiple_of)
        is_learned = np.zeros(mask.shape, dtype=np.bool_)
        is_learned[mask] = self.learned[self.rows.places(chosen)]
        labels = np.full(ids.shape, IGNORED, dtype=np.int64)
        labels[:, :-1] = np.where(is_learned[:, 1:], ids[:, 1:], IGNORED)
        return TextBatch(input_ids=ids, attention_mask=mask, decoder_input_ids=None, labels=labels)

    def prompts(self, indices: npt.ArrayLike, pad_token_id: int, *, multiple_of: int = 1) -> Prompts:
        """What is read of the given indices before the last answer, in their order."""
        chosen = np.asarray(indices, dtype=np.int64)
        return self.sources.prompts(chosen, pad_token_id, StackKind.DECODER, multiple_of=multiple_of)
