"""Configurations in words and formulas, and the published method that is nearest."""

import dataclasses
import math
import re
from collections.abc import Callable, Sequence

import pytest

from search_space.backbone_shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting import affine_count
from search_space.describe import (
    SideView,
    difference,
    formula,
    nearest_published,
    ranked_published,
    sentence,
    side_view,
)
from search_space.dimensions import Activation, Heads, Port, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.form import Bottleneck, Constant, Form, LowRank, SoftmaxMemory
from search_space.gate import Add, ConvexGate, FixedScale, Gate, LearnedScale
from search_space.published import PUBLISHED, published_method
from search_space.space import Candidate, SearchSpace

WITH_EDITS = [method.name for method in PUBLISHED if method.name != "head_only"]


class FirstTrial:
    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        return choices[0]

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return low


def edit(site: Site, write: str, read: str | None, form: Form, gate: Gate | None) -> Edit:
    return Edit(site=site, write=Port(write), read=None if read is None else Port(read), form=form, gate=gate or Add())


def attention(write: str, read: str | None, form: Form, gate: Gate | None = None) -> Edit:
    return edit(Site.ATTENTION, write, read, form, gate)


def ffn(write: str, read: str | None, form: Form, gate: Gate | None = None) -> Edit:
    return edit(Site.FFN, write, read, form, gate)


def of(*edits: Edit) -> Configuration:
    return Configuration(edits=edits)


PREFIX = attention("head", "q", SoftmaxMemory(width=12, heads=Heads.KEY_VALUE), ConvexGate())
ADAPTER = ffn("f", "x_ffn", Bottleneck(width=9), FixedScale(value=2))
MAM = of(PREFIX, ADAPTER)
GELU = dataclasses.replace(ADAPTER, form=Bottleneck(width=9, activation=Activation.GELU))
BIAS = Constant()


@pytest.mark.parametrize("backbone", ["roberta_base", "qwen2_5_0_5b", "bart_large"])
def test_mam_in_any_size_is_said_to_be_mam(backbone: str, shape_named: Callable[[str], BackboneShape]) -> None:
    assert sentence(MAM, shape_named(backbone)) == (
        "prefix of 12 at the heads + scaled parallel adapter of 9 at the FFN (MAM adapter)"
    )


def test_mam_resized_to_a_budget_is_said_to_be_mam(roberta: BackboneShape) -> None:
    candidate = SearchSpace(shape=roberta, budget=600_000).suggest_published("mam_adapter", FirstTrial())
    said = sentence(candidate.configuration, roberta)
    assert re.fullmatch(
        r"prefix of \d+(–\d+)? at the heads \+ scaled parallel adapter of \d+(–\d+)? at the FFN \(MAM adapter\)", said
    )


def test_what_differs_little_from_mam_is_said_to_be_like_it(roberta: BackboneShape) -> None:
    assert sentence(of(PREFIX, GELU), roberta) == (
        "prefix of 12 at the heads + scaled gelu parallel adapter of 9 at the FFN (MAM-like)"
    )


def test_up_to_two_differences_are_little_and_another_form_or_place_is_not(roberta: BackboneShape) -> None:
    sequential = dataclasses.replace(ADAPTER, read=Port.F)  # another read and another insertion
    said = "prefix of 12 at the heads + scaled sequential adapter of 9 at the FFN (MAM-like)"
    assert sentence(of(PREFIX, sequential), roberta) == said
    unscaled = dataclasses.replace(sequential, gate=Add())
    assert sentence(of(PREFIX, unscaled), roberta) == ("prefix of 12 at the heads + sequential adapter of 9 at the FFN")
    at_u = dataclasses.replace(ADAPTER, write=Port.U)
    assert (
        sentence(of(PREFIX, at_u), roberta) == "prefix of 12 at the heads + scaled parallel adapter of 9 at the FFN's u"
    )
    linear = dataclasses.replace(ADAPTER, form=LowRank(width=9))
    assert sentence(of(PREFIX, linear), roberta) == (
        "prefix of 12 at the heads + scaled parallel low-rank map of 9 at the FFN"
    )


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ((), "task head alone"),
        ((PREFIX,), "prefix of 12 at the heads (prefix tuning)"),
        (
            (dataclasses.replace(PREFIX, gate=Add()),),
            "ungated prefix of 12 at the heads (prefix tuning without gating)",
        ),
        (
            (dataclasses.replace(PREFIX, form=SoftmaxMemory(width=12, widened=3, heads=Heads.KEY_VALUE)),),
            "prefix of 12–13 at the heads (prefix tuning)",
        ),
        ((attention("q", None, BIAS), attention("v", None, BIAS)), "bias at q, v"),
        ((ffn("f", None, BIAS),), "bias at the FFN"),
        ((ffn("u", None, BIAS),), "bias at the FFN's u"),
        ((Edit(site=Site.STACK, write=Port.NORM, read=None, form=BIAS, gate=Add()),), "bias at the norms of the stack"),
        (
            (attention("q", "x_attn", LowRank(width=4)), attention("o", "concat", LowRank(width=4))),
            "LoRA of 4 at q, o",
        ),
        (
            (attention("head", "q", LowRank(width=4, heads=Heads.QUERY)),),
            "multi-head parallel low-rank map of 4 at the heads",
        ),
        ((attention("o", "o", LowRank(width=4)),), "sequential low-rank map of 4 at attention's output"),
        ((attention("concat", "q", SoftmaxMemory(width=4)),), "parallel softmax memory of 4 at concatenated heads"),
        (
            (attention("head", "head", Bottleneck(width=4, heads=Heads.QUERY, activation=Activation.TANH)),),
            "tanh multi-head sequential adapter of 4 at the heads",
        ),
        ((ffn("u", "u", Bottleneck(width=4), LearnedScale()),), "learned-scale sequential adapter of 4 at the FFN's u"),
        (
            (PREFIX, attention("q", "x_attn", LowRank(width=4)), ffn("f", "m", LowRank(width=5))),
            "prefix of 12 at the heads + LoRA of 4 at q + LoRA of 5 at the FFN",
        ),
    ],
)
def test_a_structure_is_told_in_a_phrase_for_each_kind_of_edit(
    edits: tuple[Edit, ...], said: str, roberta: BackboneShape
) -> None:
    found = sentence(of(*edits), roberta)
    assert found == said or re.fullmatch(re.escape(said) + r" \(.*-like\)", found)


