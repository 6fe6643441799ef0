"""Counting conventions: which concern a method, and what they add to or take from what is attached."""

import pytest
from support.released_codes import all_counts

from search_space.conventions import conventions

OURS = ["weights_only", "with_bias", "stored", "trained"]


@pytest.mark.parametrize(
    ("method", "backbone", "names"),
    [
        ("lora_qv", "bart_large", ["unify_trained", "impl", "adapterhub", "loralib"]),
        ("lora_qv", "gpt2", ["impl", "adapterhub", "loralib"]),
        (
            "prefix_tuning",
            "roberta_base",
            [
                "peft",
                "trained_mlp",
                "unify_trained",
                "unify_requires_grad",
                "unify_receiving_grad",
                "impl",
                "peft_projection",
                "adapterhub",
            ],
        ),
        ("multihead_parallel_adapter", "gpt2", ["trained_mlp", "per_query_head", "per_kv_head"]),
        ("inducer", "gpt2", ["impl"]),
        ("mam_inducer", "gpt2", ["impl", "repo_config_used", "repo_config_requires_grad"]),
        ("houlsby_adapter", "bart_large", ["unify_trained", "adapterhub", "adapters"]),
        ("diff_pruning", "roberta_base", ["stored_nonzero_0_5pct", "trained_stage1"]),
        ("prompt_tuning", "gpt2", ["peft"]),
        ("robust_prefix_tuning", "gpt2", ["trained_mlp"]),
        ("compacter", "gpt2", ["adapterhub"]),
        ("intrinsic_did", "gpt2", []),
    ],
)
def test_the_conventions_of_a_method_are_those_of_the_codes_that_have_it(method, backbone, names, shape_named):
    assert list(all_counts(method, shape_named(backbone))) == [*OURS, *names]


def test_settings_go_by_either_name(roberta):
    assert all_counts("mam_adapter", roberta, {"l": 7, "mid": 9}) == all_counts(
        "mam_adapter", roberta, {"prefix_length": 7, "reparameterization_width": 9}
    )


def test_the_mlp_of_he_et_al_is_800_wide_unless_it_is_set(bart):
    plain = all_counts("prefix_tuning", bart)
    assert plain["unify_trained"] == all_counts("prefix_tuning", bart, {"mid": 800})["trained"]
    assert plain["trained_mlp"] == all_counts("prefix_tuning", bart, {"mid": 512})["trained"]
    assert plain["trained"] == plain["stored"]


def test_he_et_al_have_a_second_ffn_adapter_in_encoders_only(roberta):
    parallel, sequential = (
        all_counts(name, roberta, {"r": 16}) for name in ("parallel_adapter_ffn", "sequential_adapter_ffn")
    )
    assert parallel["unify_requires_grad"] == 2 * parallel["unify_trained"]
    assert sequential["unify_requires_grad"] == sequential["unify_trained"]


def test_norm_of_attention_adapters_is_always_counted(bart):
    for choice in ("none", "in"):
        found = all_counts("sequential_adapter_attn", bart, {"norm": choice})
        norms = 2 * bart.width * 36
        assert found["unify_trained"] == found["with_bias"] + norms
        assert found["stored"] == found["with_bias"] + (norms if choice == "in" else 0)


def test_chen_et_al_count_the_biases_of_lora_on_all_but_encoders(roberta, shape_named):
    gpt2 = shape_named("gpt2")
    for choice in ("no", "yes"):
        decoder, encoder = (all_counts("lora_qv", shape, {"bias": choice}) for shape in (gpt2, roberta))
        assert decoder["impl"] == decoder["weights_only"] + 2 * 768 * 12
        assert encoder["impl"] == encoder["weights_only"]


def test_task_head_is_counted_by_some_conventions(roberta):
    two, three = (all_counts("houlsby_adapter", roberta, {"labels": labels}) for labels in (2, 3))
    assert three["original_trained"] - two["original_trained"] == 768 + 1
    assert {name for name in two if two[name] != three[name]} == {"original_trained"}
    two, three = (all_counts("bitfit", roberta, {"labels": labels}) for labels in (2, 3))
    assert three["unify_trained"] - two["unify_trained"] == 1


@pytest.mark.parametrize(
    ("backbone", "width"),
    [
        ("bert_base_uncased", 3 * 768 + 3072),  # the input of the output projection too
        ("roberta_base", 3 * 768 + 3072),
        ("gpt2", 3 * 768 + 3072),  # one module for queries, keys and values
        ("llama3_2_1b", 2 * 512 + 8192),
        ("qwen3_0_6b", 2048 + 1024 + 3072),  # queries instead of keys
    ],
)
def test_peft_scales_the_modules_of_its_patterns(backbone, width, shape_named):
    shape = shape_named(backbone)
    layers = shape.encoder_layers + shape.decoder_layers
    assert conventions("ia3", shape)["peft"] == layers * width


def test_family_without_patterns_has_no_peft_convention(odd, roberta):
    assert "peft" not in conventions("ia3", odd)
    assert "peft" in conventions("ia3", roberta)


def test_the_library_adapters_leaves_cross_attention_alone(bart, odd):
    found = all_counts("houlsby_adapter", bart, {"r": 64})
    one = 2 * 64 * 1024 + 64 + 1024
    assert found["adapterhub"] == 48 * one
    assert found["adapters"] == 60 * one
    # it scales the output of a gated FFN's down projection
    assert all_counts("ia3", odd)["adapterhub"] == 8 * 2 * 10 + 5 * 11


def test_peft_has_prompts_for_both_stacks_and_one_prefix(bart):
    assert conventions("prompt_tuning", bart, {"l": 20})["peft"] == 2 * 20 * 1024
    assert conventions("p_tuning", bart, {"l": 20})["peft"] - conventions("p_tuning", bart, {"l": 20})["trained"] == (
        20 * 1024
    )
    found = conventions("prefix_tuning", bart, {"l": 30})
    assert 3 * found["peft"] == found["stored"]


def test_diff_pruning_first_trains_a_gate_for_every_weight_and_tensor(shape_named):
    bert = shape_named("bert_large_cased")
    found = all_counts("diff_pruning", bert, {"fraction": 0.001})
    assert found["stored"] == bert.parameters // 1000
    assert found["stored_nonzero_0_5pct"] == bert.parameters * 5 // 1000
    # 389 tensors, and two of the pooler, which is not there when the backbone is frozen
    assert found["trained_stage1"] == 2 * bert.parameters + 391
    assert found["trained"] == 2 * bert.frozen_parameters + 389
    assert all_counts("diff_pruning", bert, {"tensors": 400})["trained_stage1"] == 2 * bert.parameters + 400


def test_bitfit_count_is_zero_without_biases(qwen):
    found = conventions("bitfit", qwen)
    assert list(found) == OURS
    assert set(found.values()) == {0}
