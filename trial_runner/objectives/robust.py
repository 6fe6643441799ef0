"""Robust prefixes: a second table, added to the trained one and tuned anew for every batch that is predicted.

Yang & Liu 2022, On Robust Prefix-Tuning for Text Classification, ICLR: the activations of correctly predicted training
examples, layer by layer, lie near a low-dimensional manifold; a disturbed input leaves it. With everything else fixed,
a table that starts at zero is tuned so that the activations of the batch come back, and the batch is predicted with
it. No label is used, and nothing of the trial changes.

An activation is what a block puts out at the position that the paper predicts from, the last real token, in decoders;
elsewhere the mean over the real tokens, from which the task head predicts. Shapes: `C` components of a manifold.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from search_space.backbones import family_of_shape
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import StackKind
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.softmax_memory import SoftmaxMemoryDelta
from trial_runner.errors import AttachError
from trial_runner.tasks import Batch, Split

_ROWS = 128


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Manifold:
    """The affine subspace near which activations lie.

    Distances are measured from the mean of the training examples; the released code takes the mean of the batch, which
    hides what all of its examples have in common, and zero for a batch of one.

    Attributes:
        mean: Of the activations, ``(D,)``.
        basis: Orthonormal columns Q, ``(D, C)``.
    """

    mean: Tensor
    basis: Tensor

    @classmethod
    def through(cls, activations: Tensor, *, share: float) -> "Manifold":
        """The principal components of activations ``(B, D)``: as few as have more than a share of the singular values.

        Args:
            activations: At least one.
            share: In (0, 1).
        """
        wide = activations.double()
        mean = wide.mean(dim=0)
        _, singular, directions = torch.linalg.svd(wide - mean, full_matrices=False)
        lacking = int((singular.cumsum(dim=0) <= share * singular.sum()).sum())
        components = min(lacking + 1, int((singular > 0).sum()))
        basis = directions[:components].T  # (D, C)
        return cls(mean=mean.to(activations.dtype), basis=basis.to(activations.dtype))

    def distance(self, activations: Tensor) -> Tensor:
        """Mean square of ``h - h Q Q^T`` over activations ``(B, D)``, h without the manifold's mean; a scalar."""
        centred = activations - self.mean
        return (centred - centred @ self.basis @ self.basis.T).square().mean()


def has_robust_prefix(deltas: DeltaSet) -> bool:
    """Whether a delta set is predicted with by `RobustPredictor`."""
    return bool(_robust_prefixes(deltas))


def refuse_robust_prefix(deltas: DeltaSet, task_kind: str) -> None:
    """Refuse robust prefixes for a task that is no classification.

    Raises:
        AttachError: If there is one.
    """
    if has_robust_prefix(deltas):
        raise AttachError(
            "robust prefixes are tuned towards correctly classified examples, so that they need a classification; "
            f"got a {task_kind} task. Use a plain prefix."
        )


def _robust_prefixes(deltas: DeltaSet) -> dict[tuple[str, int], list[SoftmaxMemoryDelta]]:
    """Robust prefixes by stack and block."""
    found: dict[tuple[str, int], list[SoftmaxMemoryDelta]] = {}
    for sublayer, some in deltas.sublayers.items():
        for delta in some:
            if delta.edit.form.robust and isinstance(delta.form, SoftmaxMemoryDelta):
                found.setdefault((sublayer.stack, sublayer.layer), []).append(delta.form)
    return found


