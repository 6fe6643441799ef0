"""The optimiser of a lane against one `torch.optim.AdamW` with `clip_grad_norm_` per slot, in float64 within 1e-12."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from support.operations import Operations
from support.packing_cases import WAITING
from torch import Tensor, nn

from trial_runner.packs import optimizer as module
from trial_runner.packs.optimizer import Owned, PackAdamW
from trial_runner.training import Training

SLOTS = 4
STEPS = 50
RELATIVE = 1e-12


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A parameter: the shape of what one slot owns, the slots, and the side."""

    shape: tuple[int, ...]
    places: tuple[int, ...]
    side: int


# Stacked and single, of rank 0 to 3, with whole rows of 64 and without; slot 3 owns fewer than slot 1.
LAYOUTS = (
    Layout(shape=(5, 4), places=(0, 1, 2), side=0),
    Layout(shape=(320,), places=(2, 0, 1), side=0),
    Layout(shape=(7,), places=(1,), side=0),
    Layout(shape=(2, 3, 2), places=(3,), side=1),
    Layout(shape=(), places=(0, 2), side=1),
    Layout(shape=(16, 8), places=(3, 1), side=1),
    Layout(shape=(), places=(1,), side=2),
    Layout(shape=(40, 9), places=(0, 1, 2, 3), side=2),
)
PLANS = (
    Training(betas=(0.9, 0.999), weight_decay=0.1, clip_norm=1.0),
    Training(betas=(0.8, 0.99), weight_decay=0.3, clip_norm=None),
    Training(betas=(0.9, 0.98), weight_decay=0.0, clip_norm=30.0),
    Training(betas=(0.9, 0.999), weight_decay=0.05, clip_norm=0.2),
)
DONE = (0, 0, 7, 0)
PEAKS = torch.tensor(
    [[1e-3, 2e-2, 3e-3], [5e-2, 1e-4, 2e-3], [3e-3, 4e-3, 0.0], [1e-1, 1e-2, 6e-3]], dtype=torch.float64
)


def rates_at(step: int) -> Tensor:
    return PEAKS * (1 - step / (2 * STEPS))


def drawn(name: str, index: int, shape: Sequence[int], scale: float = 1.0) -> Tensor:
    seed = sum(ord(letter) for letter in name) * 1000 + index
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale


def gradient_at(index: int, layout: Layout, step: int) -> Tensor:
    """``(G, ...)``; of a size that changes, so that some steps are clipped and others are not."""
    return drawn("gradient", 100 * step + index, (len(layout.places), *layout.shape), scale=0.02 * (1 + step % 5) ** 3)


@dataclass
class Packed:
    """A lane's parameters and optimiser."""

    copies: int = 1
    layouts: Sequence[Layout] = LAYOUTS
    parameters: list[nn.Parameter] = field(init=False)
    optimizer: PackAdamW = field(init=False)

    def __post_init__(self) -> None:
        self.parameters = []
        for index, layout in enumerate(self.layouts):
            stacked = drawn("start", index, (len(layout.places), *layout.shape))
            self.parameters.append(nn.Parameter(stacked[0] if len(layout.places) == 1 else stacked))
        owned = [
            Owned(parameter=parameter, places=layout.places, side=layout.side)
            for parameter, layout in zip(self.parameters, self.layouts, strict=True)
        ]
        self.optimizer = PackAdamW(owned, [*zip(PLANS, DONE, strict=True)] * self.copies)
        for index, (parameter, layout) in enumerate(zip(self.parameters, self.layouts, strict=True)):
            for held, value in zip(self.optimizer.moments(parameter), given_moments(index, layout), strict=True):
                held.copy_(value.view(held.shape))

    def entries(self, tensors: Sequence[Tensor], slot: int) -> dict[int, Tensor]:
        """Return the slot's parts of one tensor per parameter, by the parameter's index."""
        return {
            index: tensor.view(len(layout.places), *layout.shape)[layout.places.index(slot)]
            for index, (tensor, layout) in enumerate(zip(tensors, self.layouts, strict=True))
            if slot in layout.places
        }

    def state(self, slot: int) -> list[Tensor]:
        """Return copies of the slot's parameters, moments and steps."""
        held = [[parameter.detach() for parameter in self.parameters]]
        held += [list(some) for some in zip(*map(self.optimizer.moments, self.parameters), strict=True)]
        owned = [entry.clone() for some in held for entry in self.entries(some, slot).values()]
        return [*owned, self.optimizer.steps[slot].clone()]

    def set_gradients(self, step: int) -> None:
        self.optimizer.zero_grad()
        for index, (parameter, layout) in enumerate(zip(self.parameters, self.layouts, strict=True)):
            gradient_of(parameter).add_(gradient_at(index, layout, step).view(parameter.shape))

    def step(self, step: int, rates: Tensor | None = None, losses: Tensor | None = None) -> Tensor:
        self.set_gradients(step)
        sound = torch.zeros(SLOTS * self.copies, dtype=torch.float64)
        return self.optimizer.update(rates_at(step) if rates is None else rates, sound if losses is None else losses)


def gradient_of(parameter: nn.Parameter) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


def given_moments(index: int, layout: Layout) -> tuple[Tensor, Tensor]:
    """Return initial moments ``(G, ...)``, nonzero for the slot that has steps behind it."""
    shape = (len(layout.places), *layout.shape)
    first, second = drawn("first", index, shape, scale=0.1), drawn("second", index, shape, scale=0.1).square()
    fresh = torch.tensor([DONE[place % SLOTS] == 0 for place in layout.places])
    first[fresh], second[fresh] = 0.0, 0.0
    return first, second


@dataclass
class Alone:
    """One slot's parameters, with the optimiser of torch."""

    slot: int
    parameters: dict[int, nn.Parameter] = field(init=False)
    optimizer: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        plan = PLANS[self.slot]
        self.parameters = {}
        for index, layout in enumerate(LAYOUTS):
            if self.slot in layout.places:
                stacked = drawn("start", index, (len(layout.places), *layout.shape))
                self.parameters[index] = nn.Parameter(stacked[layout.places.index(self.slot)].clone())
        groups = [{"params": [parameter]} for parameter in self.parameters.values()]
        self.optimizer = torch.optim.AdamW(
            groups, lr=0.0, betas=plan.betas, weight_decay=plan.weight_decay, foreach=False
        )
        for index, parameter in self.parameters.items():
            first, second = (some[self.entry(index)] for some in given_moments(index, LAYOUTS[index]))
            state = {"step": torch.tensor(float(DONE[self.slot])), "exp_avg": first, "exp_avg_sq": second}
            self.optimizer.state[parameter] = {name: value.clone() for name, value in state.items()}

    def entry(self, index: int) -> int:
        return LAYOUTS[index].places.index(self.slot)

    def step(self, step: int) -> Tensor:
        for index, parameter in self.parameters.items():
            parameter.grad = gradient_at(index, LAYOUTS[index], step)[self.entry(index)]
        norm = nn.utils.clip_grad_norm_(list(self.parameters.values()), PLANS[self.slot].clip_norm or math.inf)
        for group, index in zip(self.optimizer.param_groups, self.parameters, strict=True):
            group["lr"] = float(rates_at(step)[self.slot, LAYOUTS[index].side])
        self.optimizer.step()
        return norm

    def state(self) -> list[Tensor]:
        """Return the state in the order of `Packed.state`."""
        states = [self.optimizer.state[parameter] for parameter in self.parameters.values()]
        moments = [one[name] for name in ("exp_avg", "exp_avg_sq") for one in states]
        return [*(one.detach() for one in self.parameters.values()), *moments, states[0]["step"].double()]


def assert_equal(packed: Packed, alone: Sequence[Alone]) -> None:
    for slot, one in enumerate(alone):
        torch.testing.assert_close(packed.state(slot), one.state(), rtol=RELATIVE, atol=1e-15)


def assert_identical(one: Sequence[Tensor], two: Sequence[Tensor]) -> None:
    assert len(one) == len(two)
    for first, second in zip(one, two, strict=True):
        assert torch.equal(first.view(torch.int64), second.view(torch.int64))  # bits, so that NaN equals NaN


