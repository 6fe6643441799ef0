"""Counts against closed forms that are written here once more, by hand, per sublayer."""

import dataclasses
import random

import pytest
from support.edits import edit

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Site
from search_space.edit import Edit
from search_space.forms import Bottleneck, LowRank, OwnNorm, SoftmaxMemory
from search_space.gates import Add, ConvexGate, FixedScale, Gate, LearnedScale
from search_space.parameter_counts.counts import Counts, affine_count, count, widths

# Sizes of the made-up backbone of the fixture ``odd``.
D, H, N_KV, D_H, D_M = 11, 6, 2, 5, 17
D_Q, D_KV = H * D_H, N_KV * D_H
ENCODER, DECODER = 2, 3
ATTENTIONS, FFNS = ENCODER + 2 * DECODER, ENCODER + DECODER
WIDTH = {"x_attn": D, "res_in": D, "ctx": D, "o": D, "x_ffn": D, "res_f": D, "f": D, "norm": D}
WIDTH |= {"q": D_Q, "concat": D_Q, "k": D_KV, "v": D_KV, "g": D_M, "u": D_M, "m": D_M}
SINGLE_BLOCK = [
    *("x_attn q", "q q", "ctx k", "k k", "ctx v", "v v", "x_attn concat", "q concat", "concat concat"),
    *("x_attn o", "res_in o", "q o", "concat o", "o o"),
    *("x_ffn g", "res_f g", "g g", "x_ffn u", "res_f u", "u u", "x_ffn f", "res_f f", "m f", "f f"),
]
GATES: tuple[Gate, ...] = (Add(), FixedScale(value=2), LearnedScale())


def counts(one: Edit, shape: BackboneShape) -> Counts:
    return count(Configuration(edits=(one,)), shape)


def places(one: Edit) -> int:
    return FFNS if one.site is Site.FFN else ATTENTIONS


@pytest.mark.parametrize(
    ("site", "layers"),
    [
        (Site.ENCODER_SELF, (ENCODER,)),
        (Site.DECODER_SELF, (DECODER,)),
        (Site.CROSS, (DECODER,)),
        (Site.ATTENTION, (ENCODER, DECODER, DECODER)),
    ],
)
def test_a_reparameterized_prefix_trains_an_mlp_for_each_kind_of_attention(site, layers, odd):
    length, middle = 7, 13
    form = SoftmaxMemory(width=length, heads=Heads.KEY_VALUE, reparameterization=middle)
    found = counts(edit("head", "q", form, ConvexGate(), site=site), odd)
    assert found.stored == found.weights_only == sum(n * 2 * length * D_KV for n in layers)
    assert found.trained == sum(length * D + middle * (D + 1) + (middle + 1) * 2 * n * D_KV for n in layers)


def test_the_sublayers_nearest_the_output_are_widened(odd):
    found = widths(edit("f", "m", LowRank(width=3, widened=2)), odd)
    assert [(one.stack, one.layer, width) for one, width in found.items()] == [
        ("encoder", 0, 3),
        ("encoder", 1, 3),
        ("decoder", 0, 3),
        ("decoder", 1, 4),
        ("decoder", 2, 4),
    ]


def test_affine_count_separates_weights_biases_and_extras(odd):
    found = affine_count(edit("f", "m", Bottleneck(width=3, norm=OwnNorm.INPUT), LearnedScale()), odd)
    assert found == AffineCount(weights_per_width=D_M + D, biases_per_width=1, weights=0, biases=D, extras=2 * D_M + 1)
    assert (found.slope, found.intercept) == (D_M + D + 1, D + 2 * D_M + 1)


def test_counts_of_random_edits_are_affine_in_the_width(odd):
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
