"""One trial in training: its deltas, head, optimiser, data order and schedule."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from search_space.configuration import structures
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.whole_model.sparse import GATE_RATE_FACTOR
from trial_runner.packs.order import ExampleOrder
from trial_runner.requests import TrialRequest
from trial_runner.seeds import derived_seed
from trial_runner.training import Training


def learning_rate_factor(step: int, training: Training) -> float:
    """Share of the peak learning rate at a step: linear from 0 over the warm-up, then as the schedule says.

    Args:
        step: Index of the step, from 0.
        training: Of so many steps, with a warm-up and a schedule.
    """
    steps = training.steps
    warmup_steps = math.ceil(training.warmup_fraction * steps)
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    left = (steps - step) / (steps - warmup_steps)
    match training.schedule:
        case "linear":
            return left
        case "cosine":
            return (1 - math.cos(math.pi * left)) / 2
        case "constant":
            return 1.0


_FACTS = {"step": int, "loss_sum": float, "loss_count": int, "seconds": float}
"""What the state is beside tensors."""


@dataclass(slots=True, eq=False)
class TrialSlot:
    """State of one trial in a pack.

    Attributes:
        deltas: Its delta modules.
        head: Its task head.
        order: Of its training examples.
        optimizer: AdamW over both, one group per learning rate. The gates of diff pruning have one of their own, a
            fixed multiple of the side's, and no weight decay.
        step: Optimiser steps done.
        loss_sum: Sum of the training losses since the last reading.
        loss_count: How many they are.
        seconds: Compute time since the last reading.
    """

    request: TrialRequest
    deltas: DeltaSet
    head: nn.Module
    order: ExampleOrder
    optimizer: torch.optim.AdamW = field(init=False)
    step: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Make the optimiser."""
        attention, ffn, head = self.request.learning_rates
        gates = [] if self.deltas.whole is None else self.deltas.whole.gates
        apart = {id(gate) for gate in gates}
        sides = (
            (self.deltas.attention.parameters(), attention),
            (self.deltas.ffn.parameters(), ffn),
            (self.head.parameters(), head),
        )
        groups: list[dict[str, Any]] = [
            {"params": [one for one in parameters if id(one) not in apart], "peak": peak} for parameters, peak in sides
        ]
        groups.append({"params": gates, "peak": GATE_RATE_FACTOR * ffn, "weight_decay": 0.0})
        self.optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=0.0,
            weight_decay=self.request.plan.weight_decay,
            betas=self.request.plan.betas,
            fused=True,
        )
        self.deltas.eval()

    @property
    def structure(self) -> str:
        """Equal for trials of the same structures; any order of these is the same each time."""
        return " ".join(sorted(map(repr, structures(self.request.configuration))))

    @property
    def steps_to_reading(self) -> int:
        """Steps until it is measured next; 0 after the last."""
        return self.request.plan.steps_to_evaluation(self.step)

    @property
    def measured_next(self) -> tuple[str, bool, int | None]:
        """The split that it is measured on, whether it is at its last step, and the most examples of the split."""
        plan = self.request.plan
        is_final = self.step >= plan.steps
        return plan.measured_split, is_final, None if is_final else plan.rung_examples

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Everything that is trained."""
        return [*self.deltas.parameters(), *self.head.parameters()]

    def learning_rates(self, ahead: int = 0) -> list[float]:
        """Of attention, FFN and head at the next step, or some steps ahead of it."""
        factor = learning_rate_factor(self.step + ahead, self.request.plan)
        return [peak * factor for peak in self.request.learning_rates]

    @contextmanager
    def training(self) -> Iterator[None]:
        """Put the deltas into training mode, with randomness of the trial's own seed and step."""
        if self.deltas.whole is not None:
            self.deltas.whole.before_step(derived_seed(self.request.seed, "gates", self.step))
        self.deltas.train()
        try:
            yield
        finally:
            self.deltas.eval()

    def learn(self, loss: Tensor, *, is_first: bool) -> float:
        """Add the gradient of a part of a step's loss, of the first with the penalty of a change of the whole model.

        Returns:
            The part; where it is not finite, there is no gradient.
        """
        value = float(loss.detach())
        if is_first:
            self.optimizer.zero_grad(set_to_none=True)
        if math.isfinite(value):
            whole = self.deltas.whole if is_first else None
            penalty = None if whole is None else whole.penalty()
            total = loss if penalty is None else loss + penalty.to(loss.dtype)
            total.backward()  # type: ignore[no-untyped-call]
        return value

    def update(self, value: float) -> str | None:
        """One optimiser step by the gradients of a loss.

        Returns:
            Why the trial cannot go on, or None.
        """
        if not math.isfinite(value):
            return f"the training loss is {value} at step {self.step + 1}"
        plan = self.request.plan
        whole = self.deltas.whole
        largest = math.inf if plan.clip_norm is None else plan.clip_norm
        norm = float(nn.utils.clip_grad_norm_(self.parameters, largest))
        if not math.isfinite(norm):
            return f"the gradient norm is {norm} at step {self.step + 1}"
        factor = learning_rate_factor(self.step, plan)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * factor
        self.optimizer.step()
        self.step += 1
        self.count_loss(value)
        if whole is not None and whole.after_step(self.step, plan.steps):
            for parameter in whole.parameters():
                self.optimizer.state.pop(parameter, None)
        return None

    def count_loss(self, value: float) -> None:
        """Note the training loss of a step."""
        self.loss_sum += value
        self.loss_count += 1

    def moments(self, parameter: nn.Parameter) -> tuple[Tensor, Tensor] | None:
        """First and second moment of a parameter; None before the first step."""
        state = self.optimizer.state.get(parameter)
        return (state["exp_avg"], state["exp_avg_sq"]) if state else None

    def set_moments(self, parameter: nn.Parameter, first: Tensor, second: Tensor) -> None:
        """Take over a parameter's moments after `step` steps, copied."""
        state = self.optimizer.state[parameter]
        state["step"] = torch.tensor(float(self.step), device=parameter.device)
        state["exp_avg"], state["exp_avg_sq"] = first.clone(), second.clone()

    def own_memory(self) -> None:
        """Let no parameter lie in a larger tensor, and none keep a gradient."""
        for parameter in self.parameters:
            parameter.grad = None
            if parameter.data.untyped_storage().nbytes() > parameter.data.nbytes:
                parameter.data = parameter.data.clone()

    def take_means(self) -> tuple[float, float]:
        """Mean training loss and seconds since the last call."""
        means = (self.loss_sum / max(1, self.loss_count), self.seconds)
        self.loss_sum, self.loss_count, self.seconds = 0.0, 0, 0.0
        return means

    def facts(self) -> dict[str, Any]:
        """The part of the state that is not tensors."""
        return {name: getattr(self, name) for name in _FACTS}

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor of the state, copied: deltas, head, their buffers and the optimiser's moments."""
        state = self._state()
        moments = {
            f"optimizer.{key}.{name}": moment
            for name, one in state.items()
            for key, moment in self.optimizer.state.get(one, {}).items()
        }
        return {name: tensor.detach().cpu().clone() for name, tensor in (state | moments).items()}

    def load(self, facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Take over a state that `facts` and `tensors` returned.

        Raises:
            KeyError: If a tensor is missing.
            ValueError: If one has another shape.
        """
        held = self._state()
        for name, tensor in held.items():
            if tensors[name].shape != tensor.shape:
                raise ValueError(f"{name} has shape {tuple(tensors[name].shape)}, not {tuple(tensor.shape)}")
        moments = [name for name in tensors if name.startswith("optimizer.")]
        with torch.no_grad():
            for name, tensor in held.items():
                tensor.copy_(tensors[name])
        for moment in moments:
            _, key, name = moment.split(".", 2)
            parameter = held[name]
            self.optimizer.state[parameter][key] = tensors[moment].to(parameter.device).clone()
        for name, kind in _FACTS.items():
            setattr(self, name, kind(facts[name]))

    def _state(self) -> dict[str, Tensor]:
        """Parameters and buffers of the state by name."""
        return {
            f"{prefix if isinstance(one, nn.Parameter) else f'buffers.{prefix}'}.{name}": one
            for prefix, module in (("deltas", self.deltas), ("head", self.head))
            for name, one in module.state_dict(keep_vars=True).items()
        }
