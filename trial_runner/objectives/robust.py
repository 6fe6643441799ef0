"""Robust prefixes: a second table, added to the trained one and tuned anew for every predicted batch.

Yang & Liu 2022, On Robust Prefix-Tuning for Text Classification, ICLR. The activations of correctly predicted training
examples lie, in each layer, near a low-dimensional manifold. Those of a perturbed input do not. A table that starts at
zero is tuned to move the activations of the batch back to the manifold, with everything else fixed. The batch is then
predicted with it. No label is used, and the trial is unchanged.

An activation is the output of a block. In decoders it is that of the last real token, as in the paper. In other models
it is the mean over the real tokens, the input of the task head. Shapes: `C` components of a manifold.
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
    """Affine subspace near the activations of correct predictions.

    Distances are measured from the mean of the training examples. The released code subtracts the mean of the batch,
    which removes any shift common to the batch and gives zero for a batch of one.

    Attributes:
        mean: Mean of the activations, ``(D,)``.
        basis: Orthonormal columns Q, ``(D, C)``.
    """

    mean: Tensor
    basis: Tensor

    @classmethod
    def through(cls, activations: Tensor, *, share: float) -> "Manifold":
        """Fit the principal components of activations ``(B, D)``.

        The components are the fewest whose singular values sum to more than ``share`` of the total.

        Args:
            activations: One activation or more.
            share: Share of the sum of the singular values, in (0, 1).
        """
        wide = activations.double()
        mean = wide.mean(dim=0)
        _, singular, directions = torch.linalg.svd(wide - mean, full_matrices=False)
        lacking = int((singular.cumsum(dim=0) <= share * singular.sum()).sum())
        components = min(lacking + 1, int((singular > 0).sum()))
        basis = directions[:components].T  # (D, C)
        return cls(mean=mean.to(activations.dtype), basis=basis.to(activations.dtype))

    def distance(self, activations: Tensor) -> Tensor:
        """Compute the mean square of ``h - h Q Q^T``, a scalar; h are activations ``(B, D)`` minus the mean."""
        centred = activations - self.mean
        return (centred - centred @ self.basis @ self.basis.T).square().mean()


def has_robust_prefix(deltas: DeltaSet) -> bool:
    """Return whether predictions of a delta set need a `RobustPredictor`."""
    return bool(_robust_prefixes(deltas))


def refuse_robust_prefix(deltas: DeltaSet, task_kind: str) -> None:
    """Raise an error if deltas have robust prefixes, for a task that is no classification.

    Raises:
        AttachError: If there is one.
    """
    if has_robust_prefix(deltas):
        raise AttachError(
            "the task of robust prefixes must be a classification, whose correct predictions they are tuned to; "
            f"got a {task_kind} task. Use a plain prefix."
        )


def _robust_prefixes(deltas: DeltaSet) -> dict[tuple[str, int], list[SoftmaxMemoryDelta]]:
    """Return the robust prefixes by stack and block."""
    found: dict[tuple[str, int], list[SoftmaxMemoryDelta]] = {}
    for sublayer, some in deltas.sublayers.items():
        for delta in some:
            if delta.edit.form.robust and isinstance(delta.form, SoftmaxMemoryDelta):
                found.setdefault((sublayer.stack, sublayer.layer), []).append(delta.form)
    return found


@contextmanager
def activations_of(blocks: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """Yield a list to which forward passes in the context append the outputs ``(B, T, D)`` of blocks, in order."""
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
    """Predictor of a delta set with robust prefixes: `learn` once, then `logits` of every batch.

    Defaults are those of the released code unless stated otherwise.

    Attributes:
        deltas: Delta set with the prefixes.
        predict: Function that returns the logits ``(B, labels)`` of a batch with the deltas applied.
        steps: Number of Adam steps for each batch.
        learning_rate: Learning rate of Adam. The released examples use 0.05 against triggers and 0.15 against
            misspellings.
        blocks: Number of blocks with a manifold, counted from the first one with a robust prefix. The released code
            takes three hidden states, the first of which is the embedding, which no prefix changes.
        share: Share of the sum of the singular values that the components of a manifold must exceed.
        examples: Maximum number of correctly predicted training examples per manifold (the paper takes all).
        manifolds: Manifold of each of these blocks; none before `learn`.
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
    manifolds: list[Manifold] = field(init=False, default_factory=list)
    losses: list[float] = field(init=False, default_factory=list)

    @torch.no_grad()
    def learn(self, split: Split, pad_token_id: int, *, seed: int) -> int:
        """Fit the manifolds to correctly predicted training examples.

        Args:
            split: Training examples.
            pad_token_id: Token that fills short rows.
            seed: Seed of the order of the examples.

        Returns:
            Number of correctly predicted examples used. With none, predictions use the trained prefixes alone.
        """
        order = np.random.default_rng(seed).permutation(len(split))
        found: list[list[Tensor]] = []
        missing = self.examples
        for start in range(0, len(split), _ROWS):
            if not missing:
                break
            batch = split.batch(order[start : start + _ROWS], pad_token_id)
            activations, logits = self.forward(batch)
            correct = (logits.argmax(dim=-1).cpu() == torch.from_numpy(batch.labels)).nonzero().flatten()[:missing]
            found.append([each[correct.to(each.device)] for each in activations])
            missing -= len(correct)
        spanning = self.examples - missing
        if spanning:
            together = [torch.cat(each) for each in zip(*found, strict=True)]
            self.manifolds = [Manifold.through(each, share=self.share) for each in together]
        return spanning

    def logits(self, batch: Batch) -> Tensor:
        """Compute the logits ``(B, labels)`` of a batch with a second table, tuned for the batch and then removed."""
        if not self.manifolds:
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
            activations, _ = self.forward(batch)
            pairs = zip(self.manifolds, activations, strict=True)
            loss = torch.stack([manifold.distance(each) for manifold, each in pairs]).sum()
            # gradients of the offsets alone; those of the trial are not touched
            for part, gradient in zip(offsets, torch.autograd.grad(loss, offsets, allow_unused=True), strict=True):
                part.grad = gradient
            optimizer.step()
            self.losses.append(float(loss.detach()))

    def forward(self, batch: Batch) -> tuple[list[Tensor], Tensor]:
        """Compute the activations ``(B, D)`` of every block with a manifold, and the logits."""
        with activations_of(self.manifold_blocks()) as outputs:
            logits = self.predict(batch)
        mask = torch.from_numpy(batch.attention_mask).to(logits.device)
        is_causal = self.shape.kind is StackKind.DECODER
        return [_at_output(each, mask, is_causal=is_causal) for each in outputs], logits

    def manifold_blocks(self) -> list[nn.Module]:
        """Return the blocks with a manifold, from the first one with a robust prefix, of the stack with the output."""
        family = family_of_shape(self.shape)
        stack, depth = "encoder", self.shape.encoder_layers
        if self.shape.decoder_layers:
            stack, depth = "decoder", self.shape.decoder_layers
        first = min((layer for where, layer in _robust_prefixes(self.deltas) if where == stack), default=0)
        path = family.ports(self.shape).layers[stack]
        last = min(depth, first + self.blocks)
        return [self.model.get_submodule(path.format(layer=layer)) for layer in range(first, last)]


def _at_output(hidden: Tensor, mask: Tensor, *, is_causal: bool) -> Tensor:
    """Return activations ``(B, D)`` of block outputs ``(B, T, D)``; leading rows of prompts are ignored."""
    real = hidden[:, -mask.shape[1] :].to(torch.promote_types(hidden.dtype, torch.float32))
    if is_causal:
        columns = torch.arange(mask.shape[1], device=mask.device)
        last = torch.where(mask, columns, -1).amax(dim=1)  # (B,)
        return real[torch.arange(len(real), device=real.device), last]
    weights = mask.to(real.dtype).unsqueeze(-1)  # (B, T, 1)
    return (real * weights).sum(dim=1) / weights.sum(dim=1)
