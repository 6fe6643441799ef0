"""Counts of the published methods against the records of ``golden_params.yaml``, none of which is left out silently."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from search_space.backbone_shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting import Counts, count
from search_space.dimensions import Heads, Site
from search_space.errors import InvalidEditError
from search_space.published import PUBLISHED, published_method

GOLDEN: dict[str, Any] = yaml.safe_load((Path(__file__).parents[1] / "data" / "golden_params.yaml").read_text())
NAMES = {method.name for method in PUBLISHED}

# Methods that this release does not have.
ABSENT = {
    "full_finetuning": "trains the backbone itself; not a delta",
    "diff_pruning": "sparse delta of the whole model",
    "intrinsic_did": "one projection of the whole model",
    "intrinsic_said": "one projection of the whole model",
    "prompt_tuning": "lengthens the input; not an edit of a sublayer",
    "p_tuning": "prompt tuning with a network",
    "pfeiffer_adapter": "writes the sum after the residual, a port that no form writes yet",
    "sequential_adapter_single": "one adapter a block, at a place that sources disagree about",
    "ia3": "multiplies; no diagonal form yet",
    "compacter": "no form of Kronecker products yet",
    "compacter_pp": "no form of Kronecker products yet",
    "phm_adapter": "no form of Kronecker products yet",
    "inducer": "no gate with a key for every query yet",
    "inducer_adaptive": "no gate with a key for every query yet",
    "inducer_extension": "no gate with a key for every query yet",
    "inducer_gating": "no gate with a key for every query yet",
    "inducer_plus_lora_q": "no gate with a key for every query yet",
    "mam_inducer": "no gate with a key for every query yet",
    "unipelt": "gates that mix the tokens of an example",
    "adapter_fusion": "attention over several trained adapters",
    "lora_fused_qkv": "one A for q, k and v together; here every projection has its own",
    "task_embedding": "rows of the embedding, not an edit of a sublayer",
}
# Settings of records that the methods here do not have, and why the counts that are compared do not depend on them.
ABSENT_SETTINGS = {
    ("bitfit", "labels"): "the task head is counted apart",
    ("houlsby_adapter", "labels"): "the task head is counted apart",
    ("multihead_parallel_adapter", "mid"): "the MLP that makes the table is dropped after training",
}
# Which count of ours a record's convention is.
FIELD = {
    "weights_only": "weights_only",
    "with_bias": "with_bias",
    "stored": "stored",
    "trained": "trained",
    "trained_mlp": "trained",
    "unify_trained": "trained",
    "unify_receiving_grad": "trained",
    "impl": "trained",
    "adapterhub": "trained",
    "adapters": "with_bias",
    "loralib": "weights_only",
    "peft_flat": "stored",
    "per_query_head": "weights_only",
    "per_kv_head": "weights_only",
}
# Conventions that count what this project does not have: (convention, method or "*", backbone or "*", why).
EXTRAS = [
    ("unify_trained", "sequential_adapter_attn", "*", "its attention adapters have a LayerNorm of their own"),
    ("unify_trained", "parallel_adapter_attn", "*", "its attention adapters have a LayerNorm of their own"),
    ("unify_trained", "pa_attn_plus_pa_ffn", "*", "its attention adapters have a LayerNorm of their own"),
    ("unify_trained", "houlsby_adapter", "*", "its attention adapters have a LayerNorm of their own"),
    ("unify_trained", "multihead_parallel_adapter", "*", "a LayerNorm a sublayer, and tables made by an MLP"),
    ("stored", "multihead_parallel_adapter", "*", "a LayerNorm a sublayer"),
    ("unify_trained", "bitfit", "*", "trains biases of its task head"),
    ("unify_trained", "prefix_tuning", "roberta_base", "MLPs for three kinds of attention, two of them unused"),
    ("unify_requires_grad", "*", "*", "MLPs for three kinds of attention, and unused adapters"),
    ("impl", "lora_qv", "*", "its LoRA has a bias for every matrix"),
    ("original_trained", "*", "*", "trains LayerNorms and the task head too"),
    ("peft_projection", "*", "*", "its MLP is as wide as the keys"),
]
Case = tuple[dict[str, Any], str, int]


def cases() -> Iterator[Case]:
    for record in GOLDEN["records"]:
        if record["method"] in NAMES:
            for convention, fact in record["counts"].items():
                yield record, convention, fact["count"]


def extras(record: dict[str, Any], convention: str) -> list[tuple[str, str, str, str]]:
    key = (convention, record["method"], record["backbone"])
    return [row for row in EXTRAS if all(here in ("*", there) for here, there in zip(row[:3], key, strict=True))]


COMPARED = [case for case in cases() if not extras(case[0], case[1])]
LEFT_OUT = [case for case in cases() if extras(case[0], case[1])]


def name_of(case: Case) -> str:
    return f"{case[0]['id']}-{case[1]}"


def configuration_of(record: dict[str, Any], convention: str, shape: BackboneShape) -> Configuration:
    method = record["method"]
    settings = {name: value for name, value in record["hp"].items() if (method, name) not in ABSENT_SETTINGS}
    configuration = published_method(method).configuration(shape, settings)
    (first, *rest) = configuration.edits
    if convention == "per_kv_head" and first.sized_form is not None:
        shared = dataclasses.replace(first, form=dataclasses.replace(first.sized_form, heads=Heads.KEY_VALUE))
        return Configuration(edits=(shared, *rest))
    if convention == "peft_flat" and record["backbone"] == "bart_large":  # reaches decoder self-attention only
        return Configuration(edits=(dataclasses.replace(first, site=Site.DECODER_SELF), *rest))
    return configuration


def ours(record: dict[str, Any], convention: str, shape: BackboneShape) -> Counts:
    return count(configuration_of(record, convention, shape), shape)


@pytest.mark.parametrize("case", COMPARED, ids=name_of)
def test_a_record_is_reproduced(case: Case, shape_named: Callable[[str], BackboneShape]) -> None:
    record, convention, expected = case
    shape = shape_named(record["backbone"])
    if expected == 0:  # BitFit without biases is refused rather than counted as nothing
        with pytest.raises(InvalidEditError) as caught:
            ours(record, convention, shape)
        assert caught.value.rule == "V14"
        return
    assert getattr(ours(record, convention, shape), FIELD[convention]) == expected


@pytest.mark.parametrize("case", LEFT_OUT, ids=name_of)
def test_a_record_that_is_left_out_counts_something_else_indeed(
    case: Case, shape_named: Callable[[str], BackboneShape]
) -> None:
    record, convention, expected = case
    found = ours(record, convention, shape_named(record["backbone"]))
    assert expected not in (found.stored, found.trained)


def test_every_method_of_the_records_is_here_or_has_a_reason_not_to_be() -> None:
    methods = {record["method"] for record in GOLDEN["records"]}
    assert methods - NAMES == set(ABSENT)
    assert NAMES - methods == {"head_only"}  # without edits there is nothing to count


def test_every_reason_applies_to_a_record_and_no_record_has_two() -> None:
    used = [row for record, convention, _ in cases() for row in extras(record, convention)]
    assert set(used) == set(EXTRAS)
    assert all(len(extras(record, convention)) <= 1 for record, convention, _ in cases())
    settings = {(record["method"], name) for record, _, _ in cases() for name in record["hp"]}
    assert set(ABSENT_SETTINGS) <= settings
    assert {convention for _, convention, _ in COMPARED} == set(FIELD)


def test_most_records_of_these_methods_are_compared() -> None:
    assert len({record["id"] for record, _, _ in COMPARED}) >= len({record["id"] for record, _, _ in cases()}) - 1
    assert len(COMPARED) > 8 * len(LEFT_OUT)


def test_records_of_every_backbone_that_has_some_are_compared() -> None:
    without_records = {"mbart_large_cc25", "bert_large_cased"}  # the closed forms below cover it
    assert {record["backbone"] for record, _, _ in COMPARED} == set(GOLDEN["backbones"]) - without_records


def test_percentages_of_the_papers_are_those_of_these_counts(shape_named: Callable[[str], BackboneShape]) -> None:
    checked = 0
    for record in (record for record in GOLDEN["records"] if record["method"] in NAMES):
        for row in record.get("published", ()):
            if extras(record, row["convention"]):
                continue
            shape = shape_named(record["backbone"])
            found = getattr(ours(record, row["convention"], shape), FIELD[row["convention"]])
            percent, unit = 100 * found / row["denominator"], 10 ** row["decimals"]
            is_reproduced = row["pct"] in (math.floor(percent * unit) / unit, round(percent, row["decimals"]))
            assert is_reproduced is (row["reproduced_by"] != "NOT_REPRODUCED"), record["id"]
            checked += 1
    assert checked > 30


@pytest.mark.parametrize("backbone", GOLDEN["backbones"])
def test_prefixes_and_adapters_follow_the_closed_forms_on_every_backbone(
    backbone: str, shape_named: Callable[[str], BackboneShape]
) -> None:
    """The table of parameter counts of He et al. 2022, appendix B, with key/value heads told apart."""
    facts, shape = GOLDEN["backbones"][backbone], shape_named(backbone)
    d, d_q, d_kv, d_m, n_attn, n_ffn = (facts[name] for name in ("d", "d_q", "d_kv", "d_m", "n_attn", "n_ffn"))
    up = 2 if facts["gated"] else 1  # a gated FFN has two projections up
    expected = {
        "prefix_tuning": 2 * 3 * d_kv * n_attn,
        "prefix_tuning_additive": 2 * 3 * d_kv * n_attn,
        "sequential_adapter_attn": 2 * 3 * d * n_attn,
        "sequential_adapter_ffn": 2 * 3 * d * n_ffn,
        "houlsby_adapter": 2 * 3 * d * (n_attn + n_ffn),
        "parallel_adapter_attn": 2 * 3 * d * n_attn,
        "parallel_adapter_attn_concat": 3 * (d + d_q) * n_attn,
        "parallel_adapter_ffn": 2 * 3 * d * n_ffn,
        "scaled_parallel_adapter_ffn": 2 * 3 * d * n_ffn,
        "scaled_parallel_adapter_ffn_learned": 2 * 3 * d * n_ffn,
        "multihead_parallel_adapter": 2 * 3 * d_q * n_attn,
        "lora_qv": 3 * (2 * d + d_q + d_kv) * n_attn,
        "lora_kv": 3 * (2 * d + 2 * d_kv) * n_attn,
        "lora_ffn": (up + 1) * 3 * (d + d_m) * n_ffn,
        "mam_adapter": 2 * 3 * d_kv * n_attn + 2 * 3 * d * n_ffn,
        "pa_attn_plus_pa_ffn": 2 * 3 * d * (n_attn + n_ffn),
        "prefix_plus_lora_ffn": 2 * 3 * d_kv * n_attn + (up + 1) * 3 * (d + d_m) * n_ffn,
    }
    sizes = ("prefix_length", "bottleneck", "attention_bottleneck", "rank")
    for name, weights in expected.items():
        method = published_method(name)
        settings = {one.name: 3 for one in method.hyperparameters if one.name in sizes}
        assert count(method.configuration(shape, settings), shape).weights_only == weights, name
    assert set(expected) == NAMES - {"bitfit", "head_only"}
