"""Fingerprints: what is the same function of the same parameters has one, what is not has another."""

import dataclasses
import hashlib
import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from search_space.backbone_shape import BackboneShape
from search_space.canonical import canonical, fingerprint
from search_space.configuration import Configuration
from search_space.counting import count
from search_space.dimensions import Activation, Heads, Insertion, Port, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.form import Bottleneck, Constant, Form, Init, LowRank, SoftmaxMemory
from search_space.gate import Add, ConvexGate, FixedScale, Gate, LearnedScale
from search_space.published import PUBLISHED, published_method
from search_space.space import Candidate


def edit(site: Site, write: Port, read: Port | None, form: Form, gate: Gate | None = None) -> Edit:
    return Edit(site=site, write=write, read=read, form=form, gate=gate or Add())


PREFIX = edit(Site.ATTENTION, Port.HEAD, Port.Q, SoftmaxMemory(width=3, heads=Heads.KEY_VALUE), ConvexGate())
UNGATED = edit(Site.ATTENTION, Port.HEAD, Port.Q, SoftmaxMemory(width=3, heads=Heads.KEY_VALUE))
MULTI_HEAD = edit(Site.ATTENTION, Port.HEAD, Port.Q, Bottleneck(width=3, heads=Heads.QUERY))
ADAPTER = edit(Site.FFN, Port.F, Port.X_FFN, Bottleneck(width=2))
SEQUENTIAL = edit(Site.FFN, Port.F, Port.F, Bottleneck(width=2))
LORA_Q = edit(Site.ATTENTION, Port.Q, Port.X_ATTN, LowRank(width=2))
LORA_V = edit(Site.ATTENTION, Port.V, Port.CTX, LowRank(width=2))


def of(*edits: Edit) -> Configuration:
    return Configuration(edits=edits)


def with_form(one: Edit, **changes: Any) -> Edit:
    form: Any = one.form
    return dataclasses.replace(one, form=dataclasses.replace(form, **changes))


def are_one(one: Configuration, other: Configuration, shape: BackboneShape) -> bool:
    assert (fingerprint(one, shape) == fingerprint(other, shape)) is (canonical(one, shape) == canonical(other, shape))
    return fingerprint(one, shape) == fingerprint(other, shape)


def test_a_scale_of_one_is_plain_addition(roberta: BackboneShape) -> None:
    scaled = [dataclasses.replace(ADAPTER, gate=FixedScale(value=value)) for value in (1, 1.0, 2)]
    assert are_one(of(scaled[0]), of(ADAPTER), roberta)
    assert are_one(of(scaled[1]), of(ADAPTER), roberta)
    assert not are_one(of(scaled[2]), of(ADAPTER), roberta)


def test_a_learned_scale_is_not_plain_addition(roberta: BackboneShape) -> None:
    assert not are_one(of(dataclasses.replace(ADAPTER, gate=LearnedScale())), of(ADAPTER), roberta)


@pytest.mark.parametrize("order", list(itertools.permutations((PREFIX, LORA_Q, LORA_V, ADAPTER))))
def test_the_order_of_parallel_edits_means_nothing(order: tuple[Edit, ...], roberta: BackboneShape) -> None:
    assert are_one(of(*order), of(PREFIX, LORA_Q, LORA_V, ADAPTER), roberta)


def test_parallel_edits_of_a_port_come_before_sequential_ones_whatever_the_order(roberta: BackboneShape) -> None:
    assert are_one(of(SEQUENTIAL, ADAPTER), of(ADAPTER, SEQUENTIAL), roberta)


def test_sequential_edits_of_a_port_keep_their_order(roberta: BackboneShape) -> None:
    linear = edit(Site.FFN, Port.F, Port.F, LowRank(width=2))
    assert not are_one(of(SEQUENTIAL, linear), of(linear, SEQUENTIAL), roberta)


def test_the_order_of_sequential_edits_of_different_ports_means_nothing(bart: BackboneShape) -> None:
    edits = [
        edit(Site.ATTENTION, Port.O, Port.O, Bottleneck(width=2)),
        edit(Site.ATTENTION, Port.Q, Port.Q, Bottleneck(width=2)),
        edit(Site.FFN, Port.F, Port.F, Bottleneck(width=2)),
        edit(Site.ATTENTION, Port.NORM, None, Constant()),
        edit(Site.FFN, Port.NORM, None, Constant()),
        edit(Site.STACK, Port.NORM, None, Constant()),
    ]
    expected = fingerprint(of(*edits), bart)
    draw = random.Random(5)
    for _ in range(40):
        draw.shuffle(edits)
        assert fingerprint(of(*edits), bart) == expected


