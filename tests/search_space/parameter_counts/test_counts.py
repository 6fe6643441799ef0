"""Counts against closed forms that are written here once more, by hand, per sublayer."""

import dataclasses
import itertools
import random
from collections.abc import Callable

import pytest

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port, Site
from search_space.edit import Edit
from search_space.edit_protocol import block_widths
from search_space.forms import Bottleneck, Constant, Form, LowRank, OwnNorm, SoftmaxMemory
from search_space.gates import Add, ConvexGate, FixedScale, Gate, LearnedScale
from search_space.parameter_counts.counts import Counts, affine_count, count, widths

# Sizes of the made-up backbone of the fixture ``odd``.
D, H, N_KV, D_H, D_M = 11, 6, 2, 5, 17
D_Q, D_KV = H * D_H, N_KV * D_H
ENCODER, DECODER = 2, 3
ATTENTIONS, FFNS = ENCODER + 2 * DECODER, ENCODER + DECODER
NORMED: dict[OwnNorm, Callable[[str, str], int]] = {
    OwnNorm.NONE: lambda read, write: 0,
    OwnNorm.INPUT: lambda read, write: 2 * WIDTH[read],
    OwnNorm.OUTPUT: lambda read, write: 2 * WIDTH[write],
}
WIDTH = {"x_attn": D, "res_in": D, "ctx": D, "o": D, "x_ffn": D, "res_f": D, "f": D, "norm": D}
WIDTH |= {"q": D_Q, "concat": D_Q, "k": D_KV, "v": D_KV, "g": D_M, "u": D_M, "m": D_M}
SINGLE_BLOCK = [
    *("x_attn q", "q q", "ctx k", "k k", "ctx v", "v v", "x_attn concat", "q concat", "concat concat"),
    *("x_attn o", "res_in o", "q o", "concat o", "o o"),
    *("x_ffn g", "res_f g", "g g", "x_ffn u", "res_f u", "u u", "x_ffn f", "res_f f", "m f", "f f"),
]
GATES: tuple[Gate, ...] = (Add(), FixedScale(value=2), LearnedScale())


def edit(write: str, read: str | None, form: Form, gate: Gate | None = None, site: Site | None = None) -> Edit:
    side = Site.FFN if write in ("g", "u", "f") else Site.ATTENTION
    return Edit(
        site=site or side, write=Port(write), read=None if read is None else Port(read), form=form, gate=gate or Add()
    )


def counts(one: Edit, shape: BackboneShape) -> Counts:
    return count(Configuration(edits=(one,)), shape)


def places(one: Edit) -> int:
    return FFNS if one.site is Site.FFN else ATTENTIONS


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
@pytest.mark.parametrize("pair", SINGLE_BLOCK)
def test_one_block_has_a_matrix_from_the_read_and_one_to_the_written_width(
    pair: str, gate: Gate, odd: BackboneShape
) -> None:
    read, write = pair.split()
    r, scalar = 3, int(isinstance(gate, LearnedScale))
    into, out = r * WIDTH[read], r * WIDTH[write]
    for form in (SoftmaxMemory(width=r), LowRank(width=r)):
        one = edit(write, read, form, gate)
        n = places(one)
        assert counts(one, odd) == Counts(
            weights_only=n * (into + out),
            with_bias=n * (into + out),
            stored=n * (into + out + scalar),
            trained=n * (into + out + scalar),
        )
    for bias, norm in itertools.product((True, False), OwnNorm):
        one = edit(write, read, Bottleneck(width=r, bias=bias, norm=norm), gate)
        n, biases, norms = places(one), bias * (r + WIDTH[write]), NORMED[norm](read, write)
        assert counts(one, odd) == Counts(
            weights_only=n * (into + out),
            with_bias=n * (into + out + biases),
            stored=n * (into + out + biases + norms + scalar),
            trained=n * (into + out + biases + norms + scalar),
        )


# Weights of one unit of width at one sublayer: every head has matrices of its own. A head reads its slice of q and of
# the heads, but the whole of x_attn.
PER_UNIT = {
    ("q", Heads.QUERY): H * (D_H + D_H),
    ("q", Heads.KEY_VALUE): N_KV * (D_H + D_H),
    ("head", Heads.QUERY): H * (D_H + D_H),
    ("head", Heads.KEY_VALUE): N_KV * (D_H + D_H),
    ("x_attn", Heads.QUERY): H * (D + D_H),
    ("x_attn", Heads.KEY_VALUE): N_KV * (D + D_H),
}


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
@pytest.mark.parametrize(("read", "heads"), PER_UNIT)
def test_several_heads_have_a_block_each(read: str, heads: Heads, gate: Gate, odd: BackboneShape) -> None:
    r, scalar = 4, int(isinstance(gate, LearnedScale))
    blocks = {Heads.QUERY: H, Heads.KEY_VALUE: N_KV}[heads]
    weights = ATTENTIONS * r * PER_UNIT[read, heads]
    for form in (SoftmaxMemory(width=r, heads=heads), LowRank(width=r, heads=heads)):
        found = counts(edit("head", read, form, gate), odd)
        assert (found.weights_only, found.stored) == (weights, weights + ATTENTIONS * scalar)
    biased = counts(edit("head", read, Bottleneck(width=r, heads=heads), gate), odd)
    assert biased.with_bias == weights + ATTENTIONS * blocks * (r + D_H)
    assert biased.stored == biased.trained == biased.with_bias + ATTENTIONS * scalar
    plain = counts(edit("head", read, Bottleneck(width=r, heads=heads, bias=False), gate), odd)
    assert plain.with_bias == plain.weights_only == weights


