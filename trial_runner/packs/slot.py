"""Trial in training: its deltas, head, optimizer, data order and schedule."""

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
    """Return the share of the peak learning rate at a step: linear from 0 over the warm-up, then by the schedule.

    Args:
        step: Index of the step, from 0.
        training: Training, with its number of steps, warm-up and schedule.
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
"""Parts of the state that are not tensors."""


@dataclass(slots=True, eq=False)
class TrialSlot:
    """State of one trial in a pack.

    Attributes:
        deltas: Its delta modules.
        head: Its task head.
        order: Order of its training examples.
        optimizer: AdamW over both, one group per learning rate. The gates of diff pruning have one of their own, a
            fixed multiple of the side's, and no weight decay.
        step: Number of optimizer steps done.
        loss_sum: Sum of the training losses since the last reading.
        loss_count: Number of these losses.
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
        """Build the optimizer."""
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
        """Key that is equal for trials of the same structures, and sorts them in a fixed order."""
        return " ".join(sorted(map(repr, structures(self.request.configuration))))

    @property
    def steps_to_reading(self) -> int:
        """Number of steps to its next measurement; 0 after the last."""
        return self.request.plan.steps_to_evaluation(self.step)

    @property
    def measured_next(self) -> tuple[str, bool, int | None]:
        """Split of its next measurement, whether that is the last one, and the largest number of examples."""
        plan = self.request.plan
        is_final = self.step >= plan.steps
        return plan.measured_split, is_final, None if is_final else plan.rung_examples

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Trained parameters."""
        return [*self.deltas.parameters(), *self.head.parameters()]

    def learning_rates(self, ahead: int = 0) -> list[float]:
        """Return the rates of attention, FFN and head at the next step, or some steps ahead of it."""
        factor = learning_rate_factor(self.step + ahead, self.request.plan)
        return [peak * factor for peak in self.request.learning_rates]

    @contextmanager
    def training(self) -> Iterator[None]:
        """Put the deltas into training mode within the context, with randomness of the trial's own seed and step."""
        if self.deltas.whole is not None:
            self.deltas.whole.before_step(derived_seed(self.request.seed, "gates", self.step))
        self.deltas.train()
        try:
            yield
        finally:
            self.deltas.eval()

    def learn(self, loss: Tensor, *, is_first: bool) -> float:
        """Accumulate the gradient of a part of a step's loss; the first includes the penalty of a whole-model change.

        Returns:
            Loss of the part; if it is not finite, there is no gradient.
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
        """Take one optimizer step by the gradients of a loss.

        Returns:
            Reason of the trial's failure, or None.
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
        """Record the training loss of a step."""
        self.loss_sum += value
        self.loss_count += 1

    def moments(self, parameter: nn.Parameter) -> tuple[Tensor, Tensor] | None:
        """Return first and second moment of a parameter; None before the first step."""
        state = self.optimizer.state.get(parameter)
        return (state["exp_avg"], state["exp_avg_sq"]) if state else None

    def set_moments(self, parameter: nn.Parameter, first: Tensor, second: Tensor) -> None:
        """Set a parameter's moments after `step` steps to copies."""
        state = self.optimizer.state[parameter]
        state["step"] = torch.tensor(float(self.step), device=parameter.device)
        state["exp_avg"], state["exp_avg_sq"] = first.clone(), second.clone()

    def own_memory(self) -> None:
        """Copy parameters out of larger tensors, and release gradients."""
        for parameter in self.parameters:
            parameter.grad = None
            if parameter.data.untyped_storage().nbytes() > parameter.data.nbytes:
                parameter.data = parameter.data.clone()

    def take_means(self) -> tuple[float, float]:
        """Return mean training loss and seconds since the last call."""
        means = (self.loss_sum / max(1, self.loss_count), self.seconds)
        self.loss_sum, self.loss_count, self.seconds = 0.0, 0, 0.0
        return means

    def facts(self) -> dict[str, Any]:
        """Return the part of the state that is not tensors."""
        return {name: getattr(self, name) for name in _FACTS}

    def tensors(self) -> dict[str, Tensor]:
        """Return copies of all tensors of the state: deltas, head, their buffers and the optimizer's moments."""
        state = self._state()
        moments = {
            f"optimizer.{key}.{name}": moment
            for name, one in state.items()
            for key, moment in self.optimizer.state.get(one, {}).items()
        }
        return {name: tensor.detach().cpu().clone() for name, tensor in (state | moments).items()}

    def load(self, facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Restore a state that `facts` and `tensors` returned.

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
        """Return parameters and buffers of the state by name."""
        return {
            f"{prefix if isinstance(one, nn.Parameter) else f'buffers.{prefix}'}.{name}": one
            for prefix, module in (("deltas", self.deltas), ("head", self.head))
            for name, one in module.state_dict(keep_vars=True).items()
        }