def test_sequential_edits_of_different_kinds_of_attention_do_not_follow_one_another(bart: BackboneShape) -> None:
    kinds = [
        edit(site, Port.O, Port.O, Bottleneck(width=2)) for site in (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS)
    ]
    for order in itertools.permutations(kinds):
        assert are_one(of(*order), of(*kinds), bart)


def test_a_sequential_edit_of_every_attention_follows_those_of_one_kind(bart: BackboneShape) -> None:
    everywhere = edit(Site.ATTENTION, Port.O, Port.O, Bottleneck(width=2))
    at_cross = edit(Site.CROSS, Port.O, Port.O, LowRank(width=2))
    assert not are_one(of(everywhere, at_cross), of(at_cross, everywhere), bart)
    assert canonical(of(at_cross, everywhere), bart).edits == (at_cross, everywhere)


def test_attention_is_encoder_self_attention_on_an_encoder(roberta: BackboneShape, bart: BackboneShape) -> None:
    narrowed = dataclasses.replace(PREFIX, site=Site.ENCODER_SELF)
    assert are_one(of(PREFIX), of(narrowed), roberta)
    assert not are_one(of(PREFIX), of(narrowed), bart)


def test_attention_is_decoder_self_attention_on_a_decoder(qwen: BackboneShape) -> None:
    assert are_one(of(PREFIX), of(dataclasses.replace(PREFIX, site=Site.DECODER_SELF)), qwen)


@pytest.mark.parametrize(
    ("one", "read"),
    [
        (ADAPTER, Port.RES_F),
        (edit(Site.FFN, Port.U, Port.X_FFN, LowRank(width=2)), Port.RES_F),
        (edit(Site.ATTENTION, Port.O, Port.X_ATTN, LowRank(width=2)), Port.RES_IN),
    ],
)
def test_the_residual_stream_is_the_sublayer_input_on_post_ln_backbones_only(
    one: Edit, read: Port, shape_named: Callable[[str], BackboneShape]
) -> None:
    other = dataclasses.replace(one, read=read)
    for backbone in ("roberta_base", "bert_base_uncased", "bart_large"):
        assert are_one(of(one), of(other), shape_named(backbone))
    for backbone in ("gpt2", "mbart_large_cc25", "qwen3_0_6b"):
        assert not are_one(of(one), of(other), shape_named(backbone))


@pytest.mark.parametrize("one", [MULTI_HEAD, UNGATED, with_form(UNGATED, heads=Heads.QUERY)])
def test_kinds_of_heads_are_one_where_there_are_as_many(one: Edit, shape_named: Callable[[str], BackboneShape]) -> None:
    by_query, by_key = (of(with_form(one, heads=heads)) for heads in (Heads.QUERY, Heads.KEY_VALUE))
    for backbone in ("roberta_base", "gpt2"):
        assert are_one(by_query, by_key, shape_named(backbone))
    for backbone in ("smollm2_135m", "qwen3_0_6b"):
        assert not are_one(by_query, by_key, shape_named(backbone))


def test_a_reparameterized_prefix_without_gate_has_a_canonical_form(roberta: BackboneShape) -> None:
    configuration = published_method("prefix_tuning_additive").configuration(roberta, {"mid": 8})
    assert canonical(configuration, roberta).attention[0].heads is Heads.KEY_VALUE


