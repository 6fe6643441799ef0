"""Prompts: trained rows before the embedded input of a model."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from search_space.forms import EncodedPrompt, Form, Prompt, PromptEncoder, SizedForm
from trial_runner.deltas.blocks import draw_layer
from trial_runner.deltas.form_delta import DeltaModule, Padding

_DEVIATION = 0.02


class PromptDelta(DeltaModule):
    """Rows of a prompt: a trained table, or the output of a small network for one.

    A plain prompt starts as N(0, 0.02^2) (released code of He et al. 2022). With an encoder, the table starts as
    N(0, 1) and the network as PyTorch's layers do.
    """

    paddings: ClassVar = {"table": Padding(axis=-2, in_front=True)}

    def __init__(self, form: Any, width: int, generator: torch.Generator) -> None:
        """Initialise the table and the encoder.

        Args:
            form: Form with the length and possibly an encoder.
            width: Residual width D of the backbone.
            generator: Generator of the initial values, on the CPU.
        """
        super().__init__()
        self.length = form.width
        is_encoded = isinstance(form, EncodedPrompt)
        table = torch.randn(form.width, width, generator=generator, dtype=torch.float64)
        self.table = nn.Parameter(table if is_encoded else table * _DEVIATION)
        self.encoder: _MlpEncoder | _LstmEncoder | None = None
        if isinstance(form, EncodedPrompt):
            kind = _MlpEncoder if form.encoder is PromptEncoder.MLP else _LstmEncoder
            self.encoder = kind(width, form.hidden)
            for layer in self.encoder.children():
                fan: Any = layer.in_features if isinstance(layer, nn.Linear) else layer.hidden_size
                draw_layer(layer, fan, generator)

    @classmethod
    def folded(cls, form: Form) -> Form:
        """Return a plain prompt of the same length."""
        return Prompt(width=form.width) if isinstance(form, SizedForm) else form

    @torch.no_grad()
    def take(self, source: nn.Module) -> None:
        """Copy the rows."""
        if isinstance(source, PromptDelta):
            self.table.copy_(source.rows())

    def rows(self) -> Tensor:
        """Return the rows ``(l, D)``, which are all that is stored."""
        if self.encoder is None:
            return self.table
        with torch.autocast(self.table.device.type, enabled=False):
            encoded: Tensor = self.encoder(self.table)
        return encoded


class _MlpEncoder(nn.Module):
    """``Linear(D, h), ReLU, Linear(h, h), ReLU, Linear(h, D)``."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, hidden, dtype=torch.float64)
        self.middle = nn.Linear(hidden, hidden, dtype=torch.float64)
        self.outer = nn.Linear(hidden, width, dtype=torch.float64)

    def forward(self, table: Tensor) -> Tensor:
        """Map ``(l, D)`` to ``(l, D)``."""
        out: Tensor = self.outer(torch.relu(self.middle(torch.relu(self.inner(table)))))
        return out


class _LstmEncoder(nn.Module):
    """Two bidirectional LSTM layers of h per direction over the rows, ``Linear(2h, 2h), ReLU, Linear(2h, D)``."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, num_layers=2, bidirectional=True, batch_first=True, dtype=torch.float64)
        self.middle = nn.Linear(2 * hidden, 2 * hidden, dtype=torch.float64)
        self.outer = nn.Linear(2 * hidden, width, dtype=torch.float64)

    def forward(self, table: Tensor) -> Tensor:
        """Map ``(l, D)`` to ``(l, D)``."""
        # cuDNN's LSTM has no gradient outside training mode
        with torch.backends.cudnn.flags(enabled=False):
            hidden, _ = self.lstm(table.unsqueeze(0))  # (1, l, 2h)
        out: Tensor = self.outer(torch.relu(self.middle(hidden.squeeze(0))))
        return out