def test_a_prefix_stores_keys_and_values_of_the_key_value_width(odd: BackboneShape) -> None:
    length = 7
    prefix = edit("head", "q", SoftmaxMemory(width=length, heads=Heads.KEY_VALUE), ConvexGate())
    expected = ATTENTIONS * 2 * length * D_KV
    assert counts(prefix, odd) == Counts(weights_only=expected, with_bias=expected, stored=expected, trained=expected)


@pytest.mark.parametrize(
    ("site", "layers"),
    [
        (Site.ENCODER_SELF, (ENCODER,)),
        (Site.DECODER_SELF, (DECODER,)),
        (Site.CROSS, (DECODER,)),
        (Site.ATTENTION, (ENCODER, DECODER, DECODER)),
    ],
)
def test_a_reparameterized_prefix_trains_an_mlp_for_each_kind_of_attention(
    site: Site, layers: tuple[int, ...], odd: BackboneShape
) -> None:
    length, middle = 7, 13
    form = SoftmaxMemory(width=length, heads=Heads.KEY_VALUE, reparameterization=middle)
    found = counts(edit("head", "q", form, ConvexGate(), site), odd)
    assert found.stored == found.weights_only == sum(n * 2 * length * D_KV for n in layers)
    assert found.trained == sum(length * D + middle * (D + 1) + (middle + 1) * 2 * n * D_KV for n in layers)


@pytest.mark.parametrize("write", ["q", "k", "v", "o", "g", "u", "f", "norm"])
def test_a_constant_is_as_long_as_the_tensor_it_is_added_to(write: str, odd: BackboneShape) -> None:
    one = edit(write, None, Constant())
    expected = places(one) * WIDTH[write]
    assert counts(one, odd) == Counts(weights_only=expected, with_bias=expected, stored=expected, trained=expected)


def test_constants_at_the_norms_of_the_stack_are_counted_once_a_norm(odd: BackboneShape) -> None:
    one = edit("norm", None, Constant(), site=Site.STACK)
    assert counts(one, odd).stored == 4 * D


@pytest.mark.parametrize(
    ("site", "sublayers"),
    [(Site.ENCODER_SELF, ENCODER), (Site.DECODER_SELF, DECODER), (Site.CROSS, DECODER), (Site.ATTENTION, ATTENTIONS)],
)
def test_an_edit_counts_at_the_sublayers_of_its_site(site: Site, sublayers: int, odd: BackboneShape) -> None:
    assert counts(edit("q", "x_attn", LowRank(width=1), site=site), odd).stored == sublayers * (D + D_Q)


def test_the_sublayers_nearest_the_output_are_widened(odd: BackboneShape) -> None:
    found = widths(edit("f", "m", LowRank(width=3, widened=2)), odd)
    assert [(one.stack, one.layer, width) for one, width in found.items()] == [
        ("encoder", 0, 3),
        ("encoder", 1, 3),
        ("decoder", 0, 3),
        ("decoder", 1, 4),
        ("decoder", 2, 4),
    ]


def test_blocks_read_and_write_slices_of_the_heads(odd: BackboneShape) -> None:
    form = Bottleneck(width=1, heads=Heads.QUERY)
    assert block_widths(edit("head", "q", form), odd) == (D_H, D_H)
    assert block_widths(edit("head", "x_attn", form), odd) == (D, D_H)
    assert block_widths(edit("concat", "q", Bottleneck(width=1)), odd) == (D_Q, D_Q)
    assert block_widths(edit("u", None, Constant()), odd) == (0, D_M)


def test_the_affine_count_keeps_weights_biases_and_extras_apart(odd: BackboneShape) -> None:
    found = affine_count(edit("f", "m", Bottleneck(width=3, norm=OwnNorm.INPUT), LearnedScale()), odd)
    assert found == AffineCount(weights_per_width=D_M + D, biases_per_width=1, weights=0, biases=D, extras=2 * D_M + 1)
    assert (found.slope, found.intercept) == (D_M + D + 1, D + 2 * D_M + 1)


def test_counts_of_random_edits_are_affine_in_the_width(odd: BackboneShape) -> None:
    draw = random.Random(11)
    for _ in range(300):
        read, write = draw.choice(SINGLE_BLOCK).split()
        form: Bottleneck | SoftmaxMemory = draw.choice(
            (Bottleneck(width=1, bias=draw.random() < 0.5, norm=draw.choice(list(OwnNorm))), SoftmaxMemory(width=1))
        )
        one = edit(write, read, form, draw.choice(GATES))
        cost, n, width = affine_count(one, odd), places(one), draw.randint(1, 40)
        widened = draw.randint(0, n - 1)
        sized = dataclasses.replace(one, form=dataclasses.replace(form, width=width, widened=widened))
        found = counts(sized, odd)
        assert found.stored == n * cost.intercept + (n * width + widened) * cost.slope
        assert found.weights_only == (n * width + widened) * (WIDTH[read] + WIDTH[write])
