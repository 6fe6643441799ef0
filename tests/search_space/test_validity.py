"""Validity rules: each refuses its cases with its name in one line; everything else is accepted."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from support.edits import edit

from search_space.configuration import Configuration
from search_space.dimensions import Heads, NormPlacement, Port, ScalePer, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    Dora,
    Full,
    Intrinsic,
    LowRank,
    OwnNorm,
    Phm,
    Prompt,
    SoftmaxMemory,
)
from search_space.gates import (
    Add,
    ConvexGate,
    ConvexSampleGate,
    FixedScale,
    Gate,
    LearnedScale,
    Multiply,
    Prepend,
    SampleGate,
    SigmoidGate,
    TanhGate,
)
from search_space.layers import LayerPattern, LayerRange, SpindleGroups
from search_space.parameter_counts.counts import count
from search_space.rules import RULES
from search_space.validity import canonical_read, check_on

MEMORY = SoftmaxMemory(width=1)
ATTENTION_SITES = (Site.ATTENTION, Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS)
# What may be read for each port that is written, by hand from the picture of a block: the port itself, or one that is
# computed before it at the same tokens. Keys and values come from ctx alone: under cross-attention those are others.


def prefix(gate: Gate | None = None, **changed: Any) -> Edit:
    form = SoftmaxMemory(**{"width": 2, "heads": Heads.KEY_VALUE, **changed})
    return edit("head", "q", form, gate or ConvexGate())


def bias(write: str, site: Site = Site.FFN) -> Edit:
    return edit(write, None, Constant(), site=site)


PROMPT = edit("embed", None, Prompt(width=2), Prepend())


def adapters(*reads: Port) -> tuple[Edit, ...]:
    return tuple(edit("f", read, Bottleneck(width=1)) for read in reads)


Build = Callable[[], object]
# (rule, what the message says was got, what breaks it), for the rules that need no backbone
ALONE: list[tuple[str, str, Build]] = [
    ("V1", "bottleneck reading x_ffn, writing f", lambda: edit("f", "x_ffn", Bottleneck(width=1), ConvexGate())),
    ("V10", "query_heads at o", lambda: edit("o", "o", Bottleneck(width=1, heads=Heads.QUERY))),
    ("V17", "1 widened", lambda: prefix(reparameterization=8, widened=1)),
    ("V18", "two at attn", lambda: Configuration(edits=(prefix(), prefix(width=9)))),
    ("read", "read nothing for write q", lambda: edit("q", None, LowRank(width=1))),
    ("site", "write f at attn", lambda: edit("f", "f", LowRank(width=1), site=Site.ATTENTION)),
    ("V15", "6 and n 4", lambda: Phm(width=6)),
    ("V17", "softmax_memory reading q", lambda: prefix(Add(), robust=True)),
    ("V19", "prompt at ffn", lambda: edit("f", None, Prompt(width=1))),
    ("V19", "prompt at embed with gate add", lambda: dataclasses.replace(PROMPT, gate=Add())),
    ("V19", "full at ffn", lambda: edit("f", None, Full())),
    ("V19", "full with gate scale", lambda: edit("weights", None, Full(), FixedScale(value=2))),
    ("V19", "prompt and prompt", lambda: Configuration(edits=(PROMPT, PROMPT))),
    ("read", "a prompt that reads embed", lambda: dataclasses.replace(PROMPT, read=Port.EMBEDDING)),
    ("mul", "diag from x_attn to o with gate mul", lambda: edit("o", "x_attn", Diagonal(), Multiply())),
    ("decomposed", "dora from x_ffn to f", lambda: edit("f", "x_ffn", Dora(width=1))),
    ("decomposed", "dora with gate sigmoid", lambda: edit("f", "m", Dora(width=1), SigmoidGate())),
    ("dead", "bottleneck with gate tanh", lambda: edit("f", "f", Bottleneck(width=1), TanhGate())),
    ("per", "one per head at f", lambda: edit("f", "f", LowRank(width=1), LearnedScale(per=ScalePer.HEAD))),
    ("layers", "3 to 2", lambda: LayerRange(first=3, last=2)),
    ("layers", "(2, 1)", lambda: SpindleGroups(groups=(2, 1))),
    ("layers", "()", lambda: LayerPattern(sixths=())),
    ("layers", "(3, 3)", lambda: LayerPattern(sixths=(3, 3))),
    ("layers", "layers range at embed", lambda: dataclasses.replace(PROMPT, layers=LayerRange(first=0, last=0))),
    (
        "twice",
        "two lowrank from m to f",
        lambda: Configuration(edits=tuple(edit("f", "m", LowRank(width=1)) for _ in range(2))),
    ),
    ("width", "0", lambda: Intrinsic(width=0)),
    ("site", "write q at stack", lambda: bias("q", Site.STACK)),
    ("gate", "gate scale", lambda: edit("f", None, Constant(), FixedScale(value=2))),
    (
        "norm",
        "query_heads with a norm",
        lambda: edit("head", "q", Bottleneck(width=1, heads=Heads.QUERY, norm=OwnNorm.INPUT)),
    ),
    ("width", "0", lambda: LowRank(width=0)),
    ("width", "2.0", lambda: LowRank(width=2.0)),  # type: ignore[arg-type]
    ("width", "0", lambda: prefix(reparameterization=0)),
    *(("scale", f"{scale}", lambda scale=scale: FixedScale(value=scale)) for scale in (0, -1.0)),
    *(("scale", scale, lambda scale=scale: FixedScale(value=float(scale))) for scale in ("nan", "inf")),
]
# (rule, backbone, what the message says was got, edits that break it there)
ON_A_BACKBONE: list[tuple[str, str, str, Callable[[], tuple[Edit, ...]]]] = [
    ("V14", "qwen3_0_6b", "attn q on qwen3", lambda: (bias("q", Site.ATTENTION),)),
    ("V14", "qwen2_5_0_5b", "attn o on qwen2", lambda: (bias("o", Site.ATTENTION),)),
    ("V14", "roberta_base", "attn head on roberta", lambda: (bias("head", Site.ENCODER_SELF),)),
    ("V14", "llama3_2_1b", "llama, whose stack has no biased", lambda: (bias("norm", Site.STACK),)),
    ("V15", "roberta_base", "rank 769 where 768", lambda: (edit("f", "m", LowRank(width=769)),)),
    ("V15", "roberta_base", "rank 769 where 768", lambda: (edit("f", "m", LowRank(width=768, widened=1)),)),
    ("V15", "qwen2_5_0_5b", "rank 129 where 128", lambda: (edit("v", "ctx", LowRank(width=129)),)),
    (
        "V11",
        "roberta_base",
        "rank 65 where 64",
        lambda: (edit("head", "q", LowRank(width=65, heads=Heads.QUERY)),),
    ),
    (
        "V11",
        "qwen3_0_6b",
        "rank 129 where 128",
        lambda: (edit("head", "x_attn", LowRank(width=129, heads=Heads.KEY_VALUE)),),
    ),
    ("V14", "roberta_base", "ffn m on roberta", lambda: (bias("m"),)),
    ("sample", "gpt2", "gate sigmoid_sample on gpt2", lambda: (edit("f", "f", LowRank(width=1), SampleGate()),)),
    ("sample", "bart_large", "gate lse_convex_sample on bart", lambda: (prefix(ConvexSampleGate()),)),
    ("V15", "roberta_base", "n 5 for widths 768 and 768", lambda: (edit("f", "f", Phm(width=5, n=5)),)),
    ("V15", "qwen3_0_6b", "widths 1024 and 2048", lambda: (edit("concat", "x_attn", Diagonal()),)),
    (
        "layers",
        "gpt2",
        "LayerRange(first=0, last=12) on gpt2",
        lambda: (dataclasses.replace(prefix(), layers=LayerRange(first=0, last=12)),),
    ),
    (
        "twice",
        "gpt2",
        "two bottleneck from x_ffn to f",
        lambda: tuple(
            dataclasses.replace(one, layers=layers)
            for one, layers in zip(
                adapters(Port.X_FFN, Port.X_FFN), (LayerRange(first=0, last=2), SpindleGroups(groups=(2,))), strict=True
            )
        ),
    ),
    ("width", "gpt2", "intrinsic of 200,000,000 where", lambda: (edit("weights", None, Intrinsic(width=200_000_000)),)),
    ("ports", "bert_base_uncased", "g on bert", lambda: (edit("g", "x_ffn", LowRank(width=1)),)),
    ("sublayers", "roberta_base", "cross on roberta", lambda: (dataclasses.replace(prefix(), site=Site.CROSS),)),
    ("sublayers", "gpt2", "enc_self on gpt2", lambda: (dataclasses.replace(prefix(), site=Site.ENCODER_SELF),)),
    ("width", "gpt2", "12 widened sublayers of 12", lambda: (prefix(widened=12),)),
    ("width", "bart_large", "36 widened sublayers of 36", lambda: (prefix(widened=36),)),
    ("twice", "roberta_base", "two bottleneck from x_ffn to f", lambda: adapters(Port.RES_F, Port.X_FFN)),
]


def assert_tells(error: InvalidEditError, rule: str, got: str) -> None:
    text = str(error)
    assert error.rule == rule
    must, _, what = text.partition("; got ")
    assert must == RULES[rule] or " must be " in must or " has one length" in must
    assert got in what
    assert text.endswith(f" [{rule}]")
    assert "\n" not in text
    assert "None" not in text


@pytest.mark.parametrize(
    ("rule", "got", "build"), ALONE, ids=[f"{rule}-{index}" for index, (rule, *_) in enumerate(ALONE)]
)
def test_a_broken_rule_is_named_in_one_line(rule, got, build):
    with pytest.raises(InvalidEditError) as caught:
        build()
    assert_tells(caught.value, rule, got)


@pytest.mark.parametrize(
    ("rule", "backbone", "got", "build"),
    ON_A_BACKBONE,
    ids=[f"{rule}-{backbone}-{index}" for index, (rule, backbone, *_) in enumerate(ON_A_BACKBONE)],
)
def test_a_rule_that_is_broken_on_a_backbone_is_named_in_one_line(rule, backbone, got, build, shape_named):
    configuration = Configuration(edits=build())
    for check in (check_on, lambda edits, shape: count(Configuration(edits=edits), shape)):
        with pytest.raises(InvalidEditError) as caught:
            check(configuration.edits, shape_named(backbone))
        assert_tells(caught.value, rule, got)


def test_every_rule_is_broken_by_a_test():
    assert {rule for rule, *_ in (*ALONE, *ON_A_BACKBONE)} == set(RULES)


def test_the_largest_ranks_are_accepted(roberta):
    check_on((edit("f", "m", LowRank(width=768)), edit("o", "o", LowRank(width=767, widened=11))), roberta)
    check_on((edit("head", "q", LowRank(width=64, heads=Heads.QUERY)),), roberta)


def test_nonlinear_forms_have_no_largest_width(roberta):
    check_on((edit("f", "x_ffn", Bottleneck(width=5000)), prefix(width=5000)), roberta)


@pytest.mark.parametrize(
    ("write", "read", "heads", "largest"),
    [
        (Port.Q, Port.X_ATTN, Heads.SINGLE, 11),  # min(d = 11, d_q = 30)
        (Port.Q, Port.Q, Heads.SINGLE, 30),
        (Port.K, Port.CTX, Heads.SINGLE, 10),  # d_kv
        (Port.O, Port.CONCAT, Heads.SINGLE, 11),
        (Port.CONCAT, Port.CONCAT, Heads.SINGLE, 30),
        (Port.HEAD, Port.X_ATTN, Heads.QUERY, 5),  # d_h
        (Port.HEAD, Port.Q, Heads.KEY_VALUE, 5),
    ],
)
def test_a_rank_is_bounded_by_the_narrower_of_the_two_tensors(write, read, heads, largest, odd):
    one = edit(write, read, LowRank(width=1, heads=heads))
    assert one.form.largest_width(one, odd) == largest


def test_a_head_that_is_wider_than_the_model_is_bounded_by_the_model(odd):
    narrow = dataclasses.replace(odd, width=3)
    of_all, of_head = (edit("head", read, LowRank(width=1, heads=Heads.QUERY)) for read in ("x_attn", "head"))
    assert (of_all.form.largest_width(of_all, narrow), of_head.form.largest_width(of_head, narrow)) == (3, 5)


def test_two_edits_may_write_one_port_when_they_differ_in_form_or_read(qwen):
    lora = edit("o", "concat", LowRank(width=1))
    edits = (
        lora,
        dataclasses.replace(lora, read=Port.X_ATTN),
        dataclasses.replace(lora, form=Bottleneck(width=1)),
        prefix(),
        prefix(Add()),  # gated and ungated memories beside each other are not one of summed length
    )
    check_on(Configuration(edits=edits).edits, qwen)


def test_edits_of_kinds_of_attention_that_do_not_overlap_are_not_one(bart):
    edits = [dataclasses.replace(prefix(), site=site) for site in ATTENTION_SITES[1:]]
    check_on(Configuration(edits=tuple(edits)).edits, bart)


def test_residual_stream_differs_from_sublayer_input_in_pre_ln(qwen):
    check_on(Configuration(edits=adapters(Port.RES_F, Port.X_FFN)).edits, qwen)


def test_reads_have_one_name_on_post_ln_backbones(roberta):
    other = {None: None, Port.RES_IN: Port.X_ATTN, Port.RES_F: Port.X_FFN}
    pre = dataclasses.replace(roberta, norm=NormPlacement.PRE)
    for read in (None, *Port):
        assert canonical_read(read, roberta) == other.get(read, read)
        assert canonical_read(read, pre) == read
