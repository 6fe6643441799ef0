"""Fingerprints: what is the same function of the same parameters has one, what is not has another."""

import dataclasses
import hashlib
import itertools
import random
from typing import Any

import pytest
from support.edits import edit

from search_space.backbones.shape import BackboneShape
from search_space.canonical import canonical, fingerprint
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Port, Positions, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import Bottleneck, Constant, Diagonal, Init, LowRank, OwnNorm, Phm, SoftmaxMemory
from search_space.gates import ConvexGate, FixedScale, InducerGate, LearnedScale, Multiply
from search_space.layers import AllLayers, LayerPattern, LayerRange, SpindleGroups
from search_space.parameter_counts.counts import count
from search_space.published import published_method

PREFIX = edit("head", "q", SoftmaxMemory(width=3, heads=Heads.KEY_VALUE), ConvexGate())
UNGATED = edit("head", "q", SoftmaxMemory(width=3, heads=Heads.KEY_VALUE))
MULTI_HEAD = edit("head", "q", Bottleneck(width=3, heads=Heads.QUERY))
ADAPTER = edit("f", "x_ffn", Bottleneck(width=2))
SEQUENTIAL = edit("f", "f", Bottleneck(width=2))
LORA_Q = edit("q", "x_attn", LowRank(width=2))
LORA_V = edit("v", "ctx", LowRank(width=2))


def of(*edits: Edit) -> Configuration:
    return Configuration(edits=edits)


def with_form(one: Edit, **changes: Any) -> Edit:
    form: Any = one.form
    return dataclasses.replace(one, form=dataclasses.replace(form, **changes))


def are_one(one: Configuration, other: Configuration, shape: BackboneShape) -> bool:
    assert (fingerprint(one, shape) == fingerprint(other, shape)) is (canonical(one, shape) == canonical(other, shape))
    return fingerprint(one, shape) == fingerprint(other, shape)


def test_a_scale_of_one_is_plain_addition(roberta):
    scaled = [dataclasses.replace(ADAPTER, gate=FixedScale(value=value)) for value in (1, 1.0, 2)]
    assert are_one(of(scaled[0]), of(ADAPTER), roberta)
    assert are_one(of(scaled[1]), of(ADAPTER), roberta)
    assert not are_one(of(scaled[2]), of(ADAPTER), roberta)


@pytest.mark.parametrize("order", list(itertools.permutations((PREFIX, LORA_Q, LORA_V, ADAPTER))))
def test_order_of_parallel_edits_has_no_effect(order, roberta):
    assert are_one(of(*order), of(PREFIX, LORA_Q, LORA_V, ADAPTER), roberta)


def test_canonical_order_puts_parallel_before_sequential(roberta):
    assert are_one(of(SEQUENTIAL, ADAPTER), of(ADAPTER, SEQUENTIAL), roberta)


def test_sequential_edits_of_a_port_keep_their_order(roberta):
    linear = edit("f", "f", LowRank(width=2))
    assert not are_one(of(SEQUENTIAL, linear), of(linear, SEQUENTIAL), roberta)


def test_order_of_sequential_edits_of_other_ports_has_no_effect(bart):
    edits = [
        edit("o", "o", Bottleneck(width=2)),
        edit("q", "q", Bottleneck(width=2)),
        edit("f", "f", Bottleneck(width=2)),
        edit("norm", None, Constant()),
        edit("norm", None, Constant(), site=Site.FFN),
        edit("norm", None, Constant(), site=Site.STACK),
    ]
    expected = fingerprint(of(*edits), bart)
    draw = random.Random(5)
    for _ in range(40):
        draw.shuffle(edits)
        assert fingerprint(of(*edits), bart) == expected


def test_sequential_edits_of_different_attentions_are_independent(bart):
    kinds = [
        edit("o", "o", Bottleneck(width=2), site=site) for site in (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS)
    ]
    for order in itertools.permutations(kinds):
        assert are_one(of(*order), of(*kinds), bart)


def test_a_sequential_edit_of_every_attention_follows_those_of_one_kind(bart):
    everywhere = edit("o", "o", Bottleneck(width=2))
    at_cross = edit("o", "o", LowRank(width=2), site=Site.CROSS)
    assert not are_one(of(everywhere, at_cross), of(at_cross, everywhere), bart)
    assert canonical(of(at_cross, everywhere), bart).edits == (at_cross, everywhere)


def test_attention_is_encoder_self_attention_on_an_encoder(roberta, bart):
    narrowed = dataclasses.replace(PREFIX, site=Site.ENCODER_SELF)
    assert are_one(of(PREFIX), of(narrowed), roberta)
    assert not are_one(of(PREFIX), of(narrowed), bart)


