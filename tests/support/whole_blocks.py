"""Tiny backbones that bitsandbytes holds in 4 bits on any processor: some know no rows that end within a block."""

from pathlib import Path
from typing import Any

WIDTH = 64
"""Of every layer; so many numbers of nf4 share a scale."""

_WIDTHS = ("hidden_size", "intermediate_size", "n_embd", "n_inner", "d_model", "d_ff", "d_kv")


def in_whole_blocks(backbone: Path, folder: Path) -> Path:
    """Save a random backbone of the same family, whose rows are whole blocks, with the tokenizer in a new folder."""
    import torch
    import transformers

    config: Any = transformers.AutoConfig.from_pretrained(backbone)
    entries = config.to_dict()
    config.update({name: WIDTH for name in _WIDTHS if name in entries})
    if "head_dim" in entries:
        config.update({"head_dim": WIDTH // config.num_attention_heads})
    torch.manual_seed(0)
    getattr(transformers, config.architectures[0])(config).save_pretrained(folder)
    for file in backbone.glob("token*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder
