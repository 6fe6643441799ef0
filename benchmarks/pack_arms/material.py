"""Backbone and task of a process; this module imports torch."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from pack_arms.setting import Setting
from studies.study_file import read_specification
from studies.study_file.parser import study_file
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import Backbone, load_backbone, tokenizer_id
from trial_runner.backbones.tokenizer import load_tokenizer
from trial_runner.huggingface import quiet_transformers
from trial_runner.runner import TorchRunner
from trial_runner.tasks import PreparedTask, Split, prepare_task

LABELS = 4
_TRAIN_EXAMPLES, _VALIDATION_EXAMPLES = 4096, 512
_FIRST_TOKEN = 10
_STUDY = "docstrings"


def prepared_task(setting: Setting) -> PreparedTask:
    """Return the embedded task, or one of random tokens whose label is the first token modulo `LABELS`."""
    if setting.embedded_task:
        source = replace(read_specification(study_file(_STUDY)).task, max_tokens=setting.tokens)
        tokenizer = load_tokenizer(setting.backbone)
        return prepare_task(source, tokenizer, tokenizer_id(tokenizer))
    sizes = {"train": _TRAIN_EXAMPLES, "validation": _VALIDATION_EXAMPLES, "test": _VALIDATION_EXAMPLES}
    vocabulary = _vocabulary(setting)
    splits = {
        name: _random_split(size, setting.tokens, vocabulary, seed=index)
        for index, (name, size) in enumerate(sizes.items())
    }
    return PreparedTask(
        name="random tokens",
        labels=tuple(str(label) for label in range(LABELS)),
        metric="accuracy",
        splits=splits,
        notes=(),
        fingerprint="",
    )


def own_backbone(setting: Setting) -> Backbone:
    """Load the backbone with the attention of this library."""
    register_attention()
    return load_backbone(setting.backbone, attn_implementation=ATTENTION)


def own_runner(setting: Setting) -> TorchRunner:
    """Build the runner of a worker of this library."""
    torch.set_num_threads(setting.threads)
    torch.set_flush_denormal(True)
    return TorchRunner(own_backbone(setting), prepared_task(setting), precision=setting.precision)


def new_backbone(folder: Path, *, width: int, layers: int, tokens: int, vocabulary: int = 50265) -> Path:
    """Write a RoBERTa with random weights; with width 768 and 12 layers it has RoBERTa-base's shape."""
    from transformers import RobertaConfig, RobertaModel

    config = RobertaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 64),
        intermediate_size=4 * width,
        max_position_embeddings=max(514, tokens + 2),
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    torch.manual_seed(0)
    with quiet_transformers():
        RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def with_dropout(source: Path, folder: Path, share: float) -> Path:
    """Write a backbone with all its dropout rates set to a share; its other files are links to the source."""
    folder.mkdir(parents=True)
    for path in source.iterdir():
        if path.name != "config.json":
            (folder / path.name).symlink_to(path.resolve())
    config = json.loads((source / "config.json").read_text())
    own = {name: share for name, value in config.items() if "drop" in name and isinstance(value, int | float)}
    (folder / "config.json").write_text(json.dumps({**config, **own}))
    return folder


def _vocabulary(setting: Setting) -> int:
    return int(json.loads((Path(setting.backbone) / "config.json").read_text())["vocab_size"])


def _random_split(size: int, tokens: int, vocabulary: int, *, seed: int) -> Split:
    generator = np.random.default_rng(seed)
    ids = generator.integers(_FIRST_TOKEN, vocabulary, size=(size, tokens), dtype=np.int32)  # (B, T)
    return Split(
        input_ids=ids.reshape(-1),
        offsets=np.arange(size + 1, dtype=np.int64) * tokens,
        labels=ids[:, 0].astype(np.int64) % LABELS,
    )