def test_attention_is_decoder_self_attention_on_a_decoder(qwen):
    assert are_one(of(PREFIX), of(dataclasses.replace(PREFIX, site=Site.DECODER_SELF)), qwen)


@pytest.mark.parametrize(
    ("one", "read"),
    [
        (ADAPTER, Port.RES_F),
        (edit("u", "x_ffn", LowRank(width=2)), Port.RES_F),
        (edit("o", "x_attn", LowRank(width=2)), Port.RES_IN),
    ],
)
def test_residual_stream_is_sublayer_input_only_in_post_ln(one, read, shape_named):
    other = dataclasses.replace(one, read=read)
    for backbone in ("roberta_base", "bert_base_uncased", "bart_large"):
        assert are_one(of(one), of(other), shape_named(backbone))
    for backbone in ("gpt2", "mbart_large_cc25", "qwen3_0_6b"):
        assert not are_one(of(one), of(other), shape_named(backbone))


@pytest.mark.parametrize("one", [MULTI_HEAD, UNGATED, with_form(UNGATED, heads=Heads.QUERY)])
def test_kinds_of_heads_are_one_where_there_are_as_many(one, shape_named):
    by_query, by_key = (of(with_form(one, heads=heads)) for heads in (Heads.QUERY, Heads.KEY_VALUE))
    for backbone in ("roberta_base", "gpt2"):
        assert are_one(by_query, by_key, shape_named(backbone))
    for backbone in ("smollm2_135m", "qwen3_0_6b"):
        assert not are_one(by_query, by_key, shape_named(backbone))


def scaling(port: Port, **options: Any) -> Edit:
    return edit(port, port, Diagonal(), Multiply(), **options)


V13 = [(Port.K, Port.Q), (Port.CONCAT, Port.V)]


@pytest.mark.parametrize(("moved", "kept"), V13)
def test_factors_on_either_side_of_attention_are_one(moved, kept, shape_named):
    for backbone in ("roberta_base", "bart_large", "gpt2", "t5_small"):
        shape = shape_named(backbone)
        assert are_one(of(scaling(moved)), of(scaling(kept)), shape)
        assert canonical(of(scaling(moved)), shape).edits[0].write is kept
        assert count(of(scaling(moved)), shape) == count(of(scaling(kept)), shape)


@pytest.mark.parametrize(("moved", "kept"), V13)
def test_grouped_query_factors_are_not_merged(moved, kept, qwen):
    assert not are_one(of(scaling(moved)), of(scaling(kept)), qwen)


def test_factors_of_keys_and_queries_are_not_one_under_rotation(qwen):
    as_many = dataclasses.replace(qwen, key_value_heads=qwen.query_heads)
    assert not are_one(of(scaling(Port.K)), of(scaling(Port.Q)), as_many)
    assert are_one(of(scaling(Port.CONCAT)), of(scaling(Port.V)), as_many)
    still = dataclasses.replace(as_many, positions=Positions.ABSOLUTE)
    assert are_one(of(scaling(Port.K)), of(scaling(Port.Q)), still)


INDUCER = edit("o", "q", LowRank(width=2, heads=Heads.QUERY), InducerGate())


@pytest.mark.parametrize(
    ("moved", "kept", "other", "is_one"),
    [
        (Port.K, Port.Q, LORA_Q, True),
        (Port.K, Port.Q, LORA_V, True),
        (Port.K, Port.Q, PREFIX, False),
        (Port.K, Port.Q, MULTI_HEAD, False),
        (Port.K, Port.Q, INDUCER, False),
        (Port.K, Port.Q, edit("q", "q", Bottleneck(width=2)), False),
        (Port.K, Port.Q, edit("q", None, Constant()), False),
        (Port.CONCAT, Port.V, LORA_V, True),
        (Port.CONCAT, Port.V, LORA_Q, True),
        (Port.CONCAT, Port.V, PREFIX, False),
        (Port.CONCAT, Port.V, edit("o", "concat", LowRank(width=2)), False),
        (Port.CONCAT, Port.V, edit("concat", "x_attn", LowRank(width=2)), False),
        (Port.CONCAT, Port.V, edit("v", None, Constant()), False),
    ],
)
def test_factors_are_one_without_other_edits_between_them(moved, kept, other, is_one, roberta):
    assert are_one(of(scaling(moved), other), of(scaling(kept), other), roberta) is is_one
    other_layers = dataclasses.replace(other, layers=LayerRange(first=0, last=3))
    some = [of(scaling(port, layers=LayerRange(first=4, last=9)), other_layers) for port in (moved, kept)]
    assert are_one(*some, roberta)


