"""The task head in files of its own: ``head.safetensors`` and ``head.json``."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from trial_runner.errors import ExportError
from trial_runner.export.facts import file_sha256, labels_of, read_json, write_json
from trial_runner.objectives import ClassificationHead

HEAD_FILE, HEAD_FACTS = "head.safetensors", "head.json"


class TaskHead(nn.Module):
    """A trained head: mean of the real tokens' outputs, then one linear layer.

    Args:
        labels: Name of each class, by index.
    """

    def __init__(self, linear: ClassificationHead, labels: tuple[str, ...]) -> None:
        """Join a head with the names of its classes."""
        super().__init__()
        self.linear = linear
        self.labels = labels

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], labels: tuple[str, ...], *, width: int | None = None) -> "TaskHead":
        """The head with some tensors, ``weight`` and ``bias``.

        Args:
            labels: Name of each class, by index.
            width: Of the outputs it reads; None where that is not known.

        Raises:
            KeyError: If one is missing.
            ValueError: If their shapes do not fit each other or the labels.
        """
        weight, bias = tensors["weight"], tensors["bias"]
        fits = weight.dim() == 2 and weight.shape == (len(labels), width or weight.shape[1])
        if not (fits and weight.is_floating_point() and bias.shape == (len(labels),)):
            raise ValueError(f"the head, of shape {tuple(weight.shape)} for {len(labels)} labels")
        linear = ClassificationHead(weight.shape[1], len(labels), seed=0, dtype=weight.dtype)
        with torch.no_grad():
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        return cls(linear, labels).requires_grad_(False).eval()

    def tensors(self) -> dict[str, Tensor]:
        """``weight`` and ``bias``, copied to the CPU."""
        return {name: one.detach().cpu().contiguous().clone() for name, one in self.linear.named_parameters()}

    def forward(self, hidden: Tensor, attention_mask: Tensor) -> Tensor:
        """``(B, T, D)`` and ``(B, T)`` to logits ``(B, labels)``."""
        with torch.autocast(hidden.device.type, enabled=False):  # as in training, where the backbone alone is rounded
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
    """The task head beside merged weights or beside an adapter of peft.

    Call it with the last hidden states ``(B, T, D)`` and the attention mask ``(B, T)``.

    Raises:
        ExportError: If the folder has none, or it was changed.
    """
    place = Path(folder)
    facts = read_json(place / HEAD_FACTS)
    if facts.get("sha256") != file_sha256(place / HEAD_FILE):
        raise ExportError(f"{place / HEAD_FILE} must be as it was written; its hash is another one. Export it again.")
    try:
        return TaskHead.of(load_file(place / HEAD_FILE), labels_of(facts, place) or ())
    except (KeyError, ValueError, SafetensorError) as error:
        raise ExportError(f"the head in {place} must be whole; got a problem with {error}.") from error
