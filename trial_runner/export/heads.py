"""Task head in files of its own: ``head.safetensors`` and ``head.json``."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from trial_runner.errors import ExportError
from trial_runner.export.facts import file_sha256, labels_of, read_json, write_json
from trial_runner.files import check_header
from trial_runner.objectives import ClassificationHead

HEAD_FILE, HEAD_FACTS = "head.safetensors", "head.json"


class TaskHead(nn.Module):
    """A trained head: mean of the real tokens' outputs, then one linear layer.

    Args:
        labels: Name of each class, by index.
    """

    def __init__(self, linear: ClassificationHead, labels: tuple[str, ...]) -> None:
        """Store the linear layer and the names of its classes."""
        super().__init__()
        self.linear = linear
        self.labels = labels

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], labels: tuple[str, ...], *, width: int | None = None) -> "TaskHead":
        """Build a head from its tensors, ``weight`` and ``bias``.

        Args:
            labels: Name of each class, by index.
            width: Width of the head's input; None where it is unknown.

        Raises:
            KeyError: If a tensor is missing.
            ValueError: If their shapes do not fit each other or the labels.
        """
        weight, bias = tensors["weight"], tensors["bias"]
        fits = weight.dim() == 2 and weight.shape == (len(labels), width or weight.shape[1])
        if not (fits and weight.is_floating_point() and bias.shape == (len(labels),)):
            raise ValueError(f"a head of shape {tuple(weight.shape)} for {len(labels)} labels")
        linear = ClassificationHead(weight.shape[1], len(labels), seed=0, dtype=weight.dtype)
        with torch.no_grad():
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        return cls(linear, labels).requires_grad_(False).eval()

    def tensors(self) -> dict[str, Tensor]:
        """Return ``weight`` and ``bias``, copied to the CPU."""
        return {name: one.detach().cpu().contiguous().clone() for name, one in self.linear.named_parameters()}

    def forward(self, hidden: Tensor, attention_mask: Tensor) -> Tensor:
        """Compute logits ``(B, labels)`` of hidden states ``(B, T, D)`` with a mask ``(B, T)``."""
        with torch.autocast(hidden.device.type, enabled=False):  # in training it covers the backbone alone
            logits: Tensor = self.linear(hidden, attention_mask)
        return logits


def write_head(folder: Path, head: TaskHead) -> None:
    """Write a head into a folder."""
    save_file(head.tensors(), folder / HEAD_FILE)
    facts = {
        "labels": list(head.labels),
        "pooling": "mean of the last hidden states of the real tokens, then one linear layer",
        "sha256": file_sha256(folder / HEAD_FILE),
    }
    write_json(folder / HEAD_FACTS, facts)


def load_head(folder: str | Path) -> TaskHead:
    """Load the task head next to merged weights or to an adapter of peft.

    Call it with the last hidden states ``(B, T, D)`` and the attention mask ``(B, T)``.

    Raises:
        ExportError: If the folder has no head, or the head was changed.
    """
    place = Path(folder)
    facts = read_json(place / HEAD_FACTS)
    if facts.get("sha256") != file_sha256(place / HEAD_FILE):
        raise ExportError(f"{place / HEAD_FILE} must be as it was written; got another hash. Export it again.")
    check_header(place / HEAD_FILE)
    try:
        return TaskHead.of(load_file(place / HEAD_FILE), labels_of(facts, place) or ())
    except (KeyError, ValueError, SafetensorError) as error:
        raise ExportError(f"cannot load the head in {place}: a problem with {error}. Export it again.") from error
