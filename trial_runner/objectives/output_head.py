"""The head that a language model writes with, and what it says of the right tokens, without logits of all places.

Shapes: `N` places whose next token is known.
"""

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trial_runner.backbones import LanguageModel
from trial_runner.deltas.whole_model import tied, ties_of
from trial_runner.errors import BackboneError

_LOGITS_BYTES = 2**28
"""Of logits at a time, as their losses are computed of them: in 32 bits at least."""


class OutputHead:
    """The output layer of a language model: frozen, unless it is the input embedding too and that one is changed.

    Args:
        language_model: Whose head it is.

    Attributes:
        layer: The layer.
    """

    def __init__(self, language_model: LanguageModel) -> None:
        """Find the layer, and where its weight is in the base model."""
        model, base = language_model.model, language_model.backbone.model
        layer = model.get_output_embeddings()  # type: ignore[operator]
        if not isinstance(layer, nn.Linear):
            raise BackboneError(f"a language model must end in a linear layer; got {type(layer).__name__}.")
        self.layer = layer
        self._model = model
        self._ties = ties_of(model, base)
        config: Any = model.config
        is_scaled = getattr(config, "scale_decoder_outputs", False)  # of T5, where the two are tied
        self._scale = language_model.backbone.shape.width**-0.5 if is_scaled else 1.0
        self._scale /= getattr(config, "logits_scaling", 1.0)  # of Granite
        self._softcap: float | None = getattr(config, "final_logit_softcapping", None)  # of Gemma 2

    def tied(self) -> AbstractContextManager[None]:
        """Let the head have the weight that its input embedding has at the moment, within the block."""
        return tied(self._ties)

    def losses(self, hidden: Tensor, labels: Tensor, *, label_smoothing: float = 0.0) -> Tensor:
        """Cross-entropy of tokens, ``(N,)``; see `token_losses`.

        Args:
            hidden: Outputs of the base model at their places, ``(N, D)``.
            labels: The tokens, ``(N,)``.
            label_smoothing: Share of the probability that is spread over the vocabulary.
        """
        bias = getattr(self._model, "final_logits_bias", None)
        return token_losses(
            hidden * self._scale if self._scale != 1 else hidden,
            self.layer.weight,
            bias.flatten() if isinstance(bias, Tensor) else None,
            labels,
            label_smoothing=label_smoothing,
            softcap=self._softcap,
        )


def token_losses(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    label_smoothing: float = 0.0,
    softcap: float | None = None,
) -> Tensor:
    """Cross-entropy of tokens, ``(N,)``, in at least float32; gradients recompute logits where they are many.

    With smoothing e it is ``(1 - e)`` times the negative log-probability of the token, and e times its mean over the
    whole vocabulary, as in the Trainer of transformers; newer versions of fairseq leave the token out of that mean.

    Args:
        hidden: ``(N, D)``.
        weight: ``(V, D)``.
        bias: ``(V,)``, or None.
        labels: ``(N,)``.
        label_smoothing: e, in [0, 1).
        softcap: c of ``c tanh(logits / c)``, which the logits become; None leaves them.
    """

    def some(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        logits = nn.functional.linear(hidden, weight)  # (N, V)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        logits = logits if bias is None else logits + bias
        logits = logits if softcap is None else softcap * torch.tanh(logits / softcap)
        return nn.functional.cross_entropy(logits, labels, reduction="none", label_smoothing=label_smoothing)

    widest = torch.promote_types(weight.dtype, torch.float32).itemsize
    size = max(1, _LOGITS_BYTES // (widest * weight.shape[0]))
    if len(labels) <= size:
        return some(hidden, weight, labels)
    parts = zip(torch.split(hidden, size), torch.split(labels, size), strict=True)
    losses = [
        checkpoint(some, rows, weight, tokens, use_reentrant=False, preserve_rng_state=False) for rows, tokens in parts
    ]
    return torch.cat(losses)
