"""Every record of ``golden_params.yaml``, through the public functions and the command line, without exceptions."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.loops import each
from support.released_codes import RELEASED_CODES, all_counts, attached_settings

from deltaspace.commands.main import main
from search_space.conventions import CONVENTIONS, conventions
from search_space.errors import InvalidEditError
from search_space.parameter_counts.counts import count
from search_space.published import METHODS, published_method

DATA = Path(__file__).parents[2] / "data"
GOLDEN: dict[str, Any] = yaml.safe_load((DATA / "golden_params.yaml").read_text())
NAMES = {name for name, method in METHODS.items() if method.build.__module__.startswith("search_space.")}
"""Those of this package; installed packages may add others."""

Record = dict[str, Any]

# Methods of records that are no point of this space, and why.
OUTSIDE = {
    "adapter_fusion": "attention over several adapters that were trained on other tasks",
    "lora_fused_qkv": "one A for q, k and v together; here every projection has its own",
    "task_embedding": "new rows of the token embedding, which no edit writes",
}
OUTSIDE_RECORDS = {
    "chen22.task_embedding_webnlg",
    "chen22.task_embedding_coqa",
    "lib.adapter_fusion",
    "lib.peft.lora_c_attn_r8.gpt2",
}
# Two records have one method and one set of hyper-parameters; what tells them apart is in their names only.
MORE_SETTINGS = {
    "lib.peft.ptuning_lstm.gpt2": {"encoder": "lstm"},
    "lib.peft.ptuning_lstm.qwen2_5_0_5b": {"encoder": "lstm"},
}
# Printed percentages that no count gives: (record, printed, denominator) and what is known of it.
ERRATA = {
    ("he22.prefix_l30", 0.1, 406_291_456): "table 4 prints 0.1% for 30 rows at 36 attentions",
    ("he22.prefix_l30", 0.1, 610_851_840): "nor with the parameters of mBART",
    ("he22.prefix_l30_nogate", 0.1, 406_291_456): "table 4 again",
    ("he22.par_adapter_attn_r30", 0.1, 406_291_456): "table 4 again",
    ("he22.par_adapter_attn_r30", 0.1, 610_851_840): "nor with the parameters of mBART",
    ("he22.par_adapter_ffn_r30", 0.1, 406_291_456): "table 4 again",
    ("he22.par_adapter_ffn_r30", 0.1, 610_851_840): "nor with the parameters of mBART",
    ("he22.mh_parallel_adapter_attn_r30", 0.1, 406_291_456): "table 4 again",
    ("he22.lora_ffn_r102", 7.2, 406_291_456): "table 6 prints the budget of rank 120; tables 5 and 12 print 6.1%",
    ("chen22.mam_inducer", 1.61, 124_439_808): "the released configuration has a norm more than the printed count",
}
MBART_PARAMETERS = 610_851_840

RECORDS = [record for record in GOLDEN["records"] if record["method"] in NAMES]


def id_of(record: Record) -> str:
    return str(record["id"])


def settings_of(record: Record) -> dict[str, float | str]:
    return dict(record["hp"]) | MORE_SETTINGS.get(record["id"], {})


def expected_of(record: Record) -> dict[str, int]:
    return {convention: fact["count"] for convention, fact in record["counts"].items()}


def printed(records: list[Record]) -> Iterator[tuple[Record, dict[str, Any]]]:
    return ((record, row) for record in records for row in record.get("published", ()))


@each("record", RECORDS, ids=id_of)
def test_golden_count_is_reproduced_by_python_and_command(record, shape_named, capsys):
    shape, attached = shape_named(record["backbone"]), attached_settings(settings_of(record))
    every = all_counts(record["method"], shape, settings_of(record))
    assert {name: every.get(name) for name in record["counts"]} == expected_of(record)
    found = conventions(record["method"], shape, attached)
    settings = [f"--set={name}={value}" for name, value in attached.items()]
    folder = str(DATA / "backbones" / record["backbone"])
    code = main(["count", record["method"], "--backbone", folder, *settings, "--json"])
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, "")
    counted = json.loads(printed.out)
    assert counted["conventions"] == found
    assert set(counted["meanings"]) == set(counted["percentages"]) == set(counted["conventions"])
    total = GOLDEN["backbones"][record["backbone"]]["total"]
    assert counted["backbone_parameters"] == total
    for name, number in found.items():
        assert counted["percentages"][name] == pytest.approx(100 * number / total)


def test_listed_records_are_those_outside_the_space():
    outside = [record for record in GOLDEN["records"] if record["method"] not in NAMES]
    assert {record["method"] for record in outside} == set(OUTSIDE)
    assert {record["id"] for record in outside} == OUTSIDE_RECORDS
    assert len(RECORDS) + len(outside) == len(GOLDEN["records"]) == 172


def test_every_convention_is_one_of_a_record_and_has_a_meaning():
    assert {name for record in RECORDS for name in record["counts"]} == {*CONVENTIONS, *RELEASED_CODES}
    assert len(set(CONVENTIONS.values())) == len(CONVENTIONS)
    assert all(meaning and "\n" not in meaning for meaning in CONVENTIONS.values())


def test_every_further_setting_is_of_a_record_and_needed(shape_named):
    by_id = {record["id"]: record for record in RECORDS}
    assert set(MORE_SETTINGS) <= set(by_id)
    for record in (by_id[name] for name in MORE_SETTINGS):
        found = conventions(record["method"], shape_named(record["backbone"]), record["hp"])
        assert found["peft"] != expected_of(record)["peft"]


def test_methods_with_a_zero_count_cannot_be_built(shape_named):
    empty = [record for record in RECORDS if 0 in expected_of(record).values()]
    assert {record["id"] for record in empty} == {
        "ours.smollm2_135m.bitfit",
        "ours.qwen3_0_6b.bitfit",
        "ours.llama3_2_1b.bitfit",
    }
    for record in empty:
        with pytest.raises(InvalidEditError) as caught:
            published_method(record["method"]).configuration(shape_named(record["backbone"]))
        assert caught.value.rule == "V14"


def test_attached_parameters_equal_the_first_conventions(shape_named):
    """Test all but the released multi-head adapter, which has a LayerNorm for every attention that it hardly uses."""
    other = set()
    for record in RECORDS:
        shape, method = shape_named(record["backbone"]), published_method(record["method"])
        found = all_counts(method.name, shape, settings_of(record))
        if not any(found.values()):
            continue
        counts = count(method.configuration(shape, attached_settings(settings_of(record))), shape)
        own = conventions(method.name, shape, attached_settings(settings_of(record)))
        assert asdict(counts) == {name: number for name, number in own.items() if name != "peft"}
        names = ("weights_only", "with_bias", "stored", "trained")
        other |= {(method.name, name) for name in names if getattr(counts, name) != found[name]}
    assert other == {("multihead_parallel_adapter", "stored")}


def test_published_percentages_are_the_rounded_counts(shape_named):
    checked = 0
    for record, row in printed(RECORDS):
        shape = shape_named(record["backbone"])
        found = all_counts(record["method"], shape, settings_of(record))[row["convention"]]
        assert row["denominator"] == (MBART_PARAMETERS if "mBART" in row.get("note", "") else shape.parameters)
        percent, unit = 100 * found / row["denominator"], 10 ** row["decimals"]
        roundings = {"floor": math.floor(percent * unit) / unit, "round": round(percent, row["decimals"])}
        fitting = "_and_".join(way for way in ("round", "floor") if roundings[way] == row["pct"])
        assert (fitting or "NOT_REPRODUCED") == row["reproduced_by"], record["id"]
        assert round(percent, 5) == row["pct_exact"]
        checked += 1
    assert checked == sum(len(record.get("published", ())) for record in GOLDEN["records"]) == 57


def test_bart_rows_are_cut_off_and_roberta_rows_are_rounded():
    """Test rows where the two ways differ; the rows of table 6 near 0.1% are rounded all the same."""
    differ = [(record, row) for record, row in printed(RECORDS) if row["reproduced_by"] in ("floor", "round")]
    roundings = {(record["backbone"], row["reproduced_by"]) for record, row in differ if row["pct_exact"] > 0.1}
    assert roundings == {("bart_large", "floor"), ("roberta_base", "round"), ("gpt2", "round")}


def test_the_errata_are_those_listed_and_are_off_indeed(shape_named):
    found = set()
    for record, row in printed(RECORDS):
        if row["reproduced_by"] == "NOT_REPRODUCED":
            found.add((record["id"], row["pct"], row["denominator"]))
            number = all_counts(record["method"], shape_named(record["backbone"]), settings_of(record))
            percent = 100 * number[row["convention"]] / row["denominator"]
            assert abs(percent - row["pct"]) > 10 ** -row["decimals"]
    assert found == set(ERRATA)
    assert len(found) == len(GOLDEN["reproduction_summary"]["NOT_REPRODUCED"])
    summary = [text.split() for text in GOLDEN["reproduction_summary"]["NOT_REPRODUCED"]]
    assert {(name, float(percent), int(rest[-1].removeprefix("D="))) for name, percent, *rest in summary} == found


def test_the_erratum_of_table_6_is_the_budget_of_rank_120(shape_named):
    shape = shape_named("bart_large")
    by_rank = {rank: conventions("lora_ffn", shape, {"r": rank})["weights_only"] for rank in (102, 120)}
    assert by_rank[120] == conventions("lora_qv", shape, {"r": 200})["weights_only"] == 29_491_200
    assert math.floor(1000 * by_rank[120] / shape.parameters) / 10 == 7.2
    assert math.floor(1000 * by_rank[102] / shape.parameters) / 10 == 6.1


@pytest.mark.parametrize("backbone", GOLDEN["backbones"])
def test_totals_and_biases_of_the_backbones_are_those_recorded(backbone, shape_named):
    facts, shape = GOLDEN["backbones"][backbone], shape_named(backbone)
    pooler = shape.width if shape.family == "bert" else 0  # recorded with BERT's biases, not with RoBERTa's
    assert conventions("bitfit", shape)["trained"] == facts["bias_total"] - pooler
    assert shape.parameters == facts["total"]
    without_pooler = facts.get("alt_totals", {}).get("without_pooler", shape.frozen_parameters)
    assert conventions("full_finetuning", shape)["trained"] == without_pooler


@pytest.mark.parametrize("backbone", GOLDEN["backbones"])
def test_every_method_follows_its_closed_form_on_every_backbone(backbone, shape_named):
    """Test the table of parameter counts of He et al. 2022, appendix B, with separate key/value heads."""
    facts, shape = GOLDEN["backbones"][backbone], shape_named(backbone)
    names = ("d", "d_q", "d_kv", "d_m", "d_h", "N_h", "n_attn", "n_ffn")
    d, d_q, d_kv, d_m, d_h, heads, n_attn, n_ffn = (facts[name] for name in names)
    up = 2 if facts["gated"] else 1  # a gated FFN has two projections up
    extended = heads * 4 * (d_h + d)
    key = heads * 2 * d_h  # of a hidden unit of an inducer's keys
    lora_q = 4 * (d + d_q)
    expected = {
        "prefix_tuning": 2 * 4 * d_kv * n_attn,
        "prefix_tuning_additive": 2 * 4 * d_kv * n_attn,
        "robust_prefix_tuning": 2 * 4 * d_kv * n_attn,
        "sequential_adapter_attn": 2 * 4 * d * n_attn,
        "sequential_adapter_ffn": 2 * 4 * d * n_ffn,
        "sequential_adapter_single": 2 * 4 * d * n_ffn,
        "houlsby_adapter": 2 * 4 * d * (n_attn + n_ffn),
        "houlsby_adapter_original": 2 * 4 * d * (n_attn + n_ffn),
        "pfeiffer_adapter": 2 * 4 * d * n_ffn,
        "parallel_adapter_attn": 2 * 4 * d * n_attn,
        "parallel_adapter_attn_concat": 4 * (d + d_q) * n_attn,
        "parallel_adapter_ffn": 2 * 4 * d * n_ffn,
        "scaled_parallel_adapter_ffn": 2 * 4 * d * n_ffn,
        "scaled_parallel_adapter_ffn_learned": 2 * 4 * d * n_ffn,
        "multihead_parallel_adapter": 2 * 4 * d_q * n_attn,
        "compacter": 4**3 + 2 * (d + 4) * (n_attn + n_ffn),
        "compacter_pp": 4**3 + 2 * (d + 4) * n_ffn,
        "phm_adapter": (2 * 4**3 + 2 * d) * (n_attn + n_ffn),
        "lora_qv": 4 * (2 * d + d_q + d_kv) * n_attn,
        "lora_kv": 4 * (2 * d + 2 * d_kv) * n_attn,
        "lora_ffn": (up + 1) * 4 * (d + d_m) * n_ffn,
        "lora_attention": 4 * (4 * d + 2 * d_q + 2 * d_kv) * n_attn,
        "lora_all": 4 * (4 * d + 2 * d_q + 2 * d_kv) * n_attn + (up + 1) * 4 * (d + d_m) * n_ffn,
        "dora": (4 * (2 * d + d_q + d_kv) + d_q + d_kv) * n_attn,
        "vera": (2 * 4 + d_q + d_kv) * n_attn,
        "mam_adapter": 2 * 4 * d_kv * n_attn + 2 * 4 * d * n_ffn,
        "pa_attn_plus_pa_ffn": 2 * 4 * d * (n_attn + n_ffn),
        "prefix_plus_lora_ffn": 2 * 4 * d_kv * n_attn + (up + 1) * 4 * (d + d_m) * n_ffn,
        "inducer_adaptive": heads * 2 * 4 * d_h * n_attn,
        "inducer_extension": extended * n_attn,
        "inducer_gating": (extended + 10 * key) * n_attn,
        "inducer": (extended + 10 * key) * n_attn,
        "inducer_plus_lora_q": (extended + 5 * key + lora_q) * n_attn,
        "mam_inducer": (extended + 3 * key + lora_q) * n_attn + 2 * 4 * d * n_ffn,
        "ia3": 2 * d_kv * n_attn + d_m * n_ffn,
        "prompt_tuning": 4 * d,
        "p_tuning": 4 * d,
        "diff_pruning": facts["total"] * 5 // 1000,
        "intrinsic_did": 2000,
        "intrinsic_said": 2000,
        "full_finetuning": shape.frozen_parameters,
        "head_only": 0,
    }
    for name, weights in expected.items():
        method = published_method(name)
        settings = {one.name: 4 for one in method.hyperparameters if one.is_size and one.name != "fraction"}
        settings |= {"dimension": 2000} if "dimension" in settings else {}
        assert count(method.configuration(shape, settings), shape).weights_only == weights, name
    assert set(expected) == NAMES - {"bitfit", "unipelt"}


def test_unipelt_counts_equal_those_of_its_paper(shape_named):
    """Test LoRA 0.27, prefix 0.17 and adapter 0.81 per cent of BERT-base, and four gates of d + 1 numbers a layer.

    The paper prints 1.26 per cent for all of it, which is 0.03 less than with the gates.
    """
    shape = shape_named("bert_base_uncased")
    stored = count(published_method("unipelt").configuration(shape), shape).stored
    d, layers = 768, 12
    parts = {"LoRA": 2 * 8 * 2 * d, "prefix": 2 * 10 * d, "adapter": 2 * 48 * d + 48 + d}
    assert stored == layers * (sum(parts.values()) + 4 * (d + 1))
    printed = {"LoRA": 0.27, "prefix": 0.17, "adapter": 0.81}
    assert {name: 100 * layers * part / 109_482_240 for name, part in parts.items()} == pytest.approx(printed, abs=0.01)
    assert 100 * stored / 109_482_240 == pytest.approx(1.26, abs=0.035)


def test_an_inducer_counts_the_matrices_and_the_biases_of_its_keys(shape_named):
    """Chen et al. 2022: MLP_k has N_h (2 d_h rk + rk + d_h) numbers, MLP_v N_h (d_h rv + rv d + rv) + d."""
    found = count(published_method("inducer").configuration(shape_named("gpt2")), shape_named("gpt2"))
    sublayers, d, heads, d_h, key, value = 12, 768, 12, 64, 10, 15
    matrices = heads * (2 * d_h * key + d_h * value + value * d)
    biases = heads * (key + d_h + value) + d
    assert found.weights_only == sublayers * matrices == 1_981_440
    assert found.with_bias == found.stored == found.trained == sublayers * (matrices + biases)
