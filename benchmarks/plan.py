"""What a study of Qwen3-8B would take on GPUs, by its config alone: 8 x 1024 tokens a step, four trials of a pack.

    python benchmarks/plan.py            about half a minute of one core
    python benchmarks/plan.py --held     the same in bf16, in 8 and in 4 bits: how many trials fit; two minutes
    python benchmarks/plan.py --shards 4 the same in bf16, its blocks shared out among so many GPUs

Nothing is downloaded: the config is written by hand.
"""

import argparse
import json
import tempfile
from pathlib import Path

from rich.console import Console

from dashboards.terminal.plans import plan_renderable
from studies.foresight.plan import GPUS, Wanted, plan
from studies.specification import Specification, specification_from_mapping

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
HELD = (
    {},
    {"dtype": "bf16"},
    *({"dtype": "bf16", "quantization": kind} for kind in ("int8", "nf4", "int4")),
)


def study_of(folder: str, fleet: dict[str, int] | None = None, **held: str) -> Specification:
    (Path(folder) / "config.json").write_text(json.dumps(CONFIG))
    return specification_from_mapping(
        {
            "name": "qwen3-8b",
            "backbone": {"name": folder, **held},
            "task": {"kind": "instruction", "folder": folder, "messages": "messages", "max_tokens": 1024},
            "budget": "0.1%",
            "trials": 40,
            "training": {"steps": 500, "batch_size": 8},
            "fleet": fleet or {},
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--shards", type=int, default=1)
    asked = parser.parse_args()
    if asked.held:
        of_all_ways()
        return
    if asked.shards > 1:
        with tempfile.TemporaryDirectory() as folder:
            study = study_of(folder, {"shards": asked.shards, "pack": 1}, dtype="bf16")
            Console(width=100).print(plan_renderable(plan(study, GPUS, Wanted())))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = plan(study_of(folder), GPUS, Wanted(slots=4))
    Console(width=100).print(plan_renderable(found))
    used = next(one.used_bytes for one in found.devices if one.gpu.memory_bytes == 80 * 10**9)
    print(f"on 80 GB: {used / 1e9:.1f} GB; aim at most 60{'' if used <= AIM_BYTES else '  MISSED'}")


def of_all_ways() -> None:
    for held in HELD:
        with tempfile.TemporaryDirectory() as folder:
            found = plan(study_of(folder, **held), (GPUS[0], GPUS[2]), Wanted())
        print(f"{', '.join(held.values()) or 'as products are'}: {found.weights.all_bytes / 1e9:.1f} GB of weights")
        for one in found.devices:
            at_a_time = "" if one.micro_batch is None else f", {one.micro_batch} texts at a time"
            fits = f"{one.slots} trials, {one.used_bytes / 1e9:.1f} GB{at_a_time}" if one.fits else "does not fit"
            print(f"  {one.gpu.name}: {fits}", flush=True)


if __name__ == "__main__":
    main()