def test_factors_of_both_keys_and_queries_stay_as_they_are(roberta):
    both = of(scaling(Port.K), scaling(Port.Q))
    assert set(canonical(both, roberta).edits) == {
        dataclasses.replace(one, site=Site.ENCODER_SELF) for one in both.edits
    }


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        (AllLayers(), LayerRange(first=0, last=11), True),
        (AllLayers(), SpindleGroups(groups=(1, 2, 3, 4)), True),
        (SpindleGroups(groups=(2, 3)), LayerRange(first=2, last=9), True),
        (SpindleGroups(groups=(1,)), LayerRange(first=0, last=1), True),
        (SpindleGroups(groups=(1, 4)), LayerRange(first=0, last=11), False),
        (SpindleGroups(groups=(1, 3)), SpindleGroups(groups=(1, 4)), False),
        (AllLayers(), LayerPattern(sixths=(1, 2, 3, 4, 5, 6)), True),
        (LayerPattern(sixths=(2, 3)), LayerRange(first=2, last=5), True),
        (LayerPattern(sixths=(1, 6)), SpindleGroups(groups=(1, 4)), True),
        (LayerPattern(sixths=(1, 3)), SpindleGroups(groups=(1, 3)), False),
        (LayerRange(first=0, last=10), LayerRange(first=0, last=11), False),
    ],
)
def test_choices_of_the_same_layers_are_one(one, other, is_one, bart):
    for whatever in (ADAPTER, PREFIX, SEQUENTIAL, with_form(ADAPTER, widened=1)):
        pair = [of(dataclasses.replace(whatever, layers=layers)) for layers in (one, other)]
        assert are_one(*pair, bart) is is_one
        assert all(count(canonical(each, bart), bart) == count(each, bart) for each in pair)


KINDS = (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS)


def everywhere(one: Edit, *sites: Site) -> tuple[Edit, ...]:
    return tuple(dataclasses.replace(one, site=site) for site in sites or KINDS)


@pytest.mark.parametrize("one", [PREFIX, LORA_Q, INDUCER, edit("o", "o", Phm(width=4))])
def test_equal_edits_at_every_kind_of_attention_are_one_at_all(one, bart):
    assert are_one(of(*everywhere(one)), of(one), bart)
    assert are_one(of(*everywhere(one)[::-1], ADAPTER), of(ADAPTER, one), bart)
    assert count(of(*everywhere(one)), bart) == count(of(one), bart)
    assert not are_one(of(*everywhere(one, *KINDS[:2])), of(one), bart)
    layers = LayerRange(first=2, last=5)
    some = dataclasses.replace(one, layers=layers)
    assert are_one(of(*everywhere(some)), of(some), bart)
    mixed = (some, *everywhere(one)[1:])
    assert not are_one(of(dataclasses.replace(mixed[0], site=Site.ENCODER_SELF), *mixed[1:]), of(one), bart)


def test_edits_that_differ_are_not_one_at_all_kinds_of_attention(bart):
    wider = (with_form(everywhere(LORA_Q)[0], width=3), *everywhere(LORA_Q)[1:])
    assert len(canonical(of(*wider), bart).edits) == 3
    widened = tuple(with_form(one, widened=2) for one in everywhere(LORA_Q))
    assert len(canonical(of(*widened), bart).edits) == 3


def test_stacks_of_unlike_depth_are_one_by_their_blocks(odd):
    first_two = dataclasses.replace(LORA_Q, layers=LayerRange(first=0, last=1))
    of_two_blocks = dataclasses.replace(LORA_Q, site=Site.ENCODER_SELF)
    separate = (of_two_blocks, *everywhere(first_two, Site.DECODER_SELF, Site.CROSS))
    assert are_one(of(*separate), of(first_two), odd)
    assert not are_one(of(*separate), of(LORA_Q), odd)


def test_sequential_edits_merge_only_when_adjacent(bart):
    adapter, linear = (edit("o", "o", form) for form in (Bottleneck(width=2), LowRank(width=2)))
    at_encoder = dataclasses.replace(linear, site=Site.ENCODER_SELF)
    first = canonical(of(at_encoder, *everywhere(adapter)), bart)
    last = canonical(of(*everywhere(adapter), at_encoder), bart)
    assert first != last
    assert canonical(of(*everywhere(adapter)), bart) == of(adapter)
    encoder, decoder, cross = everywhere(adapter)
    other = dataclasses.replace(linear, site=decoder.site)
    assert not are_one(of(decoder, other, encoder, cross), of(other, decoder, encoder, cross), bart)


