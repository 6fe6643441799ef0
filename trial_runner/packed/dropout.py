"""Dropout in a pack: what a slot drops depends on its key and on the place of an element, and on nothing else.

Whether an element is dropped is told by a hash of its slot's key, of the number of the dropout call within the pass and
of the element's place. So a slot's masks are those of the same trial alone, however many slots there are and however
far a batch is padded; there is no generator whose state they could share. All axes but the last are hashed on smaller
tensors; only one round of mixing is as large as the tensor itself, and every word of it decides about two elements.
Shapes: `K` slots, `B` examples of a slot, `T` tokens.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from trial_runner.packed.kernels import has_gpu_kernels

_SHARES = 1 << 16  # values of half a word
_AXIS = 1 << 24  # between the numbers of the places along one axis and those along the next
_PREFIX_END = -(1 << 20)  # where the places of prefixes end, far from those of tokens and of prompts

# odd numbers with their bits spread: those of the MurmurHash3 finaliser, and the golden ratio
_FIRST_FACTOR, _SECOND_FACTOR = 0x85EBCA6B - (1 << 32), 0xC2B2AE35 - (1 << 32)
_GOLDEN = 0x9E3779B1


class SlotDropout:
    """Drops elements of tensors whose first axis is K equal blocks of rows, one for each slot.

    It waits for nothing and draws nothing, so a CUDA graph of a pass drops by whatever the keys hold when it is run.

    Args:
        keys: Of each slot at this step, ``(K,)``; their low 32 bits count.
        of_low_rank: Share that is dropped of what low-rank maps read.
        examples_before: Examples of each slot's batch that are computed before these, apart.

    Attributes:
        rows_before: Rows that stand before the tokens along the last axis but one of what is dropped, as those of
            prompts do; 0 at the start of a pass. They count from their right end, so they may be padded on the left.
    """

    def __init__(self, keys: Tensor, *, of_low_rank: float = 0.0, examples_before: int = 0) -> None:
        """Begin a pass."""
        self._keys = keys
        self.examples_before = examples_before
        self._of_low_rank = of_low_rank
        self.start_pass()

    @property
    def place(self) -> tuple[int, int]:
        """Where the pass is: its calls so far, and `rows_before`."""
        return self._calls, self.rows_before

    @property
    def slots(self) -> int:
        """K."""
        return len(self._keys)

    def go_to(self, place: tuple[int, int]) -> None:
        """Go on from a place of the pass."""
        self._calls, self.rows_before = place

    def start_pass(self) -> None:
        """Count the calls from the first one again; the same keys then drop the same."""
        self.rows_before = 0
        self._calls = 0
        self._hashed: dict[tuple[tuple[int, ...], int, int, int | None], Tensor] = {}
        self._columns: dict[tuple[int, int, int], tuple[Tensor, Tensor]] = {}

    def drop(self, tensor: Tensor, p: float, columns_before: int = 0, prompt_columns: int = 0) -> Tensor:
        """A tensor with each element 0 with probability p, and divided by 1 - p otherwise.

        Args:
            tensor: ``(K B, ...)``; attention weights are ``(K B, H, T, S)``.
            p: Probability, rounded to a multiple of 2^-16.
            columns_before: Columns of prefixes along the last axis, where they come first. They count from their right
                end, so they may be padded on the left.
            prompt_columns: Columns of prompts, between those of prefixes and those of tokens; the same holds for them.

        Raises:
            ValueError: If p is no probability, or the rows are no equal blocks.
        """
        if not 0 <= p <= 1:
            raise ValueError(f"the share that is dropped must be between 0 and 1; got {p}.")
        self._calls += 1
        return self._dropped(tensor, p, (columns_before, prompt_columns), self._calls, None)

    def read_by_low_rank(self, rows: Tensor, index: Tensor, number: int) -> Tensor:
        """What low-rank maps of some slots see of what they read.

        It is told by the number of their place and not by how many calls there were, so that neither what other slots
        have nor the dropout of the backbone changes it.

        Args:
            rows: ``(G, B, T, D)`` or ``(G, B, T, H, D)``.
            index: Their slots, ``(G,)``.
            number: Of their place in the model.
        """
        if not self._of_low_rank:
            return rows
        # tokens are the last axis but one where rows of prompts are counted from their end
        by_token = rows if rows.dim() == 4 else rows.transpose(2, 3)
        flat = by_token.flatten(0, 1)
        dropped = self._dropped(flat, self._of_low_rank, (0, 0), number, index).view(by_token.shape)
        return dropped if rows.dim() == 4 else dropped.transpose(2, 3)

    def _dropped(self, tensor: Tensor, p: float, columns: tuple[int, int], call: int, index: Tensor | None) -> Tensor:
        dropped = round(p * _SHARES)
        if dropped == 0:
            return tensor
        if dropped == _SHARES:
            return tensor * 0
        with torch.no_grad():
            table = tensor if tensor.dim() > 1 else tensor.unsqueeze(1)
            rows = self._places_hashed(table.shape[:-1], index)
            rows = _mix(rows + _signed(call * _GOLDEN)).unsqueeze(-1)
            numbers = self._numbers(rows, table.shape, *columns).view(tensor.shape)
            # a mask of truth values takes least memory, but a CPU multiplies by numbers far faster
            least = dropped - _SHARES // 2
            is_gpu = has_gpu_kernels(tensor)
            kept = numbers >= least if is_gpu else numbers.ge_(least).to(tensor.dtype)
        scaled = tensor * (1 / (1 - p))
        return torch.where(kept, scaled, 0.0) if is_gpu else scaled * kept

    def _numbers(self, rows: Tensor, shape: torch.Size, columns_before: int, prompt_columns: int) -> Tensor:
        """A uniform number of 16 bits for each element of a tensor of a shape; it may be strided."""
        own = shape[-1] - columns_before
        factors, terms = self._pairs_hashed(columns_before, own, prompt_columns)
        words = torch.addcmul(terms, rows, factors)  # (K B, ..., pairs of columns)
        # the sign is copied down by this shift, which costs one bit in 32 and saves a pass over the words
        words.bitwise_xor_(words >> 16).mul_(_signed(_GOLDEN))
        halves = words.view(torch.int16)
        first = columns_before % 2
        start = first + columns_before + prompt_columns % 2
        after = halves[..., start : start + own]
        if not columns_before:
            return after
        return torch.cat([halves[..., first : first + columns_before], after], dim=-1)

    def _places_hashed(self, shape: torch.Size, index: Tensor | None = None) -> Tensor:
        """A number for each place along all axes but the last one, of all slots or of some."""
        known = (tuple(shape), self.rows_before, self.examples_before, None if index is None else id(index))
        if known not in self._hashed:
            own = self._keys if index is None else self._keys.index_select(0, index)
            slots, device = len(own), own.device
            if shape[0] % slots:
                raise ValueError(f"the rows must be {slots} equal blocks, one for each slot; got {shape[0]} rows.")
            keys, first = _mix(own.to(torch.int32)).unsqueeze(1), _AXIS + self.examples_before
            hashed = _mix(keys ^ _mix(_counted(first, shape[0] // slots, device))).flatten()  # (K B,)
            for axis, size in enumerate(shape[1:], start=2):
                first = axis * _AXIS - (self.rows_before if axis == len(shape) else 0)
                hashed = _mix(hashed.unsqueeze(-1) ^ _mix(_counted(first, size, device)))
            self._hashed[known] = hashed
        return self._hashed[known]

    def _pairs_hashed(self, columns_before: int, own: int, prompt_columns: int) -> tuple[Tensor, Tensor]:
        """An odd factor and a term for every two columns."""
        known = (columns_before, own, prompt_columns)
        if known not in self._columns:
            device = self._keys.device
            first = -prompt_columns // 2
            pairs = _counted(first, -((prompt_columns - own) // 2) - first, device)
            if columns_before:
                before = -(-columns_before // 2)
                pairs = torch.cat([_counted(_PREFIX_END - before, before, device), pairs])
            hashed = _mix(pairs)
            self._columns[known] = (hashed | 1, _mix(hashed + 1))
        return self._columns[known]


_active: ContextVar[SlotDropout | None] = ContextVar("active_slot_dropout", default=None)


def current() -> SlotDropout | None:
    """What drops at the moment; None outside of `dropping`."""
    return _active.get()


@contextmanager
def dropping(slot_dropout: SlotDropout, place: tuple[int, int] | None = None) -> Iterator[None]:
    """Compute with every `torch.nn.functional.dropout`, called by `torch.nn.Dropout` or not, done by a pack's.

    Other kinds of dropout (of whole channels, alpha, inside PyTorch's fused attention) are left as they are.

    Args:
        place: Where a part of a pass began that is computed once more, as a backward pass does; None is a pass.
    """
    if place is None:
        slot_dropout.start_pass()
    else:
        slot_dropout.go_to(place)
    before = _active.set(slot_dropout)
    try:
        with _Dropping(slot_dropout):
            yield
    finally:
        _active.reset(before)


@contextmanager
def apart(slot_dropout: SlotDropout) -> Iterator[None]:
    """Drop, within the block, of rows that are no tokens, before which nothing stands."""
    before = slot_dropout.rows_before, slot_dropout.examples_before
    slot_dropout.rows_before = slot_dropout.examples_before = 0
    try:
        yield
    finally:
        slot_dropout.rows_before, slot_dropout.examples_before = before


class _Dropping(TorchFunctionMode):
    """Sees every call of PyTorch's functions within a block."""

    def __init__(self, slot_dropout: SlotDropout) -> None:
        super().__init__()
        self._slot_dropout = slot_dropout

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        call = self._dropout if func is nn.functional.dropout else func
        return call(*args, **kwargs) if kwargs else call(*args)

    def _dropout(self, tensor: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if not training:
            return tensor
        dropped = self._slot_dropout.drop(tensor, p)
        return tensor.copy_(dropped) if inplace else dropped


def _counted(first: int, count: int, device: torch.device) -> Tensor:
    return torch.arange(first, first + count, dtype=torch.int32, device=device)


def _signed(value: int) -> int:
    """The low 32 bits of a number as a signed one."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _mix(words: Tensor) -> Tensor:
    """The finaliser of MurmurHash3: every bit of a word changes half of all bits."""
    words = words ^ ((words >> 16) & 0xFFFF)
    words = words * _FIRST_FACTOR
    words = words ^ ((words >> 13) & 0x7FFFF)
    words = words * _SECOND_FACTOR
    return words ^ ((words >> 16) & 0xFFFF)