@pytest.mark.parametrize("backbone", ["roberta_base", "bart_large", "mbart_large_cc25", "gpt2", "qwen2_5_0_5b"])
@pytest.mark.parametrize("name", WITH_EDITS)
def test_the_nearest_to_a_published_method_is_itself(
    name: str, backbone: str, shape_named: Callable[[str], BackboneShape]
) -> None:
    shape = shape_named(backbone)
    method = published_method(name)
    nearest, second, *_ = ranked_published(method.configuration(shape), shape)
    assert (nearest.method.name, nearest.differences, nearest.distance) == (name, (), 0)
    assert second.distance > 0
    assert sentence(method.configuration(shape), shape).endswith(f" ({method.title})")


def test_methods_are_ranked_by_how_much_they_differ(roberta: BackboneShape) -> None:
    ranked = ranked_published(of(PREFIX, GELU), roberta)
    assert [one.distance for one in ranked] == sorted(one.distance for one in ranked)
    assert {one.method.name for one in ranked} == set(WITH_EDITS)
    assert ranked[0] == nearest_published(of(PREFIX, GELU), roberta)
    assert (ranked[0].method.name, ranked[0].differences) == ("mam_adapter", ("FFN activation gelu instead of relu",))


def test_bitfit_is_no_neighbour_on_a_backbone_without_biases(qwen: BackboneShape) -> None:
    assert {one.method.name for one in ranked_published(MAM, qwen)} == set(WITH_EDITS) - {"bitfit"}
    with pytest.raises(InvalidEditError):
        difference(MAM, published_method("bitfit"), qwen)


def test_differences_are_told_dimension_by_dimension(roberta: BackboneShape) -> None:
    other = of(
        dataclasses.replace(PREFIX, gate=LearnedScale()),
        ffn("u", "u", LowRank(width=3)),
    )
    found = difference(other, published_method("mam_adapter"), roberta)
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
    ("configuration", "method", "told"),
    [
        (of(PREFIX), "mam_adapter", "FFN nothing instead of bottleneck"),
        (MAM, "prefix_tuning", "FFN bottleneck instead of nothing"),
        (of(ADAPTER), "mam_adapter", "attention nothing instead of softmax_memory"),
    ],
)
def test_a_missing_side_weighs_as_much_as_three_differences(
    configuration: Configuration, method: str, told: str, roberta: BackboneShape
) -> None:
    found = difference(configuration, published_method(method), roberta)
    assert (found.differences, found.distance) == ((told,), 3)


def test_sizes_and_fixed_scales_are_no_differences(roberta: BackboneShape) -> None:
    for configuration in (MAM.resized(attention=(1, 0), ffn=(700, 5)), of(PREFIX, _scaled(8.0))):
        assert difference(configuration, published_method("mam_adapter"), roberta).differences == ()
    assert "gate" in difference(of(PREFIX, _scaled(1.0)), published_method("mam_adapter"), roberta).differences[0]


def _scaled(value: float) -> Edit:
    return dataclasses.replace(ADAPTER, gate=FixedScale(value=value))


def test_names_of_one_tensor_are_no_difference(roberta: BackboneShape, qwen: BackboneShape) -> None:
    raw = of(PREFIX, dataclasses.replace(ADAPTER, read=Port.RES_F))
    assert difference(raw, published_method("mam_adapter"), roberta).differences == ()
    assert difference(raw, published_method("mam_adapter"), qwen).differences == ("FFN read res_f instead of x_ffn",)