def test_a_reparameterized_prefix_without_gate_has_a_canonical_form(roberta):
    configuration = published_method("prefix_tuning_additive").configuration(roberta, {"mid": 8})
    assert canonical(configuration, roberta).attention[0].heads is Heads.KEY_VALUE


DIFFERENT = {
    "width": with_form(ADAPTER, width=3),
    "widened": with_form(ADAPTER, widened=1),
    "activation": with_form(ADAPTER, activation=Activation.GELU),
    "bias": with_form(ADAPTER, bias=False),
    "norm": with_form(ADAPTER, norm=OwnNorm.INPUT),
    "init": with_form(ADAPTER, init=Init.BERT),
    "form": dataclasses.replace(ADAPTER, form=LowRank(width=2)),
    "memory": dataclasses.replace(ADAPTER, form=SoftmaxMemory(width=2)),
    "write": dataclasses.replace(ADAPTER, write=Port.U),
    "read": dataclasses.replace(ADAPTER, read=Port.M),
    "insertion": SEQUENTIAL,
    "scale 2": dataclasses.replace(ADAPTER, gate=FixedScale(value=2)),
    "scale 4": dataclasses.replace(ADAPTER, gate=FixedScale(value=4)),
    "learned scale": dataclasses.replace(ADAPTER, gate=LearnedScale()),
    "site": edit("o", "x_attn", Bottleneck(width=2)),
    "concat": edit("concat", "x_attn", Bottleneck(width=2)),
    "heads": MULTI_HEAD,
    "prefix": PREFIX,
    "ungated": UNGATED,
    "reparameterized": with_form(PREFIX, reparameterization=8),
    "constant": edit("f", None, Constant()),
    "layers": dataclasses.replace(ADAPTER, layers=SpindleGroups(groups=(1, 3))),
    "diagonal": scaling(Port.F),
    "phm": dataclasses.replace(ADAPTER, form=Phm(width=4)),
    "inducer": dataclasses.replace(MULTI_HEAD, gate=InducerGate()),
    "inducer keys": dataclasses.replace(MULTI_HEAD, gate=InducerGate(key_width=2)),
}


def test_single_differences_change_the_fingerprint(roberta):
    configurations = [of(ADAPTER), *(of(one) for one in DIFFERENT.values()), of(ADAPTER, PREFIX), of()]
    prints = [fingerprint(configuration, roberta) for configuration in configurations]
    assert len(set(prints)) == len(prints)


def test_facts_are_part_of_the_fingerprint(roberta):
    plain, slow, fast = (
        fingerprint(of(ADAPTER), roberta, **facts)
        for facts in ({}, {"learning_rates": {"ffn": "1e-3"}}, {"learning_rates": {"ffn": "2e-3"}})
    )
    assert len({plain, slow, fast}) == 3
    assert fingerprint(of(ADAPTER), roberta, learning_rates={"ffn": "1e-3"}) == slow


def test_a_fingerprint_is_32_hexadecimal_digits_of_the_stored_form(roberta):
    text = (
        '{"edits": [{"form": {"activation": "relu", "bias": true, "heads": "single", "init": "lora", '
        '"name": "bottleneck", "norm": "none", "reparameterization": null, "widened": 0, "width": 2}, '
        '"gate": {"name": "add"}, "layers": {"name": "all"}, "read": "x_ffn", "site": "ffn", "write": "f"}], '
        '"schema_version": 2}'
    )
    assert fingerprint(of(ADAPTER), roberta) == hashlib.sha256(text.encode()).hexdigest()[:32]


def test_canonical_form_keeps_count_and_fingerprint(proposals):
    draw = random.Random(3)
    for shape, candidate in proposals:
        once = canonical(candidate.configuration, shape)
        assert canonical(once, shape) == once
        assert count(once, shape) == candidate.counts
        edits = list(candidate.configuration.edits)
        draw.shuffle(edits)  # proposals have at most one sequential edit a port
        assert fingerprint(Configuration(edits=tuple(edits)), shape) == fingerprint(once, shape)


def test_invalid_configuration_has_no_fingerprint(roberta):
    for configuration in (
        of(dataclasses.replace(PREFIX, site=Site.CROSS)),
        of(ADAPTER, dataclasses.replace(ADAPTER, read=Port.RES_F)),
    ):
        with pytest.raises(InvalidEditError):
            fingerprint(configuration, roberta)
