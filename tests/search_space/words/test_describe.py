"""Configurations in words and formulas, and the published method that is nearest."""

import dataclasses
import re
from typing import Any

import pytest
from support.edits import edit, resized
from support.loops import each

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Port, ScalePer, Site
from search_space.edit import Edit
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    EncodedPrompt,
    Form,
    Full,
    Intrinsic,
    LowRank,
    OwnNorm,
    Phm,
    Prompt,
    PromptEncoder,
    SoftmaxMemory,
    Sparse,
)
from search_space.gates import (
    Add,
    ConvexGate,
    ConvexInducerGate,
    FixedScale,
    Gate,
    InducerGate,
    LearnedScale,
    Multiply,
    Prepend,
    SigmoidGate,
    TanhGate,
    WeightedGate,
)
from search_space.layers import LayerPattern, LayerRange, SpindleGroups
from search_space.published import METHODS, published_method
from search_space.words.describe import Difference, SideView, ranked_published, sentence, side_view

WITH_EDITS = [name for name in METHODS if name != "head_only"]


def of(*edits: Edit) -> Configuration:
    return Configuration(edits=edits)


PREFIX = edit("head", "q", SoftmaxMemory(width=12, heads=Heads.KEY_VALUE), ConvexGate())
ADAPTER = edit("f", "x_ffn", Bottleneck(width=9), FixedScale(value=2))
MAM = of(PREFIX, ADAPTER)
GELU = dataclasses.replace(ADAPTER, form=Bottleneck(width=9, activation=Activation.GELU))
BIAS = Constant()
TABLE = SoftmaxMemory(width=12, heads=Heads.KEY_VALUE)


def difference(configuration: Configuration, method: str, shape: BackboneShape) -> Difference:
    """Return the difference from one published method."""
    return next(one for one in ranked_published(configuration, shape) if one.method.name == method)


def inducer(write: str, gate: Gate | None = None, *, activation: Activation = Activation.TANH) -> Edit:
    form = Bottleneck(width=4, activation=activation, heads=Heads.QUERY)
    return edit(write, "q", form, gate or InducerGate())


def prompt(form: Form) -> Edit:
    return edit("embed", None, form, Prepend())


def of_all_weights(form: Form) -> Edit:
    return edit("weights", None, form)


@pytest.mark.parametrize("backbone", ["roberta_base", "qwen2_5_0_5b", "bart_large"])
def test_mam_of_any_size_is_described_as_mam(backbone, shape_named):
    expected = "prefix l=12, heads + parallel adapter r=9, ×2, FFN output (mam_adapter)"
    assert sentence(MAM, shape_named(backbone)) == expected


def changed(one: Edit, **changes: Any) -> Edit:
    return dataclasses.replace(one, **changes)


AFTER = changed(ADAPTER, read=Port.F)  # another read and another insertion
LIKE_MAM = {
    "GELU parallel adapter r=9, ×2, FFN output (like mam_adapter)": GELU,
    "sequential adapter r=9, ×2, FFN output (like mam_adapter)": AFTER,
    "sequential adapter r=9, FFN output": changed(AFTER, gate=Add()),
    "parallel adapter r=9, ×2, FFN up": changed(ADAPTER, write=Port.U),
    "parallel low-rank map r=9, ×2, FFN output": changed(ADAPTER, form=LowRank(width=9)),
}


@pytest.mark.parametrize("phrase", LIKE_MAM)
def test_up_to_two_differences_are_little_and_another_form_or_place_is_not(phrase, roberta):
    assert sentence(of(PREFIX, LIKE_MAM[phrase]), roberta) == f"prefix l=12, heads + {phrase}"


