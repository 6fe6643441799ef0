"""AdamW for all slots of a lane at once, each with its own learning rates, betas, clipping and step count.

All parameters lie in one vector, their gradients and moments in others like it. Each row belongs to one slot and one
side, so the factors of these are one column beside the rows. The number of operations depends neither on the slots nor
on the parameters. Rows have 64 elements if all that a slot owns of a parameter can be cut into these, else one. Shapes:
`P` elements, `N` rows, `K` slots, `S` sides (attention, FFN and head), `G` slots that share a stacked parameter.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trial_runner.packed.kernels import has_gpu_kernels
from trial_runner.training import Training

_SIDES = 3
_ROW_LENGTHS = (64, 1)
CPU_BLOCK_ELEMENTS = 2**16  # updated in one go on the CPU, so that all that is needed stays in its cache
_EPSILON = 1e-8
_CLIP_EPSILON = 1e-6  # as in torch.nn.utils.clip_grad_norm_


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Owned:
    """Parameter and the slots it belongs to.

    Attributes:
        parameter: ``(G, ...)`` if G slots own one entry of it each; of any shape if one slot owns it all.
        places: Places of these slots in the lane; one or G.
        side: Index of its learning rate in a slot: 0 of attention, 1 of the FFN, 2 of the head.
    """

    parameter: nn.Parameter
    places: tuple[int, ...]
    side: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParameterBlock:
    """Part of the vector that is updated by one operation.

    Attributes:
        start: First element.
        row: First row.
        rows: Number of rows.
        length: Number of elements of a row.
    """

    start: int
    row: int
    rows: int
    length: int

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.rows * self.length

    @property
    def at_rows(self) -> slice:
        """Slice of its rows."""
        return slice(self.row, self.row + self.rows)

    def of(self, vector: Tensor) -> Tensor:
        """Return its part of a vector, ``(rows, length)``."""
        return vector[self.start : self.start + self.elements].view(self.rows, self.length)


class PackAdamW:
    """`torch.optim.AdamW` after `torch.nn.utils.clip_grad_norm_`, for every slot by itself, with the same numbers.

    No slot's values enter another's, whatever they are. Nothing waits for the device. The gradient of a parameter that
    no loss depends on counts as zero.

    Attributes:
        steps: Number of updates of each slot so far, ``(K,)``, float64.

    Args:
        owned: All parameters, each once, of one dtype on one device. Their data and their gradients become views of
            one vector each, so gradients must be cleared with `zero_grad` here, never set to None.
        slots: Training of each slot, and the number of updates it has had already.
    """

    def __init__(self, owned: Sequence[Owned], slots: Sequence[tuple[Training, int]]) -> None:
        """Lay out the parameters, those with rows of one length side by side."""
        ordered = sorted(owned, key=_row_length, reverse=True)
        first = ordered[0].parameter
        self._data = torch.cat([one.parameter.detach().flatten() for one in ordered])  # (P,)
        self._gradient = torch.zeros_like(self._data)
        self._first_moment = torch.zeros_like(self._data)
        self._second_moment = torch.zeros_like(self._data)
        owner = np.concatenate([_owner_of_rows(one) for one in ordered])
        self._owner = torch.from_numpy(owner).to(first.device)  # (N,) slot * S + side
        rows_of = _rows_of(owner // _SIDES, len(slots))
        self._rows_of = torch.from_numpy(rows_of).to(first.device)  # (K, most)
        most = len(self._data) if has_gpu_kernels(first) else CPU_BLOCK_ELEMENTS
        self._blocks = list(_blocks(ordered, most))
        self._held = {id(one.parameter): one.parameter for one in ordered}
        self._starts: dict[int, int] = {}
        start = 0
        for parameter in self._held.values():
            self._starts[id(parameter)] = start
            start += parameter.numel()
            parameter.data = self._view(parameter, self._data)
            parameter.grad = self._view(parameter, self._gradient)
        vectors = (self._data, self._first_moment, self._second_moment)
        self._old = [[block.of(vector) for vector in vectors] for block in self._blocks]
        self._gradients = [block.of(self._gradient) for block in self._blocks]
        self._betas, self._decays, self._clips, self.steps = self._columns_of(slots)

    def _view(self, parameter: nn.Parameter, vector: Tensor) -> Tensor:
        """Return a parameter's part of a vector, in its shape."""
        start = self._starts[id(parameter)]
        return vector[start : start + parameter.numel()].view(parameter.shape)

    def _columns_of(self, slots: Sequence[tuple[Training, int]]) -> list[Tensor]:
        """Return betas ``(K, 2)``, weight decays ``(K, 1)``, clips and steps ``(K,)``."""
        columns: tuple[Sequence[object], ...] = (
            [plan.betas for plan, _ in slots],
            [[plan.weight_decay] for plan, _ in slots],
            [math.inf if plan.clip_norm is None else plan.clip_norm for plan, _ in slots],
            [steps for _, steps in slots],
        )
        return [torch.tensor(values, dtype=torch.float64, device=self._data.device) for values in columns]

    @torch.no_grad()
    def restart(self, slots: Sequence[tuple[Training, int]]) -> None:
        """Reset to other slots in the same places, whose parameters are in place: no tensor moves."""
        for held, new in zip(
            (self._betas, self._decays, self._clips, self.steps), self._columns_of(slots), strict=True
        ):
            held.copy_(new)
        for vector in (self._gradient, self._first_moment, self._second_moment):
            vector.zero_()

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        self._gradient.zero_()

    def moments(self, parameter: nn.Parameter) -> tuple[Tensor, Tensor]:
        """Return views of a parameter's first and second moment, in its shape; they may be written to.

        Raises:
            KeyError: If the parameter is not among those given.
        """
        return self._view(parameter, self._first_moment), self._view(parameter, self._second_moment)

    @torch.no_grad()
    def update(self, learning_rates: Tensor, losses: Tensor) -> Tensor:
        """Update every slot whose loss and gradient norm are finite; the others stay the same bit for bit.

        All memory is allocated before anything is changed, so a step that runs out of it has no effect.

        Args:
            learning_rates: Rates of each slot's sides at this step, ``(K, S)``.
            losses: Loss of each slot, ``(K,)``.

        Returns:
            Global norm of each slot's gradient before clipping, ``(K,)``.
        """
        norms = self._norms()
        sound = torch.isfinite(losses) & torch.isfinite(norms)  # (K,)
        steps = self.steps + 1
        columns = self._columns(learning_rates.to(self.steps), norms, steps)
        is_sound = sound.repeat_interleave(_SIDES).index_select(0, self._owner).unsqueeze(1)  # (N, 1)
        scratch = self._data.new_empty(5, max(block.elements for block in self._blocks))
        for block, old, gradient in zip(self._blocks, self._old, self._gradients, strict=True):
            room = scratch[:, : block.elements].view(5, block.rows, block.length)
            new = _stepped(old, gradient, columns[:, block.at_rows], room)
            for held, computed in zip(old, new, strict=True):
                torch.where(is_sound[block.at_rows], computed, held, out=held)
        torch.where(sound, steps, self.steps, out=self.steps)
        return norms

    def _norms(self) -> Tensor:
        """Return the norm of the norms of each slot's rows, ``(K,)``; sums in a fixed order on every device."""
        of_rows = [torch.linalg.vector_norm(gradient, dim=1) for gradient in self._gradients]
        padded = torch.cat([*of_rows, self._gradient.new_zeros(1)])  # (N + 1,)
        norms: Tensor = torch.linalg.vector_norm(padded[self._rows_of], dim=1)
        return norms

    def _columns(self, rates: Tensor, norms: Tensor, steps: Tensor) -> Tensor:
        """Return the factors that are common to the elements of a row, for `_stepped`: ``(7, N, 1)``."""
        corrections = 1 - self._betas ** steps.unsqueeze(1)  # (K, 2)
        factor = (self._clips.to(norms.dtype) / (norms + _CLIP_EPSILON)).clamp(max=1)  # (K,)
        # An infinite rate times no decay would be NaN.
        kept = (1 - rates * self._decays).masked_fill(self._decays == 0, 1)  # (K, S)
        of_slots = (factor, 1 - self._betas[:, 0], self._betas[:, 1], 1 - self._betas[:, 1], corrections[:, 1].sqrt())
        of_sides = (kept, -rates / corrections[:, :1])
        table = torch.stack([*(one.unsqueeze(1).expand_as(kept) for one in of_slots), *of_sides])  # (7, K, S)
        return table.to(self._data.dtype).flatten(1).index_select(1, self._owner).unsqueeze(2)