def test_the_side_view_has_the_four_dimensions() -> None:
    assert side_view(MAM.attention) == SideView(
        form="softmax_memory",
        write="head",
        read="q",
        insertion="parallel",
        gate="lse_convex",
        heads="key_value_heads",
        bottleneck=12,
        activation=None,
        scale=None,
    )
    assert side_view(MAM.ffn) == SideView(
        form="bottleneck",
        write="f",
        read="x_ffn",
        insertion="parallel",
        gate="scale",
        heads="single",
        bottleneck=9,
        activation="relu",
        scale=2.0,
    )
    assert side_view(()) is None


def test_the_side_view_joins_several_edits() -> None:
    edits = (
        attention("q", "x_attn", LowRank(width=5)),
        attention("v", "ctx", LowRank(width=3)),
        attention("o", None, BIAS),
    )
    assert side_view(edits) == SideView(
        form="lowrank+const",
        write="q+v+o",
        read="x_attn+ctx+none",
        insertion="parallel+sequential",
        gate="add",
        heads="single",
        bottleneck=3,
        activation=None,
        scale=None,
    )
    assert side_view(edits[2:]) == SideView(
        form="const",
        write="o",
        read="none",
        insertion="sequential",
        gate="add",
        heads="single",
        bottleneck=None,
        activation=None,
        scale=None,
    )


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
    (
        ffn(
            "f", "m", Bottleneck(width=9, widened=1, bias=False, norm=True, activation=Activation.GELU), LearnedScale()
        ),
        "f <- f + s (gelu(LN(m) W_down) W_up); W_down: 3072 × 9–10, W_up: 9–10 × 1024",
    ),
    # a bottleneck per head reads q scaled, as attention does
    (
        attention("head", "q", Bottleneck(width=4, heads=Heads.QUERY, bias=False)),
        "head_i <- head_i + (relu((q_i / √128) W_down) W_up); W_down: 128 × 4, W_up: 4 × 128 per head",
    ),
    # … but not a low-rank map, nor one that reads something else, nor a single block
    (
        attention("head", "q", LowRank(width=4, heads=Heads.KEY_VALUE)),
        "head_i <- head_i + (q_i A B); A: 128 × 4, B: 4 × 128 per key/value head",
    ),
    (
        attention("head", "head", Bottleneck(width=4, heads=Heads.QUERY, bias=False)),
        "head_i <- head_i + (relu(head_i W_down) W_up); W_down: 128 × 4, W_up: 4 × 128 per head",
    ),
    (
        attention("head", "x_attn", Bottleneck(width=4, heads=Heads.QUERY, bias=False)),
        "head_i <- head_i + (relu(x_attn W_down) W_up); W_down: 1024 × 4, W_up: 4 × 128 per head",
    ),
    (
        attention("o", "q", Bottleneck(width=4)),
        "o <- o + (relu(q W_down + b_down) W_up + b_up); W_down: 2048 × 4, W_up: 4 × 1024",
    ),
    (attention("v", "ctx", LowRank(width=4)), "v <- v + (ctx A B); A: 1024 × 4, B: 4 × 1024"),
    (attention("q", "x_attn", LowRank(width=4)), "q <- q + (x_attn A B); A: 1024 × 4, B: 4 × 2048"),
    (
        ffn("u", "x_ffn", SoftmaxMemory(width=4), FixedScale(value=0.5)),
        "u <- u + 0.5 softmax(x_ffn P_kᵀ / √1024) P_v; P_k: 4 × 1024, P_v: 4 × 3072",
    ),
    (attention("k", None, BIAS), "k <- k + b, b: 1024"),
]


@pytest.mark.parametrize(("one", "expected"), FORMULAS, ids=[f"{index}" for index in range(len(FORMULAS))])
def test_a_formula_has_the_shapes_of_the_backbone(one: Edit, expected: str, qwen: BackboneShape) -> None:
    assert formula(one, qwen) == expected


def test_a_table_of_every_head_is_per_head_where_there_are_as_many(roberta: BackboneShape) -> None:
    assert formula(PREFIX, roberta).endswith("P_k: 12 × 64, P_v: 12 × 64 per head")


def test_shapes_in_formulas_are_those_that_are_counted(proposals: list[tuple[BackboneShape, Candidate]]) -> None:
    for shape, candidate in proposals:
        for one in candidate.configuration.edits:
            if one.sized_form is None:
                continue
            plain = dataclasses.replace(one, form=dataclasses.replace(one.sized_form, widened=0))
            matrices = [
                (int(rows), int(columns))
                for rows, columns in re.findall(r": (\d+) × (\d+)", formula(plain, shape).partition("; ")[2])
            ]
            weights = shape.heads(one.heads) * sum(math.prod(pair) for pair in matrices)
            assert weights == affine_count(one, shape).weights_per_width * one.sized_form.width


def test_every_proposal_has_a_sentence_and_a_formula(proposals: list[tuple[BackboneShape, Candidate]]) -> None:
    for shape, candidate in proposals:
        said = sentence(candidate.configuration, shape)
        assert " at " in said
        assert "  " not in said
        assert not said.endswith(" at ")
        assert all(" <- " in formula(one, shape) for one in candidate.configuration.edits)
