"""One trial in training: its deltas, head, optimiser, data order and schedule."""

import hashlib
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trial_runner.delta_set import DeltaSet
from trial_runner.requests import TrialRequest
from trial_runner.whole_model import GATE_RATE_FACTOR, SparseDelta

__all__ = ["ClassificationHead", "TrialSlot", "derived_seed", "learning_rate_factor"]


def derived_seed(seed: int, purpose: str, index: int = 0) -> int:
    """A seed of its own for each purpose and index of a trial, 63 bits."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def learning_rate_factor(step: int, *, steps: int, warmup_fraction: float) -> float:
    """Share of the peak learning rate at a step: linear from 0 over the warm-up, then linear to 0 at ``steps``.

    Args:
        step: Index of the step, from 0.
        steps: Steps of the whole trial.
        warmup_fraction: Share of them that warms up.
    """
    warmup_steps = math.ceil(warmup_fraction * steps)
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    return (steps - step) / (steps - warmup_steps)


class ClassificationHead(nn.Module):
    """The task head: mean of the real tokens' outputs, then one linear layer. Trained, and counted apart."""

    def __init__(self, width: int, labels: int, *, seed: int, dtype: torch.dtype) -> None:
        """Draw the weight from N(0, 0.02^2); the bias starts at zero."""
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(labels, width, generator=generator, dtype=torch.float64) * 0.02
        self.weight = nn.Parameter(weight.to(dtype))
        self.bias = nn.Parameter(torch.zeros(labels, dtype=dtype))

    def forward(self, hidden: Tensor, attention_mask: Tensor) -> Tensor:
        """``(B, T, D)`` and ``(B, T)`` to logits ``(B, labels)``."""
        wide = hidden.to(self.weight.dtype)
        mask = attention_mask.to(wide.dtype).unsqueeze(-1)  # (B, T, 1)
        pooled = (wide * mask).sum(dim=1) / mask.sum(dim=1)  # (B, D)
        return torch.nn.functional.linear(pooled, self.weight, self.bias)