DIFFERENT = {
    "width": with_form(ADAPTER, width=3),
    "widened": with_form(ADAPTER, widened=1),
    "activation": with_form(ADAPTER, activation=Activation.GELU),
    "bias": with_form(ADAPTER, bias=False),
    "norm": with_form(ADAPTER, norm=True),
    "init": with_form(ADAPTER, init=Init.BERT),
    "form": dataclasses.replace(ADAPTER, form=LowRank(width=2)),
    "memory": dataclasses.replace(ADAPTER, form=SoftmaxMemory(width=2)),
    "write": dataclasses.replace(ADAPTER, write=Port.U),
    "read": dataclasses.replace(ADAPTER, read=Port.M),
    "insertion": SEQUENTIAL,
    "scale 2": dataclasses.replace(ADAPTER, gate=FixedScale(value=2)),
    "scale 4": dataclasses.replace(ADAPTER, gate=FixedScale(value=4)),
    "learned scale": dataclasses.replace(ADAPTER, gate=LearnedScale()),
    "site": edit(Site.ATTENTION, Port.O, Port.X_ATTN, Bottleneck(width=2)),
    "concat": edit(Site.ATTENTION, Port.CONCAT, Port.X_ATTN, Bottleneck(width=2)),
    "heads": MULTI_HEAD,
    "prefix": PREFIX,
    "ungated": UNGATED,
    "reparameterized": with_form(PREFIX, reparameterization=8),
    "constant": edit(Site.FFN, Port.F, None, Constant()),
}


def test_what_differs_in_one_thing_has_a_fingerprint_of_its_own(roberta: BackboneShape) -> None:
    configurations = [of(ADAPTER), *(of(one) for one in DIFFERENT.values()), of(ADAPTER, PREFIX), of()]
    prints = [fingerprint(configuration, roberta) for configuration in configurations]
    assert len(set(prints)) == len(prints)


def test_facts_are_part_of_the_fingerprint(roberta: BackboneShape) -> None:
    plain, slow, fast = (
        fingerprint(of(ADAPTER), roberta, **facts)
        for facts in ({}, {"learning_rates": {"ffn": "1e-3"}}, {"learning_rates": {"ffn": "2e-3"}})
    )
    assert len({plain, slow, fast}) == 3
    assert fingerprint(of(ADAPTER), roberta, learning_rates={"ffn": "1e-3"}) == slow


def test_a_fingerprint_is_32_hexadecimal_digits_of_the_stored_form(roberta: BackboneShape) -> None:
    text = (
        '{"edits": [{"form": {"activation": "relu", "bias": true, "heads": "single", "init": "lora", '
        '"name": "bottleneck", "norm": false, "widened": 0, "width": 2}, "gate": {"name": "add"}, '
        '"read": "x_ffn", "site": "ffn", "write": "f"}], "schema_version": 1}'
    )
    assert fingerprint(of(ADAPTER), roberta) == hashlib.sha256(text.encode()).hexdigest()[:32]


@pytest.mark.parametrize("name", [method.name for method in PUBLISHED])
@pytest.mark.parametrize("backbone", ["roberta_base", "bart_large", "gpt2", "qwen2_5_0_5b"])
def test_the_canonical_form_of_a_published_method_is_its_own(
    name: str, backbone: str, shape_named: Callable[[str], BackboneShape]
) -> None:
    shape = shape_named(backbone)
    configuration = published_method(name).configuration(shape)
    once = canonical(configuration, shape)
    assert canonical(once, shape) == once
    assert count(once, shape) == count(configuration, shape)


def test_proposals_keep_count_and_fingerprint_in_canonical_form_and_in_any_order(
    proposals: list[tuple[BackboneShape, Candidate]],
) -> None:
    draw = random.Random(3)
    for shape, candidate in proposals:
        once = canonical(candidate.configuration, shape)
        assert canonical(once, shape) == once
        assert count(once, shape) == candidate.counts
        edits = list(candidate.configuration.edits)
        draw.shuffle(edits)  # proposals have at most one sequential edit a port
        assert fingerprint(Configuration(edits=tuple(edits)), shape) == fingerprint(once, shape)


def test_sequential_edits_stay_behind_parallel_ones(proposals: list[tuple[BackboneShape, Candidate]]) -> None:
    for shape, candidate in proposals:
        insertions = [one.insertion for one in canonical(candidate.configuration, shape).edits]
        assert insertions == sorted(insertions, key=[Insertion.PARALLEL, Insertion.SEQUENTIAL].index)


def test_a_configuration_that_is_not_valid_on_the_backbone_has_no_fingerprint(roberta: BackboneShape) -> None:
    for configuration in (
        of(dataclasses.replace(PREFIX, site=Site.CROSS)),
        of(ADAPTER, dataclasses.replace(ADAPTER, read=Port.RES_F)),
    ):
        with pytest.raises(InvalidEditError):
            fingerprint(configuration, roberta)