@contextmanager
def activations_of(blocks: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """The outputs ``(B, T, D)`` of blocks in the forward passes within the context, appended in order."""
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
        kept.append(output[0] if isinstance(output, tuple) else output)

    handles = [block.register_forward_hook(keep) for block in blocks]
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


@dataclass(slots=True, kw_only=True, eq=False)
class RobustPredictor:
    """Predicts with robust prefixes: `learn` once, then `logits` of every batch.

    Attributes:
        deltas: Hold the prefixes.
        predict: Logits ``(B, labels)`` of a batch with the deltas applied.
        steps: Of Adam, for each batch; this and what follows is as in the released code unless said otherwise.
        learning_rate: Of Adam. The released examples use 0.05 against triggers and 0.15 against misspellings.
        blocks: How many blocks, from the first one with a robust prefix on, are pulled to their manifolds. The
            released code takes three hidden states, the first of which is the embedding, which no prefix changes.
        share: Of the sum of the singular values, which the components of a manifold must exceed.
        examples: At most so many correctly predicted training examples span a manifold (the paper takes all).
        losses: Distance from the manifolds before each step of the last batch.
    """

    model: nn.Module
    shape: BackboneShape
    deltas: DeltaSet
    predict: Callable[[Batch], Tensor]
    steps: int = 10
    learning_rate: float = 0.05
    blocks: int = 2
    share: float = 0.99
    examples: int = 1000
    _manifolds: list[Manifold] = field(init=False, default_factory=list)
    losses: list[float] = field(init=False, default_factory=list)

    @torch.no_grad()
    def learn(self, split: Split, pad_token_id: int, *, seed: int) -> int:
        """Find the manifolds.

        Args:
            split: Training examples.
            pad_token_id: Fills short rows.
            seed: Of the order in which examples are taken until there are enough.

        Returns:
            How many correctly predicted examples span them. Without any, predictions stay as they are.
        """
        order = np.random.default_rng(seed).permutation(len(split))
        found: list[list[Tensor]] = []
        missing = self.examples
        for start in range(0, len(split), _ROWS):
            if not missing:
                break
            batch = split.batch(order[start : start + _ROWS], pad_token_id)
            activations, logits = self._forward(batch)
            correct = (logits.argmax(dim=-1).cpu() == torch.from_numpy(batch.labels)).nonzero().flatten()[:missing]
            found.append([each[correct.to(each.device)] for each in activations])
            missing -= len(correct)
        spanning = self.examples - missing
        if spanning:
            together = [torch.cat(each) for each in zip(*found, strict=True)]
            self._manifolds = [Manifold.through(each, share=self.share) for each in together]
        return spanning

    def logits(self, batch: Batch) -> Tensor:
        """Logits ``(B, labels)`` of a batch, for which the second table is tuned and dropped again."""
        if not self._manifolds:
            return self.predict(batch)
        prefixes = [prefix for some in _robust_prefixes(self.deltas).values() for prefix in some]
        try:
            with torch.enable_grad():
                self._tune(prefixes, batch)
            return self.predict(batch)
        finally:
            for prefix in prefixes:
                prefix.offset = None

    def _tune(self, prefixes: list[SoftmaxMemoryDelta], batch: Batch) -> None:
        for prefix in prefixes:
            keys, values = prefix.table()
            prefix.offset = (torch.zeros_like(keys).requires_grad_(), torch.zeros_like(values).requires_grad_())
        offsets = [part for prefix in prefixes for part in prefix.offset or ()]
        optimizer = torch.optim.Adam(offsets, lr=self.learning_rate)
        self.losses.clear()
        for _ in range(self.steps):
            activations, _ = self._forward(batch)
            pairs = zip(self._manifolds, activations, strict=True)
            loss = torch.stack([manifold.distance(each) for manifold, each in pairs]).sum()
            # the table's own gradients alone: those of the trial's parameters stay as they are
            for part, gradient in zip(offsets, torch.autograd.grad(loss, offsets, allow_unused=True), strict=True):
                part.grad = gradient
            optimizer.step()
            self.losses.append(float(loss.detach()))

    def _forward(self, batch: Batch) -> tuple[list[Tensor], Tensor]:
        """Activations ``(B, D)`` of every block that counts, and logits."""
        with activations_of(self._blocks()) as outputs:
            logits = self.predict(batch)
        mask = torch.from_numpy(batch.attention_mask).to(logits.device)
        is_causal = self.shape.kind is StackKind.DECODER
        return [_at_output(each, mask, is_causal=is_causal) for each in outputs], logits

    def _blocks(self) -> list[nn.Module]:
        """The first blocks with a robust prefix, of the stack that the output comes from."""
        family = family_of_shape(self.shape)
        stack, depth = "encoder", self.shape.encoder_layers
        if self.shape.decoder_layers:
            stack, depth = "decoder", self.shape.decoder_layers
        first = min((layer for where, layer in _robust_prefixes(self.deltas) if where == stack), default=0)
        path = family.ports(self.shape).layers[stack]
        last = min(depth, first + self.blocks)
        return [self.model.get_submodule(path.format(layer=layer)) for layer in range(first, last)]


def _at_output(hidden: Tensor, mask: Tensor, *, is_causal: bool) -> Tensor:
    """Activations ``(B, D)`` of block outputs ``(B, T, D)``; rows of prompts come first and do not count."""
    real = hidden[:, -mask.shape[1] :].to(torch.promote_types(hidden.dtype, torch.float32))
    if is_causal:
        columns = torch.arange(mask.shape[1], device=mask.device)
        last = torch.where(mask, columns, -1).amax(dim=1)  # (B,)
        return real[torch.arange(len(real), device=real.device), last]
    weights = mask.to(real.dtype).unsqueeze(-1)  # (B, T, 1)
    return (real * weights).sum(dim=1) / weights.sum(dim=1)
