"""Study files of a tiny decoder that learns to answer sums, beside their data and their backbone."""

import json
import random
from pathlib import Path
from typing import Any

import yaml
from support.chat_cases import chat_backbone
from support.export_commands import write_splits

_POSITIONS = 300


def _dialogue(draw: random.Random) -> dict[str, Any]:
    one, other = draw.randrange(40), draw.randrange(40)
    question = {"role": "user", "content": f"{one}+{other}"}
    return {"messages": [question, {"role": "assistant", "content": f"{one + other}"}]}


def chat_study(folder: Path, decoder: Path, *, name: str, system: str | None = None, method: str = "lora_qv") -> Path:
    """Write a study of two trials, a published method first, into a new folder with its data and ``backbone``."""
    draw = random.Random(0)
    write_splits(folder / "data", lambda size, _: [_dialogue(draw) for _ in range(size)], 24, 10, 8)
    backbone = chat_backbone(decoder, folder / "backbone")
    config = json.loads((backbone / "config.json").read_text())
    (backbone / "config.json").write_text(json.dumps({**config, "max_position_embeddings": _POSITIONS}))
    task = {"kind": "instruction", "folder": "data", "messages": "messages", "metric": "rougeL", "max_tokens": 250}
    study = {
        "name": name,
        "backbone": str(backbone),
        "task": {**task, "decoding": {"max_new_tokens": 6}}
        | ({} if system is None else {"dialogue": {"system": system}}),
        **short_training(folder, method),
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    return folder / "study.yaml"


def short_training(folder: Path, method: str = "lora_qv", **training: float) -> dict[str, Any]:
    """Return keys for four steps of two trials in this process, at rates that change predictions."""
    rates = {"lowrank": [0.03, 0.03], "prompt": [0.3, 0.3]}
    return {
        "budget": 600,
        "trials": 2,
        "training": {"steps": 4, "batch_size": 8, "precision": "fp32", "warmup_fraction": 0, **training},
        "pruning": {"first_rung_steps": 2},
        "space": {"learning_rates": rates},
        "search": {"sampler": "random", "published": [method]},
        "fleet": {"backend": "inline", "pack": 2, "artefacts": str(folder / "artefacts")},
    }