PHRASES = {
    "task head alone": (),
    "prefix l=12, heads (prefix_tuning)": (PREFIX,),
    "ungated prefix l=12, heads (prefix_tuning_additive)": (changed(PREFIX, gate=Add()),),
    "bias, query+value": (edit("q", None, BIAS), edit("v", None, BIAS)),
    "bias, FFN up": (edit("u", None, BIAS),),
    "bias, norms of the stack": (edit("norm", None, BIAS, site=Site.STACK),),
    "sequential low-rank map r=4, attention output": (edit("o", "o", LowRank(width=4)),),
    "parallel softmax memory l=4, concatenated heads": (edit("concat", "q", SoftmaxMemory(width=4)),),
    "weighted prefix l=12, heads": (edit("head", "q", TABLE, WeightedGate()),),
    "prefix l=12, tanh gate, heads": (edit("head", "q", TABLE, TanhGate()),),
    "sequential adapter r=4, sigmoid gate, FFN output": (edit("f", "f", Bottleneck(width=4), SigmoidGate()),),
    "sequential adapter r=4, residual sum (pfeiffer_adapter)": (edit("sum", "sum", Bottleneck(width=4)),),
    "sequential PHM adapter r=4, FFN output (compacter_pp)": (edit("f", "f", Phm(width=4)),),
    "scaling, key+value": (edit("k", "k", Diagonal(), Multiply()), edit("v", "v", Diagonal(), Multiply())),
    "parallel diagonal, FFN output": (edit("f", "x_ffn", Diagonal()),),
    "inducer r=4, heads (inducer_adaptive)": (inducer("head"),),
    "ReLU inducer r=4, attention output": (inducer("o", activation=Activation.RELU),),
    "prompt l=7 before the input (prompt_tuning)": (prompt(Prompt(width=7)),),
    "prompt l=7 from an MLP before the input (p_tuning)": (prompt(EncodedPrompt(width=7)),),
    "a change of every weight (full_finetuning)": (of_all_weights(Full()),),
    "a change of 9,000 weights (diff_pruning)": (of_all_weights(Sparse(width=9000)),),
    "all weights in a random subspace of 900, with a factor per tensor (intrinsic_said)": (
        of_all_weights(Intrinsic(width=900, per_tensor=True)),
    ),
    "prefix l=12, heads, layers 3–8": (changed(PREFIX, layers=LayerRange(first=3, last=8)),),
    "prefix l=12, heads, spindle groups 1+4": (changed(PREFIX, layers=SpindleGroups(groups=(1, 4))),),
    "prefix l=12, heads, sixths 1+4 of the layers": (changed(PREFIX, layers=LayerPattern(sixths=(1, 4))),),
}


@pytest.mark.parametrize("phrase", PHRASES)
def test_structure_has_a_phrase_for_each_kind_of_edit(phrase, roberta):
    found = sentence(of(*PHRASES[phrase]), roberta)
    assert found == phrase or re.fullmatch(re.escape(phrase) + r" \(like \w+\)", found)


@pytest.mark.parametrize("backbone", ["roberta_base", "bart_large", "mbart_large_cc25", "gpt2", "qwen2_5_0_5b"])
@each("name", WITH_EDITS)
def test_the_nearest_to_a_published_method_is_itself(name, backbone, shape_named):
    shape = shape_named(backbone)
    method = published_method(name)
    if method.invalid_reason(shape) is not None:
        assert name == "unipelt"  # of encoders alone
        return
    nearest, second, *_ = ranked_published(method.configuration(shape), shape)
    assert (nearest.method.name, nearest.differences, nearest.distance) == (name, (), 0)
    assert second.distance > 0
    assert sentence(method.configuration(shape), shape).endswith(f" ({method.name})")


def test_methods_are_ranked_by_how_much_they_differ(roberta):
    ranked = ranked_published(of(PREFIX, GELU), roberta)
    assert [one.distance for one in ranked] == sorted(one.distance for one in ranked)
    assert {one.method.name for one in ranked} == set(WITH_EDITS)
    assert (ranked[0].method.name, ranked[0].differences) == ("mam_adapter", ("FFN activation gelu instead of relu",))


@pytest.mark.parametrize(
    ("backbone", "missing"),
    [("qwen3_0_6b", {"bitfit", "unipelt"}), ("electra_small_discriminator", {"prompt_tuning", "p_tuning"})],
)
def test_methods_that_are_not_valid_on_a_backbone_are_no_neighbours(backbone, missing, shape_named):
    shape = shape_named(backbone)
    assert {one.method.name for one in ranked_published(MAM, shape)} == set(WITH_EDITS) - missing


