"""Dropout in a pack: a slot's mask depends only on its key and on the position of an element.

Whether an element is dropped depends on a hash of the slot's key, the number of the dropout call in the pass, and the
element's position. So a slot's masks equal those of the same trial alone, for any number of slots and any padding of a
batch. There is no shared generator state. All axes but the last are hashed on smaller tensors. Only one round of mixing
is as large as the tensor itself, and every word of it decides two elements.
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
    """Dropout for tensors whose first axis is K equal blocks of rows, one per slot.

    It does not synchronise and has no generator, so a CUDA graph of a pass uses the keys' values at replay.

    Args:
        keys: Key of each slot at this step, ``(K,)``; the low 32 bits are used.
        of_low_rank: Dropped share of the inputs of low-rank maps.
        examples_before: Examples of each slot's batch that are computed before these, in another pass.

    Attributes:
        rows_before: Rows before the tokens along the last axis but one, as those of prompts; 0 at the start of a pass.
            They are counted from their right end, so they may be padded on the left.
    """

    def __init__(self, keys: Tensor, *, of_low_rank: float = 0.0, examples_before: int = 0) -> None:
        """Start a pass."""
        self._keys = keys
        self.examples_before = examples_before
        self._of_low_rank = of_low_rank
        self.start_pass()

    @property
    def place(self) -> tuple[int, int]:
        """Position in the pass: number of calls so far, and `rows_before`."""
        return self._calls, self.rows_before

    @property
    def slots(self) -> int:
        """Number of slots K."""
        return len(self._keys)

    def go_to(self, place: tuple[int, int]) -> None:
        """Continue from a position of the pass."""
        self._calls, self.rows_before = place

    def start_pass(self) -> None:
        """Reset the number of calls; the same keys then drop the same elements."""
        self.rows_before = 0
        self._calls = 0
        self._hashed: dict[tuple[tuple[int, ...], int, int, int | None], Tensor] = {}
        self._columns: dict[tuple[int, int, int], tuple[Tensor, Tensor]] = {}

    def drop(self, tensor: Tensor, p: float, columns_before: int = 0, prompt_columns: int = 0) -> Tensor:
        """Set each element to 0 with probability p, and divide the others by 1 - p.

        Args:
            tensor: ``(K B, ...)``; attention weights are ``(K B, H, T, S)``.
            p: Probability, rounded to a multiple of 2^-16.
            columns_before: Leading columns of prefixes along the last axis. They are counted from their right end, so
                they may be padded on the left.
            prompt_columns: Columns of prompts between those of prefixes and tokens, counted in the same way.

        Raises:
            ValueError: If p is no probability, or the rows are no equal blocks.
        """
        if not 0 <= p <= 1:
            raise ValueError(f"the share that is dropped must be between 0 and 1; got {p}.")
        self._calls += 1
        return self._dropped(tensor, p, (columns_before, prompt_columns), self._calls, None)

    def drop_low_rank_input(self, rows: Tensor, index: Tensor, number: int) -> Tensor:
        """Drop elements of the input of some slots' low-rank maps.

        The mask depends on the number of their position and not on the number of calls. So it is independent of other
        slots and of the backbone's dropout.

        Args:
            rows: ``(G, B, T, D)`` or ``(G, B, T, H, D)``.
            index: Slots of the rows, ``(G,)``.
            number: Number of their position in the model.
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
            # a boolean mask takes least memory, but a CPU multiplies floats far faster
            least = dropped - _SHARES // 2
            is_gpu = has_gpu_kernels(tensor)
            kept = numbers >= least if is_gpu else numbers.ge_(least).to(tensor.dtype)
        scaled = tensor * (1 / (1 - p))
        return torch.where(kept, scaled, 0.0) if is_gpu else scaled * kept

    def _numbers(self, rows: Tensor, shape: torch.Size, columns_before: int, prompt_columns: int) -> Tensor:
        """Return a uniform 16-bit number for each element of a tensor of a shape; possibly strided."""
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
        """Return a hash of each position along all axes but the last one, for all slots or some."""
        key = (tuple(shape), self.rows_before, self.examples_before, None if index is None else id(index))
        if key not in self._hashed:
            own = self._keys if index is None else self._keys.index_select(0, index)
            slots, device = len(own), own.device
            if shape[0] % slots:
                raise ValueError(f"the rows must be {slots} equal blocks, one for each slot; got {shape[0]} rows.")
            keys, first = _mix(own.to(torch.int32)).unsqueeze(1), _AXIS + self.examples_before
            hashed = _mix(keys ^ _mix(_counted(first, shape[0] // slots, device))).flatten()  # (K B,)
            for axis, size in enumerate(shape[1:], start=2):
                first = axis * _AXIS - (self.rows_before if axis == len(shape) else 0)
                hashed = _mix(hashed.unsqueeze(-1) ^ _mix(_counted(first, size, device)))
            self._hashed[key] = hashed
        return self._hashed[key]

    def _pairs_hashed(self, columns_before: int, own: int, prompt_columns: int) -> tuple[Tensor, Tensor]:
        """Return an odd factor and a term for every two columns."""
        key = (columns_before, own, prompt_columns)
        if key not in self._columns:
            device = self._keys.device
            first = -prompt_columns // 2
            pairs = _counted(first, -((prompt_columns - own) // 2) - first, device)
            if columns_before:
                before = -(-columns_before // 2)
                pairs = torch.cat([_counted(_PREFIX_END - before, before, device), pairs])
            hashed = _mix(pairs)
            self._columns[key] = (hashed | 1, _mix(hashed + 1))
        return self._columns[key]


_active: ContextVar[SlotDropout | None] = ContextVar("active_slot_dropout", default=None)


def active_dropout() -> SlotDropout | None:
    """Return the active dropout; None outside of `dropping`."""
    return _active.get()


@contextmanager
def dropping(slot_dropout: SlotDropout, place: tuple[int, int] | None = None) -> Iterator[None]:
    """Replace every `torch.nn.functional.dropout` inside the context by a pack's dropout, also in `torch.nn.Dropout`.

    Other kinds of dropout (of whole channels, alpha, inside PyTorch's fused attention) stay as they are.

    Args:
        place: Start of a part of a pass that is recomputed, as in a backward pass; None for a whole pass.
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
def at_zero_offset(slot_dropout: SlotDropout) -> Iterator[None]:
    """Drop elements of rows that are not tokens inside the context; no rows or examples precede them."""
    before = slot_dropout.rows_before, slot_dropout.examples_before
    slot_dropout.rows_before = slot_dropout.examples_before = 0
    try:
        yield
    finally:
        slot_dropout.rows_before, slot_dropout.examples_before = before


class _Dropping(TorchFunctionMode):
    """Interceptor of PyTorch's function calls inside a context."""

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
    """Return the low 32 bits of a number as a signed integer."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _mix(words: Tensor) -> Tensor:
    """Apply the finaliser of MurmurHash3: every input bit changes half of the output bits on average."""
    words = words ^ ((words >> 16) & 0xFFFF)
    words = words * _FIRST_FACTOR
    words = words ^ ((words >> 13) & 0x7FFFF)
    words = words * _SECOND_FACTOR
    return words ^ ((words >> 16) & 0xFFFF)
