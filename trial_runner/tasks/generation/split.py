"""Tokenised sources and targets and batches of them, as numpy arrays. No torch."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from search_space.dimensions import StackKind
from trial_runner.tasks.kind import Prepared
from trial_runner.tasks.splits import Sliceable
from trial_runner.tasks.task import Decoding
from trial_runner.tasks.token_rows import TokenRows, rounded

IGNORED = -100
"""Label of positions without loss, the default of torch's cross-entropy."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextBatch:
    """Sources and targets to learn, padded on the right to the longest.

    Attributes:
        input_ids: Sources of an encoder-decoder, ``(B, T)``; for a decoder each source and its target, ``(B, T)``.
        attention_mask: True at tokens, false at padding, ``(B, T)``.
        decoder_input_ids: Targets one token later, behind the start token, ``(B, U)``; None for a decoder. Padding
            needs no mask: no token attends to later ones, and the loss excludes it.
        labels: Next token of each position, already shifted: ``(B, U)``, for a decoder ``(B, T)``. ``IGNORED`` at
            padding and, for a decoder, where the next token is not of the target.
    """

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.bool_]
    decoder_input_ids: npt.NDArray[np.int64] | None
    labels: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenSplit(Sliceable):
    """Tokenised examples of a task whose answer is a text.

    Attributes:
        stack: Kind of the model: an encoder-decoder or a decoder.
        sources: Tokens before an answer.
        references: References of each example; empty for train.
        groups: Group of each example that is measured on its own too, or an empty name.
    """

    stack: StackKind
    sources: TokenRows
    references: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.groups)

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Return the examples of the given indices, in their order."""
        return replace(
            self,
            sources=self.sources.take(rows),
            references=tuple(self.references[row] for row in rows) if self.references else (),
            groups=tuple(self.groups[row] for row in rows),
        )

    @property
    @abstractmethod
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of tokens of each example, source and answer together, ``(B,)``."""

    @abstractmethod
    def batch(
        self, indices: npt.ArrayLike, pad_token_id: int, *, start_token_id: int = 0, multiple_of: int = 1
    ) -> TextBatch:
        """Return the examples of the given indices for training, in their order.

        Args:
            indices: ``(B,)``, each in [0, len).
            pad_token_id: Id behind shorter rows.
            start_token_id: First token of the decoder of an encoder-decoder.
            multiple_of: Number to whose multiples lengths are rounded up.
        """

    def prompts(
        self, indices: npt.ArrayLike, pad_token_id: int, *, multiple_of: int = 1
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return the sources of the given indices, for generation, and the mask of their tokens; see `batch`."""
        rows, on_left = np.asarray(indices, dtype=np.int64), self.stack is StackKind.DECODER
        return self.sources.padded(rows, pad_token_id, multiple_of=multiple_of, on_left=on_left)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextSplit(WrittenSplit):
    """Tokenised sources and targets; the sources of a decoder end in the separator.

    Attributes:
        targets: Targets, which end in the end of text (of mBART, in the language).
    """

    targets: TokenRows

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Implement `WrittenSplit`."""
        return replace(WrittenSplit.take(self, rows), targets=self.targets.take(rows))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Numbers of tokens; see `WrittenSplit`."""
        return self.sources.lengths + self.targets.lengths

    def batch(
        self, indices: npt.ArrayLike, pad_token_id: int, *, start_token_id: int = 0, multiple_of: int = 1
    ) -> TextBatch:
        """Implement `WrittenSplit`."""
        rows = np.asarray(indices, dtype=np.int64)
        if self.stack is StackKind.DECODER:
            return self._continued(rows, pad_token_id, multiple_of)
        sources, mask = self.sources.padded(rows, pad_token_id, multiple_of=multiple_of)
        targets, is_target = self.targets.padded(rows, pad_token_id, multiple_of=multiple_of)
        later = np.roll(targets, 1, axis=1)  # (B, U)
        later[:, :1] = start_token_id
        return TextBatch(
            input_ids=sources,
            attention_mask=mask,
            decoder_input_ids=later,
            labels=np.where(is_target, targets, IGNORED),
        )

    def _continued(self, rows: npt.NDArray[np.int64], pad_token_id: int, multiple_of: int) -> TextBatch:
        """Return each source and its target in one row."""
        width = rounded(int(self.lengths[rows].max(initial=0)), multiple_of)
        ids = np.full((len(rows), width), pad_token_id, dtype=np.int64)
        labels = np.full((len(rows), width), IGNORED, dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.bool_)
        for place, row in enumerate(rows):
            source, target = self._tokens(self.sources, row), self._tokens(self.targets, row)
            end = len(source) + len(target)
            ids[place, :end] = np.concatenate((source, target))
            labels[place, len(source) - 1 : end - 1] = target
            mask[place, :end] = True
        return TextBatch(input_ids=ids, attention_mask=mask, decoder_input_ids=None, labels=labels)

    @staticmethod
    def _tokens(rows: TokenRows, row: np.int64) -> npt.NDArray[np.int32]:
        return rows.ids[rows.offsets[row] : rows.offsets[row + 1]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedTextTask(Prepared):
    """Task whose answer is a text, for one kind of model with its own language-model head.

    Attributes:
        task_kind: Kind of the task.
        stack: Kind of the model: an encoder-decoder or a decoder.
        metrics: Measured metrics, ``metric`` among them.
        decoding: Options of the generation.
        max_new_tokens: Largest number of tokens of a generated answer.
        label_smoothing: Label smoothing of the loss, in [0, 1).
        start_token_id: First token of the decoder of an encoder-decoder if the task determines it (mBART: the
            language of the targets); None takes that of the model.
        eos_token_id: Id of the token that ends a generated text.
        answer_after: Mark before the answer proper in a generated text; None if all of it is the answer.
    """

    objective: ClassVar[str] = "language_model"
    task_kind: str
    stack: StackKind
    metrics: tuple[str, ...]
    decoding: Decoding
    max_new_tokens: int
    label_smoothing: float
    start_token_id: int | None
    eos_token_id: int
    splits: Mapping[str, WrittenSplit]
    answer_after: str | None = None
