"""Adapters of decoders as servers read them: the rules of vLLM's loader and of llama.cpp's converter, as tables."""

import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support.edits import edit
from support.export_cases import facts_of, trained_of, trial_of
from support.tiny_backbones import parameters
from torch import Tensor

from search_space.dimensions import Port
from search_space.edit import Edit
from search_space.forms import LowRank
from search_space.gates import FixedScale
from trial_runner.export import merge, new_folder, write_peft
from trial_runner.port_discovery.rig import Rig

FOUR_TIMES = LowRank(width=2), FixedScale(value=4.0)
Q, V = edit(Port.Q, Port.X_ATTN, *FOUR_TIMES), edit(Port.V, Port.CTX, *FOUR_TIMES)
DOWN = edit(Port.F, Port.M, LowRank(width=5))
CASES: Mapping[str, tuple[tuple[Edit, ...], int, float]] = {
    "one scale": ((Q, V), 2, 4.0),
    "two ranks and two scales": ((Q, V, DOWN), 5, 1.0),
}
"""Edits, and the rank and the scale that all layers have."""

LINEAR_LAYERS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Last names of modules that vLLM puts LoRA on, in models of the Llama kind."""

VLLM: Mapping[str, Callable[[dict[str, Any]], bool]] = {
    "r, lora_alpha and target_modules are there": lambda c: {"r", "lora_alpha", "target_modules"} <= set(c),
    "no module is saved beside the adapter": lambda c: not c.get("modules_to_save"),
    "no biases": lambda c: c.get("bias") == "none",
    "no DoRA, no rank-stabilised scale": lambda c: not c.get("use_dora") and not c.get("use_rslora"),
    "nothing differs by layer, as patterns are not read": lambda c: (
        not c.get("rank_pattern") and not c.get("alpha_pattern")
    ),
    "names of modules, no regular expression": lambda c: isinstance(c["target_modules"], list),
}


@pytest.fixture(params=parameters("llama", "qwen2", "qwen3", at_once=("llama",)))
def rig(request: pytest.FixtureRequest, rig_named: Callable[[str], Rig]) -> Rig:
    return rig_named(request.param)


@pytest.mark.parametrize("case", CASES)
def test_servers_read_the_keys_and_compute_the_changes_of_the_trial(rig, case, tmp_path):
    edits, rank, scale = CASES[case]
    trained = replace(trained_of(rig, trial_of(rig, *edits)), head=None)
    with new_folder(tmp_path / "adapter") as place:
        shape, facts = rig.backbone.shape, facts_of(rig.backbone)
        write_peft(place, trained, family=rig.backbone.family, shape=shape, backbone=facts)
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    tensors = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    assert (config["r"], config["lora_alpha"], config["task_type"]) == (rank, rank * scale, "CAUSAL_LM")
    assert [rule for rule, holds in VLLM.items() if not holds(config)] == []
    base, changed = rig.backbone.model.state_dict(), merged_state(rig, trained)
    found = 0
    for key, down in tensors.items():
        named = re.fullmatch(r"base_model\.model\.(model\.layers\.\d+\.\w+\.(\w+))\.lora_([AB])\.weight", key)
        assert named, key
        assert named[2] in LINEAR_LAYERS
        weight = f"{named[1]}.weight".removeprefix("model.")
        assert weight in base  # as llama.cpp looks it up in the base model
        if named[3] == "A":
            up = tensors[key.replace("lora_A", "lora_B")]
            assert down.shape[0] == up.shape[1] == rank
            # vLLM scales with alpha over r of the config, llama.cpp with alpha over the rank of the tensor
            changes = [(config["lora_alpha"] / by) * (up @ down) for by in (config["r"], up.shape[1])]
            for change in changes:
                torch.testing.assert_close(change, changed[weight] - base[weight], rtol=0, atol=1e-12)
            found += 1
    assert found == len(edits) * 2


def merged_state(rig: Rig, trained: Any) -> dict[str, Tensor]:
    model = copy.deepcopy(rig.backbone.model)
    merge(model, trained.deltas, rig.backbone.family, rig.backbone.shape)
    return dict(model.state_dict())