def test_differences_are_listed_by_dimension(roberta):
    other = of(
        changed(PREFIX, gate=LearnedScale()),
        edit("u", "u", LowRank(width=3)),
    )
    found = difference(other, "mam_adapter", roberta)
    assert found.differences == (
        "attention gate scale_learned instead of lse_convex",
        "FFN form lowrank instead of bottleneck",
        "FFN write u instead of f",
        "FFN read u instead of x_ffn",
        "FFN insertion sequential instead of parallel",
        "FFN gate add instead of scale",
    )
    assert found.distance == 6


@pytest.mark.parametrize(
    ("configuration", "method", "phrase"),
    [
        (of(PREFIX), "mam_adapter", "FFN none instead of bottleneck"),
        (MAM, "prefix_tuning", "FFN bottleneck instead of none"),
        (of(ADAPTER), "mam_adapter", "attention none instead of softmax_memory"),
    ],
)
def test_a_missing_side_weighs_as_much_as_three_differences(configuration, method, phrase, roberta):
    found = difference(configuration, method, roberta)
    assert (found.differences, found.distance) == ((phrase,), 3)


def test_sizes_and_fixed_scales_are_no_differences(roberta):
    scaled, unscaled = (of(PREFIX, changed(ADAPTER, gate=FixedScale(value=value))) for value in (8.0, 1.0))
    for configuration in (resized(MAM, attention=(1, 0), ffn=(700, 5)), scaled):
        assert difference(configuration, "mam_adapter", roberta).differences == ()
    assert "gate" in difference(unscaled, "mam_adapter", roberta).differences[0]


def test_names_of_one_tensor_are_no_difference(roberta, qwen):
    raw = of(PREFIX, changed(ADAPTER, read=Port.RES_F))
    assert difference(raw, "mam_adapter", roberta).differences == ()
    assert difference(raw, "mam_adapter", qwen).differences == ("FFN read res_f instead of x_ffn",)


def test_the_side_view_has_the_four_dimensions_and_joins_several_edits():
    edits = (
        edit("q", "x_attn", LowRank(width=5)),
        edit("v", "ctx", LowRank(width=3)),
        edit("o", None, BIAS),
    )
    names = ("form", "write", "insertion", "gate", "heads", "bottleneck", "activation", "scale", "read")
    expected = {
        MAM.attention: ("softmax_memory", "head", "parallel", "lse_convex", "key_value_heads", 12, None, None, "q"),
        MAM.ffn: ("bottleneck", "f", "parallel", "scale", "single", 9, "relu", 2.0, "x_ffn"),
        edits: ("lowrank+const", "q+v+o", "parallel+sequential", "add", "single", 3, None, None, "x_attn+ctx+none"),
        edits[2:]: ("const", "o", "sequential", "add", "single", None, None, None, "none"),
    }
    for some, values in expected.items():
        assert side_view(some) == SideView(**dict(zip(names, values, strict=True)))
    assert side_view(()) is None