@dataclass(slots=True)
class TrialSlot:
    """State of one trial in a pack.

    Attributes:
        request: What is trained.
        deltas: Its delta modules.
        head: Its task head.
        optimizer: AdamW over both, one group per learning rate. The gates of diff pruning have one of their own, a
            fixed multiple of the side's, and no weight decay.
        step: Optimiser steps done.
        loss_sum: Sum of the training losses since the last reading.
        loss_count: How many they are.
        seconds: Compute time since the last reading.
    """

    request: TrialRequest
    deltas: DeltaSet
    head: ClassificationHead
    optimizer: torch.optim.AdamW = field(init=False)
    step: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    seconds: float = 0.0
    _order: tuple[int, NDArray[np.int64]] = field(init=False, default=(-1, np.empty(0, dtype=np.int64)))

    def __post_init__(self) -> None:
        """Make the optimiser."""
        rates = self.request.learning_rates
        sparse = self._sparse()
        gates = [] if sparse is None else sparse.gates
        apart = {id(gate) for gate in gates}
        sides = (
            (self.deltas.attention.parameters(), rates.attention),
            (self.deltas.ffn.parameters(), rates.ffn),
            (self.head.parameters(), rates.head),
        )
        groups: list[dict[str, Any]] = [
            {"params": [one for one in parameters if id(one) not in apart], "peak": peak or 0.0}
            for parameters, peak in sides
        ]
        groups.append({"params": gates, "peak": GATE_RATE_FACTOR * (rates.ffn or 0.0), "weight_decay": 0.0})
        self.optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=0.0,
            weight_decay=self.request.plan.weight_decay,
            fused=True,
        )
        self.deltas.eval()

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Everything that is trained."""
        return [*self.deltas.parameters(), *self.head.parameters()]

    def examples(self, size: int) -> NDArray[np.int64]:
        """Indices of the next batch: a new order each epoch, which depends on the trial's seed and the step alone.

        Args:
            size: Examples of the training split.
        """
        batch_size = self.request.plan.batch_size
        positions = range(self.step * batch_size, (self.step + 1) * batch_size)
        return np.array(
            [self._epoch(position // size, size)[position % size] for position in positions], dtype=np.int64
        )

    def _epoch(self, epoch: int, size: int) -> NDArray[np.int64]:
        if self._order[0] != epoch:
            generator = np.random.default_rng(derived_seed(self.request.seed, "order", epoch))
            self._order = (epoch, generator.permutation(size))
        return self._order[1]

    @contextmanager
    def dropout_randomness(self) -> Iterator[None]:
        """Draw dropout masks from the trial's own seed and step, leaving the process's generators as they were."""
        with torch.random.fork_rng():
            torch.manual_seed(derived_seed(self.request.seed, "dropout", self.step))
            yield

    @contextmanager
    def training(self) -> Iterator[None]:
        """Put the deltas into training mode, with randomness of the trial's own seed and step."""
        sparse = self._sparse()
        if sparse is not None:
            sparse.before_step(derived_seed(self.request.seed, "gates", self.step))
        self.deltas.train()
        try:
            yield
        finally:
            self.deltas.eval()

    def update(self, loss: Tensor) -> str | None:
        """One optimiser step on a loss, to which the penalty of diff pruning is added.

        Returns:
            Why the trial cannot go on, or None.
        """
        value = float(loss.detach())
        if not math.isfinite(value):
            return f"the training loss is {value} at step {self.step + 1}"
        plan = self.request.plan
        self.optimizer.zero_grad(set_to_none=True)
        sparse = self._sparse()
        total = loss if sparse is None else loss + sparse.penalty().to(loss.dtype)
        total.backward()  # type: ignore[no-untyped-call]
        largest = math.inf if plan.clip_norm is None else plan.clip_norm
        norm = float(nn.utils.clip_grad_norm_(self.parameters, largest))
        if not math.isfinite(norm):
            return f"the gradient norm is {norm} at step {self.step + 1}"
        factor = learning_rate_factor(self.step, steps=plan.steps, warmup_fraction=plan.warmup_fraction)
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * factor
        self.optimizer.step()
        self.step += 1
        self.loss_sum += value
        self.loss_count += 1
        if sparse is not None and sparse.after_step(self.step, plan.steps):
            for parameter in sparse.parameters():
                self.optimizer.state.pop(parameter, None)
        return None

    def take_means(self) -> tuple[float, float]:
        """Mean training loss and seconds since the last call."""
        means = (self.loss_sum / max(1, self.loss_count), self.seconds)
        self.loss_sum, self.loss_count, self.seconds = 0.0, 0, 0.0
        return means

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time spent in the block to the trial's."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - start

    def facts(self) -> dict[str, Any]:
        """The part of the state that is not tensors."""
        return {
            "step": self.step,
            "loss_sum": self.loss_sum,
            "loss_count": self.loss_count,
            "seconds": self.seconds,
        }

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor of the state, copied: deltas, head, their buffers and the optimiser's moments."""
        named = dict(self._named())
        state: dict[str, Tensor] = {**named, **dict(self._buffers())}
        for name, parameter in named.items():
            for key, moment in self.optimizer.state.get(parameter, {}).items():
                state[f"optimizer.{key}.{name}"] = moment
        return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}

    def load(self, facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Take over a state that `facts` and `tensors` returned.

        Raises:
            KeyError: If a tensor is missing.
            ValueError: If one has another shape.
        """
        named = dict(self._named())
        held: dict[str, Tensor] = {**named, **dict(self._buffers())}
        for name, tensor in held.items():
            if tensors[name].shape != tensor.shape:
                raise ValueError(f"{name} has shape {tuple(tensors[name].shape)}, not {tuple(tensor.shape)}")
        moments = [name for name in tensors if name.startswith("optimizer.")]
        with torch.no_grad():
            for name, tensor in held.items():
                tensor.copy_(tensors[name])
        for moment in moments:
            _, key, name = moment.split(".", 2)
            parameter = named[name]
            device = "cpu" if key == "step" else parameter.device
            self.optimizer.state[parameter][key] = tensors[moment].to(device).clone()
        self.step = int(facts["step"])
        self.loss_sum, self.loss_count = float(facts["loss_sum"]), int(facts["loss_count"])
        self.seconds = float(facts["seconds"])

    def _named(self) -> Iterator[tuple[str, nn.Parameter]]:
        for prefix, module in (("deltas", self.deltas), ("head", self.head)):
            for name, parameter in module.named_parameters():
                yield f"{prefix}.{name}", parameter

    def _buffers(self) -> Iterator[tuple[str, Tensor]]:
        for prefix, module in (("deltas", self.deltas), ("head", self.head)):
            persistent = module.state_dict(keep_vars=True)
            for name, buffer in module.named_buffers():
                if name in persistent:
                    yield f"buffers.{prefix}.{name}", buffer

    def _sparse(self) -> SparseDelta | None:
        whole = self.deltas.whole
        return whole if isinstance(whole, SparseDelta) else None
