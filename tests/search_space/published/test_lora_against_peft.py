"""LoRA at all projections of attention and at all linear layers against PEFT's own, on every family."""

import json

import pytest
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModel

from search_space.backbones import FAMILIES, family_of_shape, shape_of
from search_space.conventions import conventions
from search_space.published import published_method
from search_space.published.point import PublishedPoint

# This release of peft asks transformers for a property by its old name.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to False:UserWarning"),
]

TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TYPES = [(name, family) for family in FAMILIES.values() for name in family.model_types]
EXPERTS = {"qwen3_moe", "mixtral", "olmoe"}
"""Families whose FFN is a mixture of experts, which no edit reaches."""
FUSED = {"gpt2", "phi3", "modernbert"}
"""Families that compute several projections in one linear layer."""


@pytest.mark.parametrize(("name", "family"), TYPES, ids=[name for name, _ in TYPES])
def test_lora_all_counts_the_parameters_of_peft(name, family):
    config = AutoConfig.for_model(name, **TOKENS, **dict(family.example))
    shape = shape_of(json.loads(config.to_json_string()))
    if name in EXPERTS:
        assert "nothing can reach it" in str(published_method("lora_all").invalid_reason(shape))
        return
    model = get_peft_model(AutoModel.from_config(config), LoraConfig(r=3, target_modules="all-linear"))
    blocks = tuple(path.partition("{")[0] for path in family_of_shape(shape).ports(shape).layers.values())
    trained = {
        path.removeprefix("base_model.model."): parameter.numel()
        for path, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    in_blocks = sum(number for path, number in trained.items() if path.startswith(blocks))
    assert all("pooler" in path for path in trained if not path.startswith(blocks))
    found = conventions("lora_all", shape, {"r": 3})
    assert found.get("peft", found["stored"]) == in_blocks
    assert ("peft" in found) == (name in FUSED)


@pytest.mark.parametrize(("share", "ranks"), [(0.005, {3, 4}), (0.002, {1, 2})])
def test_lora_all_has_one_rank_at_both_sides(share, ranks, shape_named):
    shape = shape_named("roberta_base")
    found = PublishedPoint("lora_all").configuration(shape, parameters=int(share * shape.parameters), scale=2.0)
    widths = {(edit.form.width, edit.form.width + edit.form.width_step) for edit in found.edits}  # type: ignore[attr-defined]
    assert widths == {tuple(sorted(ranks))}
    assert {str(edit.write) for edit in found.edits} == {"q", "k", "v", "o", "u", "f"}