def _stepped(old: Sequence[Tensor], gradient: Tensor, columns: Tensor, scratch: Tensor) -> tuple[Tensor, ...]:
    """Compute data and moments after a step in ``scratch``, operation by operation as `torch.optim.AdamW` does.

    Args:
        old: Data, first and second moment, ``(N, length)`` each.
        gradient: ``(N, length)``.
        columns: Factors of `PackAdamW._columns`.
        scratch: ``(5, N, length)``.
    """
    factor, first_weight, second_decay, second_weight, spread, kept, negative_size = columns
    data, first, second, clipped, change = scratch
    torch.mul(gradient, factor, out=clipped)
    torch.lerp(old[1], clipped, first_weight, out=first)
    torch.mul(old[2], second_decay, out=second)
    torch.mul(clipped, second_weight, out=change)
    second.addcmul_(change, clipped)
    divisor = torch.sqrt(second, out=clipped).div_(spread).add_(_EPSILON)
    torch.mul(first, negative_size, out=change)
    torch.mul(old[0], kept, out=data).addcdiv_(change, divisor)
    return data, first, second


def _row_length(one: Owned) -> int:
    """Return the number of elements of a row of a parameter."""
    segment = one.parameter.numel() // len(one.places)
    return next(length for length in _ROW_LENGTHS if segment % length == 0)


def _owner_of_rows(one: Owned) -> NDArray[np.int64]:
    """Return slot * S + side for each row of a parameter."""
    rows = one.parameter.numel() // len(one.places) // _row_length(one)
    return np.repeat(np.array(one.places, dtype=np.int64) * _SIDES + one.side, rows)


def _blocks(ordered: Sequence[Owned], most: int) -> Iterator[_ParameterBlock]:
    """Yield the vector in blocks of rows of one length, of at most so many elements."""
    start = row = 0
    for length, group in itertools.groupby(ordered, _row_length):
        left = sum(one.parameter.numel() for one in group) // length
        while left:
            rows = min(left, max(1, most // length))
            yield _ParameterBlock(start=start, row=row, rows=rows, length=length)
            start, row, left = start + rows * length, row + rows, left - rows


def _rows_of(slot_of_row: NDArray[np.int64], slots: int) -> NDArray[np.int64]:
    """Return the indices of each slot's rows, ``(K, most)``, padded with the number of rows."""
    counts = np.bincount(slot_of_row, minlength=slots)
    padded = np.full((slots, int(counts.max())), len(slot_of_row), dtype=np.int64)
    ends = np.cumsum(counts)[:-1]
    for slot, rows in enumerate(np.split(np.argsort(slot_of_row, kind="stable"), ends)):
        padded[slot, : len(rows)] = rows
    return padded