# Shapes of Qwen3-0.6B: d 1024, d_h 128, 16 query and 8 key/value heads (d_q 2048, d_kv 1024), d_m 3072.
FORMULAS = [
    (
        PREFIX,
        "head_i <- (1 - λ_i) head_i + λ_i softmax(q_i P_kᵀ / √128) P_v, λ_i = σ(LSE(prefix) - LSE(keys)); "
        "P_k: 12 × 128, P_v: 12 × 128 per key/value head",
    ),
    (
        ADAPTER,
        "f <- f + 2 (relu(x_ffn W_down + b_down) W_up + b_up); W_down: 1024 × 9, W_up: 9 × 1024",
    ),
    # a bottleneck per head reads q scaled, as attention does
    (
        edit("head", "q", Bottleneck(width=4, heads=Heads.QUERY, bias=False)),
        "head_i <- head_i + (relu((q_i / √128) W_down) W_up); W_down: 128 × 4, W_up: 4 × 128 per head",
    ),
    (edit("q", "x_attn", LowRank(width=4)), "q <- q + (x_attn A B); A: 1024 × 4, B: 4 × 2048"),
    (edit("k", None, BIAS), "k <- k + b, b: 1024"),
    (
        edit("head", "q", changed(TABLE, robust=True), ConvexGate()),
        "head_i <- (1 - λ_i) head_i + λ_i softmax(q_i (P + P')_kᵀ / √128) (P + P')_v, "
        "λ_i = σ(LSE(prefix) - LSE(keys)); P_k: 12 × 128, P_v: 12 × 128 per key/value head; "
        "P': as P, tuned anew for every batch",
    ),
    # an inducer's values are of the queries as they are; at the heads each has its bias, …
    (
        inducer("head"),
        "head_i <- head_i + λ_i (tanh(q_i W_down + b_down) W_up + b_up), λ_i = softmax([q_i k_iᵀ, q_i Kᵀ] / √128)_1, "
        "k_i = q_i; W_down: 128 × 4, W_up: 4 × 128 per head",
    ),
    (
        inducer("o", ConvexInducerGate()),
        "o <- o - Σ_i λ_i head_i W_o + Σ_i λ_i (tanh(q_i W_down + b_down) W_up) + b_up, "
        "λ_i = softmax([q_i k_iᵀ, q_i Kᵀ] / √128)_1, k_i = q_i; W_down: 128 × 4, W_up: 4 × 1024 per head",
    ),
    (
        edit("f", "f", Bottleneck(width=4, norm=OwnNorm.OUTPUT), LearnedScale(per=ScalePer.CHANNEL)),
        "f <- f + s ⊙ LN(relu(f W_down + b_down) W_up + b_up); W_down: 1024 × 4, W_up: 4 × 1024",
    ),
    (
        edit("f", "f", Phm(width=8)),
        "f <- f + (gelu(f W_down + b_down) W_up + b_up); W_down: 1024 × 8, W_up: 8 × 1024, "
        "W = Σ_j C_j ⊗ s_j t_jᵀ of rank 1, C: 4 × 4 × 4 for the whole model",
    ),
    (edit("v", "v", Diagonal(), Multiply()), "v <- v ⊙ l, l: 1024"),
    (edit("f", "x_ffn", Diagonal(), FixedScale(value=2)), "f <- f + 2 (x_ffn ⊙ w); w: 1024"),
    (prompt(Prompt(width=7)), "input <- [P, input]; P: 7 × 1024"),
    (
        prompt(EncodedPrompt(width=7, hidden=9, encoder=PromptEncoder.LSTM)),
        "input <- [E(P), input]; P: 7 × 1024, E: bidirectional LSTM of 1024, 2 × 9, 2 × 9; MLP of 18, 1024, "
        "dropped after training",
    ),
    (of_all_weights(Full()), "θ <- θ + Δ; Δ: 596049920"),
    (of_all_weights(Intrinsic(width=900)), "θ <- θ + P(z), P: fixed random Fastfood; z: 900"),
    # 28 layers of 11 tensors, the embedding and the last norm
    (
        of_all_weights(Intrinsic(width=900, per_tensor=True)),
        "θ_t <- θ_t + μ_t P(z)_t, P: fixed random Fastfood; z: 590, μ: 310",
    ),
]


@pytest.mark.parametrize(("one", "expected"), FORMULAS, ids=[f"{index}" for index in range(len(FORMULAS))])
def test_a_formula_has_the_shapes_of_the_backbone(one, expected, qwen):
    assert one.formula(qwen) == expected


def test_a_table_of_every_head_is_per_head_where_there_are_as_many(roberta):
    assert PREFIX.formula(roberta).endswith("P_k: 12 × 64, P_v: 12 × 64 per head")


def test_t5_has_the_scale_of_its_logits_in_its_weights(shape_named):
    assert PREFIX.formula(shape_named("t5_small")).startswith(
        "head_i <- (1 - λ_i) head_i + λ_i softmax(q_i P_kᵀ) P_v, "
    )
    at_o = edit("o", "x_attn", SoftmaxMemory(width=4)).formula(shape_named("t5_small"))
    assert at_o.startswith("o <- o + softmax(x_attn P_kᵀ / √512) P_v")