@pytest.mark.parametrize("block_elements", [2**16, 200])
def test_every_slot_moves_as_it_does_with_an_optimiser_of_its_own(
    block_elements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CPU_BLOCK_ELEMENTS", block_elements)
    packed, alone = Packed(), [Alone(slot) for slot in range(SLOTS)]
    clipped = set()
    for step in range(STEPS):
        norms = packed.step(step)
        expected = torch.stack([one.step(step) for one in alone])
        torch.testing.assert_close(norms, expected, rtol=RELATIVE, atol=0.0)
        clipped |= {(slot, bool(norm > (PLANS[slot].clip_norm or math.inf))) for slot, norm in enumerate(expected)}
        if step % 7 == 0:
            assert_equal(packed, alone)
    assert_equal(packed, alone)
    assert clipped >= {(0, True), (0, False), (2, True), (2, False), (3, True), (1, False)}


FAULTY = 1


FAULTS = {
    "rate 0": {"rate": 0.0},
    "rate infinite": {"rate": math.inf},
    "rate NaN": {"rate": math.nan},
    "loss NaN": {"loss": math.nan},
    "loss infinite": {"loss": -math.inf},
    "gradient NaN": {"gradient": math.nan},
    "gradient infinite": {"gradient": math.inf},
    "gradient overflows": {"gradient": 1e300},
}


def step_with(
    packed: Packed, number: int, *, rate: float | None = None, loss: float = 0.0, gradient: float | None = None
) -> None:
    """Make a step with a fault of one slot."""
    packed.set_gradients(number)
    rates, losses = rates_at(number), torch.zeros(SLOTS)
    losses[FAULTY] = loss
    if rate is not None:
        rates[FAULTY] = rate
    if gradient is not None:
        gradients = [gradient_of(parameter) for parameter in packed.parameters]
        list(packed.entries(gradients, FAULTY).values())[-1][0, 0] = gradient
    packed.optimizer.update(rates, losses)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_one_slot_leaves_the_others_bit_identical(fault: str) -> None:
    healthy, faulty = Packed(), Packed()
    for step in range(6):
        healthy.step(step)
        step_with(faulty, step, **FAULTS[fault])
        for slot in range(SLOTS):
            if slot != FAULTY:
                assert_identical(healthy.state(slot), faulty.state(slot))
    assert any(not torch.equal(one, two) for one, two in zip(healthy.state(FAULTY), faulty.state(FAULTY), strict=True))


@pytest.mark.parametrize("fault", [name for name in FAULTS if not name.startswith("rate")])
def test_non_finite_slot_keeps_its_weights_and_continues(fault: str) -> None:
    packed = Packed()
    packed.step(0)
    before = packed.state(FAULTY)
    step_with(packed, 1, **FAULTS[fault])
    assert_identical(packed.state(FAULTY), before)
    packed.step(2)
    assert packed.optimizer.steps.tolist() == [3, 2, 10, 3]
    never_faulty = Packed()
    never_faulty.step(0)
    never_faulty.step(2)
    assert_identical(packed.state(FAULTY), never_faulty.state(FAULTY))


def test_padding_stays_zero_under_weight_decay() -> None:
    parameter = nn.Parameter(torch.ones(2, 6, 4, dtype=torch.float64))
    with torch.no_grad():
        parameter[1, :, 2:] = 0.0  # the second slot is two columns narrower
    packed = PackAdamW([Owned(parameter=parameter, places=(0, 1), side=0)], [(Training(weight_decay=0.1), 0)] * 2)
    for step in range(20):
        packed.zero_grad()
        gradient_of(parameter).add_(drawn("padded", step, (2, 6, 4)))
        gradient_of(parameter)[1, :, 2:] = 0.0
        packed.update(torch.full((2, 3), 0.1), torch.zeros(2))
    for tensor in (parameter.detach(), *packed.moments(parameter)):
        assert torch.equal(tensor[1, :, 2:], torch.zeros(6, 2, dtype=torch.float64))
        assert bool((tensor[0] != 0).all())
        assert bool((tensor[1, :, :2] != 0).all())


def operations_of_an_update(copies: int) -> list[Any]:
    """Return the operations of a lane in which every slot of the layouts is there several times."""
    layouts = [
        Layout(
            shape=one.shape,
            places=tuple(place + SLOTS * copy for copy in range(copies) for place in one.places),
            side=one.side,
        )
        for one in LAYOUTS
        if len(one.places) > 1
    ]
    packed = Packed(copies=copies, layouts=layouts).optimizer
    rates, losses = PEAKS.repeat(copies, 1), torch.zeros(SLOTS * copies)
    with Operations() as operations:
        packed.update(rates, losses)
    return operations.done


def test_optimizer_operations_never_synchronise() -> None:
    few, many = operations_of_an_update(1), operations_of_an_update(8)
    assert few == many
    assert len([operation for operation in few if not operation.is_view]) < 70
    assert not {operation.overloadpacket.__name__ for operation in few} & WAITING


@pytest.mark.parametrize("block_elements", [2**16, 50])
def test_no_memory_is_taken_once_something_has_changed(block_elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CPU_BLOCK_ELEMENTS", block_elements)
    operations = operations_of_an_update(1)
    first_change = operations.index(torch.ops.aten.where.self_out)
    for operation in operations[first_change:]:
        schema = operation._schema
        writes = any(argument.alias_info is not None for argument in schema.arguments)
        assert writes, f"{schema} makes a new tensor"
