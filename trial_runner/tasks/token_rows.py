"""Rows of tokens as numpy arrays. No torch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from trial_runner.huggingface import quiet_transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenRows:
    """Rows of tokens, stored one after the other.

    Attributes:
        ids: Tokens of all rows, ``(sum of T,)``.
        offsets: Begin of each row and end of the last one, ``(B + 1,)``.
    """

    ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Self:
        """Concatenate lists of tokens."""
        ids = np.fromiter((token for row in rows for token in row), dtype=np.int32)
        return cls(ids=ids, offsets=np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of tokens of each row, ``(B,)``."""
        return np.diff(self.offsets)

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Return the rows of the given indices, in their order."""
        lengths = self.lengths[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        return replace(self, ids=self.ids[self.places(rows)], offsets=offsets)

    def places(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the indices of the tokens of some of the rows."""
        lengths = self.lengths[rows]
        before = np.cumsum(lengths) - lengths
        found: npt.NDArray[np.int64] = np.repeat(self.offsets[rows] - before, lengths) + np.arange(lengths.sum())
        return found

    def padded(
        self, rows: npt.NDArray[np.int64], filler: int, *, multiple_of: int = 1, on_left: bool = False
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return some of the rows and the mask of their tokens, both ``(B, T)``, padded on one side."""
        lengths = self.lengths[rows]
        width = rounded(int(lengths.max(initial=0)), multiple_of)
        columns = np.arange(width) - ((width - lengths)[:, None] if on_left else 0)
        mask = (columns >= 0) & (columns < lengths[:, None])  # (B, T)
        padded = np.full(mask.shape, filler, dtype=np.int64)
        padded[mask] = self.ids[(self.offsets[rows][:, None] + columns)[mask]]
        return padded, mask


def by_length(lengths: npt.NDArray[np.int64], size: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the indices of all rows in groups of a size, those of similar lengths together."""
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), size):
        yield order[start : start + size]


def rounded(width: int, multiple_of: int) -> int:
    """Round a width up to a multiple."""
    return -(-width // multiple_of) * multiple_of


def encoded(
    tokenizer: "PreTrainedTokenizerFast", texts: Mapping[str, Sequence[str]], most: int, **options: Any
) -> tuple[dict[str, list[list[int]]], int]:
    """Tokenise texts to ``input_ids`` and, if the tokenizer has them, ``token_type_ids``; count the truncated texts.

    Args:
        tokenizer: Tokenizer.
        texts: Texts by the tokenizer's names of them, such as ``text`` and ``text_pair``.
        most: Largest number of tokens of a text.
        options: Options of the tokenizer.
    """
    found: dict[str, list[list[int]]] = {"input_ids": [], "token_type_ids": []}
    cut = 0
    options = {"truncation": True, "padding": False} | options
    for begin in range(0, max(map(len, texts.values())), _ROWS_AT_ONCE):
        some: dict[str, Any] = {name: list(rows[begin : begin + _ROWS_AT_ONCE]) for name, rows in texts.items()}
        with quiet_transformers():
            made = tokenizer(**some, max_length=most, **options)
            if made.is_fast:
                cut += sum(bool(encoding.overflowing) for encoding in made.encodings or ())
            else:  # one in Python does not say what it cut
                whole = tokenizer(**some, **{**options, "truncation": False})["input_ids"]
                cut += sum(len(row) > most for row in whole)
        for name, rows in found.items():
            rows += made.get(name, [])
    return found, cut