def test_on_post_ln_backbones_the_residual_sum_is_read_normalised(roberta, qwen):
    one = edit("sum", "sum", LowRank(width=4))
    assert one.formula(roberta) == "sum <- sum + (LN(sum) A B); A: 768 × 4, B: 4 × 768"
    assert one.formula(qwen) == "sum <- sum + (sum A B); A: 1024 × 4, B: 4 × 1024"


def test_separate_kinds_of_attention_are_named(bart, roberta):
    prefix, after = changed(PREFIX, site=Site.ENCODER_SELF), edit("o", "o", Bottleneck(width=4), site=Site.CROSS)
    ports = (("q", "x_attn"), ("v", "ctx"))
    lora = [edit(write, read, LowRank(width=5), site=Site.DECODER_SELF) for write, read in ports]
    assert sentence(of(prefix, after, *lora), bart) == (
        "prefix l=12, heads of the encoder's self-attention + sequential adapter r=4, output of cross-attention + "
        "LoRA r=5, query+value of the decoder's self-attention"
    )
    # the only attention of an encoder needs no name
    assert sentence(of(prefix), roberta) == "prefix l=12, heads (prefix_tuning)"


def test_a_site_or_layers_of_its_own_is_a_difference(bart):
    some = changed(PREFIX, layers=LayerRange(first=3, last=8))
    for one, phrase in (
        (changed(PREFIX, site=Site.CROSS), "site cross"),
        (some, "layers 3 to 8"),
        (changed(PREFIX, layers=SpindleGroups(groups=(1, 4))), "layers spindle 1, 4"),
    ):
        found = difference(of(one), "prefix_tuning", bart)
        assert found.differences == (f"attention {phrase} instead of all",)
    assert sentence(of(some), bart).endswith("(like prefix_tuning)")


OTHER_DIFFERENCES = {
    "attention variant keys q instead of keys q + MLP": (inducer("o"), "inducer"),
    "attention variant none instead of own norm": (edit("o", "o", Bottleneck(width=3)), "sequential_adapter_attn"),
    "FFN variant own norm instead of none": (
        edit("sum", "sum", Bottleneck(width=3, norm=OwnNorm.INPUT)),
        "pfeiffer_adapter",
    ),
    "whole model variant none instead of a factor per tensor": (of_all_weights(Intrinsic(width=900)), "intrinsic_said"),
    "whole model form sparse instead of full": (of_all_weights(Sparse(width=9)), "full_finetuning"),
    "input form prompt instead of encoded_prompt": (prompt(Prompt(width=7)), "p_tuning"),
    "FFN variant shared C, full B instead of shared C, low-rank B": (
        edit("f", "f", Phm(width=4, factor_rank=None)),
        "compacter_pp",
    ),
}


@pytest.mark.parametrize("phrase", OTHER_DIFFERENCES)
def test_differences_outside_the_dimensions_are_listed(phrase, roberta):
    one, method = OTHER_DIFFERENCES[phrase]
    assert phrase in difference(of(one), method, roberta).differences


def test_another_place_outside_the_sublayers_weighs_as_a_side(roberta):
    found = difference(of(prompt(Prompt(width=7))), "scaled_parallel_adapter_ffn", roberta)
    assert (found.differences, found.distance) == (("input prompt instead of bottleneck",), 3)
    found = difference(of(ADAPTER), "full_finetuning", roberta)
    assert (found.differences, found.distance) == (("whole model bottleneck instead of full",), 3)


def test_side_view_describes_the_variant():
    view = side_view(
        (
            changed(inducer("o", InducerGate(key_width=3)), layers=LayerRange(first=1, last=2)),
            edit("o", "o", Bottleneck(width=3, norm=OwnNorm.INPUT), site=Site.CROSS),
        )
    )
    assert view is not None
    assert (view.variant, view.site, view.layers) == ("keys q + MLP+own norm", "attn+cross", "1 to 2+all")
    assert view.write == "o"
