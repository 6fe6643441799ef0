"""Configurations: their two sides, and the same structure in another size."""

import dataclasses

from support.edits import edit, resized

from search_space.configuration import Configuration
from search_space.dimensions import Heads, Site
from search_space.forms import Bottleneck, Constant, LowRank, OwnNorm, SoftmaxMemory
from search_space.gates import ConvexGate

PREFIX = edit("head", "q", SoftmaxMemory(width=3, heads=Heads.KEY_VALUE), ConvexGate())
LORA = edit("q", "x_attn", LowRank(width=2), site=Site.CROSS)
ADAPTER = edit("f", "x_ffn", Bottleneck(width=5, norm=OwnNorm.INPUT))
BIAS = edit("u", None, Constant())
STACK = edit("norm", None, Constant(), site=Site.STACK)
ALL = Configuration(edits=(ADAPTER, PREFIX, BIAS, LORA, STACK))


def test_sides_keep_edit_order_and_stack_norms_are_ffn():
    assert ALL.attention == (PREFIX, LORA)
    assert ALL.ffn == (ADAPTER, BIAS, STACK)
    for site in (Site.ATTENTION, Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS):
        one = Configuration(edits=(dataclasses.replace(LORA, site=site),))
        assert (one.attention, one.ffn) == (one.edits, ())


def test_resizing_changes_only_widths():
    other = resized(ALL, attention=(7, 1), ffn=(4, 2))
    expected = (
        dataclasses.replace(ADAPTER, form=Bottleneck(width=4, widened=2, norm=OwnNorm.INPUT)),
        dataclasses.replace(PREFIX, form=SoftmaxMemory(width=7, widened=1, heads=Heads.KEY_VALUE)),
        BIAS,
        dataclasses.replace(LORA, form=LowRank(width=7, widened=1)),
        STACK,
    )
    assert other.edits == expected
    assert ALL.edits[0] is ADAPTER
