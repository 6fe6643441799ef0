"""The shape of a backbone: widths of ports, lists of sublayers, and refusal of what cannot be."""

import dataclasses

import pytest

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, NormPlacement, Port, StackKind
from search_space.errors import UnsupportedBackboneError

# Every size differs from the others, so that no test passes on a mixed-up field.
SHAPE = BackboneShape(
    family="made_up",
    kind=StackKind.ENCODER_DECODER,
    norm=NormPlacement.PRE,
    encoder_layers=2,
    decoder_layers=3,
    width=11,
    query_heads=6,
    key_value_heads=2,
    head_width=5,
    ffn_width=17,
    gated_ffn=True,
    parameters=1000,
    biased_ports=frozenset(),
    stack_norms=0,
)


@pytest.mark.parametrize(
    ("ports", "width"),
    [
        ((Port.RES_IN, Port.X_ATTN, Port.CTX, Port.O, Port.RES_F, Port.X_FFN, Port.F, Port.NORM), 11),
        ((Port.Q, Port.HEAD, Port.CONCAT), 6 * 5),
        ((Port.K, Port.V), 2 * 5),
        ((Port.G, Port.U, Port.M), 17),
    ],
)
def test_a_port_is_as_wide_as_its_tensor(ports, width):
    assert {port: SHAPE.port_width(port) for port in ports} == dict.fromkeys(ports, width)


def test_heads_stand_for_the_number_of_blocks():
    assert {heads: SHAPE.heads(heads) for heads in Heads} == {
        Heads.SINGLE: 1,
        Heads.QUERY: 6,
        Heads.KEY_VALUE: 2,
    }


@pytest.mark.parametrize("size", ["width", "query_heads", "key_value_heads", "head_width", "ffn_width", "parameters"])
def test_a_size_below_one_is_refused_by_name(size):
    with pytest.raises(UnsupportedBackboneError, match=f"^{size} of a backbone must be at least 1; got 0"):
        dataclasses.replace(SHAPE, **{size: 0})


def test_a_broken_group_of_query_heads_is_refused():
    with pytest.raises(UnsupportedBackboneError, match="multiple of key/value heads; got 6 and 4"):
        dataclasses.replace(SHAPE, key_value_heads=4)


def test_a_backbone_without_layers_is_refused():
    with pytest.raises(UnsupportedBackboneError, match="at least one layer"):
        dataclasses.replace(SHAPE, encoder_layers=0, decoder_layers=0)
