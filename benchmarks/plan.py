"""What a study of Qwen3-8B would take on GPUs, by its config alone: 8 x 1024 tokens a step, four trials of a pack.

    python benchmarks/plan.py            about half a minute of one core

Nothing is downloaded: the config is written by hand.
"""

import json
import tempfile
from pathlib import Path

from rich.console import Console

from dashboards.terminal.plans import plan_renderable
from studies.foresight.plan import Wanted, plan
from studies.specification import specification_from_mapping
from trial_runner.packs.work import GPUS

CONFIG = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": 151_936,
    "hidden_size": 4096,
    "intermediate_size": 12_288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40_960,
    "tie_word_embeddings": False,
}
AIM_BYTES = 60 * 10**9


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(CONFIG))
        study = specification_from_mapping(
            {
                "name": "qwen3-8b",
                "backbone": folder,
                "task": {"kind": "instruction", "folder": folder, "messages": "messages", "max_tokens": 1024},
                "budget": "0.1%",
                "trials": 40,
                "training": {"steps": 500, "batch_size": 8},
            }
        )
        found = plan(study, GPUS, Wanted(slots=4))
    Console(width=100).print(plan_renderable(found))
    used = next(one.used_bytes for one in found.devices if one.gpu.memory_bytes == 80 * 10**9)
    print(f"on 80 GB: {used / 1e9:.1f} GB; aim at most 60{'' if used <= AIM_BYTES else '  MISSED'}")


if __name__ == "__main__":
    main()
