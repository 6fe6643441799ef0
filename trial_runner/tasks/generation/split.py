"""Tokenised sources and targets and batches of them, as numpy arrays. No torch."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from search_space.dimensions import StackKind
from trial_runner.tasks.kind import Prepared
from trial_runner.tasks.splits import Takeable
from trial_runner.tasks.task import Decoding
from trial_runner.tasks.token_rows import TokenRows, rounded

IGNORED = -100
"""The label of places that the loss leaves out, as torch's cross-entropy does unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextBatch:
    """Sources and targets to learn from, padded on the right to the longest.

    Attributes:
        input_ids: Of an encoder-decoder the sources, ``(B, T)``; of a decoder each source and its target, ``(B, T)``.
        attention_mask: True at tokens, false at padding, ``(B, T)``.
        decoder_input_ids: The targets one token later, behind the start token, ``(B, U)``; None of a decoder. Padding
            needs no mask: no token sees what comes later, and the loss leaves it out.
        labels: The next token of each place, already shifted: ``(B, U)``, of a decoder ``(B, T)``. ``IGNORED`` at
            padding and, of a decoder, wherever the next token is not of the target.
    """

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.bool_]
    decoder_input_ids: npt.NDArray[np.int64] | None
    labels: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenSplit(Takeable):
    """Tokenised examples of a task whose answer is a text.

    Attributes:
        stack: Of the model that they are for: an encoder-decoder or a decoder.
        sources: What is read before an answer is written.
        references: Of each example what a written text is measured against; of train nothing.
        groups: Of each example the group that is measured on its own too, or an empty name.
    """

    stack: StackKind
    sources: TokenRows
    references: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.groups)

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """The examples of the given indices, in their order."""
        return replace(
            self,
            sources=self.sources.take(rows),
            references=tuple(self.references[row] for row in rows) if self.references else (),
            groups=tuple(self.groups[row] for row in rows),
        )

    @property
    @abstractmethod
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each example, what is read and what is written together, ``(B,)``."""

    @abstractmethod
    def batch(
        self, indices: npt.ArrayLike, pad_token_id: int, *, start_token_id: int = 0, multiple_of: int = 1
    ) -> TextBatch:
        """The examples of the given indices to learn from, in their order.

        Args:
            indices: ``(B,)``, each in [0, len).
            pad_token_id: Put behind shorter rows.
            start_token_id: What the decoder of an encoder-decoder begins with.
            multiple_of: Lengths are rounded up to a multiple of it.
        """

    def prompts(
        self, indices: npt.ArrayLike, pad_token_id: int, *, multiple_of: int = 1
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """What is read of the given indices, to generate from, and where its tokens are; see `batch`."""
        rows, on_left = np.asarray(indices, dtype=np.int64), self.stack is StackKind.DECODER
        return self.sources.padded(rows, pad_token_id, multiple_of=multiple_of, on_left=on_left)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextSplit(WrittenSplit):
    """Tokenised sources and targets; the sources of a decoder end in the separator.

    Attributes:
        targets: They end in the end of text (of mBART, in the language).
    """

    targets: TokenRows

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """See `WrittenSplit`."""
        return replace(WrittenSplit.take(self, rows), targets=self.targets.take(rows))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """See `WrittenSplit`."""
        return self.sources.lengths + self.targets.lengths

    def batch(
        self, indices: npt.ArrayLike, pad_token_id: int, *, start_token_id: int = 0, multiple_of: int = 1
    ) -> TextBatch:
        """See `WrittenSplit`."""
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
        """Each source and its target in one row."""
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
    """A task whose answer is a text, for one kind of model; the backbone's own head writes it.

    Attributes:
        task_kind: What is done with the text.
        stack: Of the model that it is for: an encoder-decoder or a decoder.
        metrics: All that are measured, ``metric`` among them.
        decoding: How answers are generated.
        max_new_tokens: Most tokens of a generated answer.
        label_smoothing: Of the loss, in [0, 1).
        start_token_id: What the decoder of an encoder-decoder must begin with because the task says so (mBART: the
            language of the targets); None leaves it to the model.
        eos_token_id: A generated text ends at it.
        answer_after: What the answer proper stands behind in a written text; None where all of it is the answer.
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
