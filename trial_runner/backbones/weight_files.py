"""Checks of a backbone's folder: weights are numbers and nothing else, as many as its config implies."""

from math import prod
from pathlib import Path

from safetensors import SafetensorError, safe_open

from search_space.backbones.shape import BackboneShape
from trial_runner.errors import BackboneError
from trial_runner.files import lfs_pointer

_ADAPTER = "adapter_config.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_SINGLE_BYTES = 4
_MOST_TIMES = 2
"""Largest ratio of the config's number of weights to that of the files."""


def check_folder(name: str, folder: Path, shape: BackboneShape) -> None:
    """Refuse a folder whose files cannot be the weights of its config, before any of them is loaded.

    Raises:
        BackboneError: If it contains an adapter, whose config would name another model; pickles in place of
            safetensors,
            which execute code; or far fewer weights than its config implies.
    """
    if (folder / _ADAPTER).exists():
        raise BackboneError(
            f"backbone {name} must be a whole model; its folder has an {_ADAPTER}, which names another one. "
            "Merge the adapter, or move that file away."
        )
    files = sorted(folder.glob("*.safetensors"))
    for file in (*files, *(pickle for pattern in _PICKLES for pickle in sorted(folder.glob(pattern)))):
        if pointer := lfs_pointer(file):
            raise BackboneError(pointer)
    if not files:
        pickles = sorted(file.name for pattern in _PICKLES for file in folder.glob(pattern))
        got = f"{pickles[0]}, a pickle, which could run anything" if pickles else "none"
        raise BackboneError(f"weights of backbone {name} must be in safetensors files; got {got}. Convert them first.")
    held = sum(map(_numbers, files))
    if held and shape.frozen_parameters > _MOST_TIMES * held:
        raise BackboneError(
            f"weights of backbone {name} must be complete; its config.json counts {shape.frozen_parameters:,}, "
            f"its files hold {held:,}."
        )


def mapped_bytes(folder: Path) -> int:
    """Return the bytes of files in single precision that stay mapped in a process, unused tensors included."""
    sizes = {file: file.stat().st_size for file in folder.glob("*.safetensors")}
    return sum(size for file, size in sizes.items() if size // max(1, _numbers(file)) == _SINGLE_BYTES)


def _numbers(file: Path) -> int:
    """Return the number of values in a safetensors file by its header; 0 if it cannot be read."""
    try:
        with safe_open(file, framework="numpy") as opened:
            return sum(prod(opened.get_slice(name).get_shape()) for name in opened.keys())  # noqa: SIM118 - not a dict
    except (OSError, SafetensorError):
        return 0
