"""The shape of a backbone: widths of ports, lists of sublayers, and refusal of what cannot be."""

import dataclasses

import pytest

from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.dimensions import Heads, NormPlacement, Port, Site, StackKind
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
def test_a_port_is_as_wide_as_its_tensor(ports: tuple[Port, ...], width: int) -> None:
    assert {port: SHAPE.port_width(port) for port in ports} == dict.fromkeys(ports, width)


def test_heads_stand_for_the_number_of_blocks() -> None:
    assert {heads: SHAPE.heads(heads) for heads in Heads} == {
        Heads.SINGLE: 1,
        Heads.QUERY: 6,
        Heads.KEY_VALUE: 2,
    }


def test_an_encoder_decoder_has_attention_of_three_kinds() -> None:
    encoder = [Sublayer(site=Site.ENCODER_SELF, stack="encoder", layer=layer) for layer in range(2)]
    decoder = [Sublayer(site=Site.DECODER_SELF, stack="decoder", layer=layer) for layer in range(3)]
    cross = [Sublayer(site=Site.CROSS, stack="decoder", layer=layer) for layer in range(3)]
    assert SHAPE.sublayers(Site.ENCODER_SELF) == tuple(encoder)
    assert SHAPE.sublayers(Site.DECODER_SELF) == tuple(decoder)
    assert SHAPE.sublayers(Site.CROSS) == tuple(cross)
    assert SHAPE.sublayers(Site.ATTENTION) == (*encoder, *decoder, *cross)


def test_every_block_has_an_ffn_in_order_from_the_input() -> None:
    assert [(sublayer.stack, sublayer.layer) for sublayer in SHAPE.sublayers(Site.FFN)] == [
        ("encoder", 0),
        ("encoder", 1),
        ("decoder", 0),
        ("decoder", 1),
        ("decoder", 2),
    ]


def test_the_stack_itself_has_no_sublayers() -> None:
    assert SHAPE.sublayers(Site.STACK) == ()


def test_a_decoder_alone_has_no_cross_attention() -> None:
    decoder = dataclasses.replace(SHAPE, kind=StackKind.DECODER, encoder_layers=0)
    assert decoder.sublayers(Site.CROSS) == ()
    assert decoder.sublayers(Site.ATTENTION) == decoder.sublayers(Site.DECODER_SELF)


@pytest.mark.parametrize("size", ["width", "query_heads", "key_value_heads", "head_width", "ffn_width", "parameters"])
def test_a_size_below_one_is_refused_by_name(size: str) -> None:
    with pytest.raises(UnsupportedBackboneError, match=f"^{size} of a backbone must be at least 1; got 0"):
        dataclasses.replace(SHAPE, **{size: 0})


def test_a_broken_group_of_query_heads_is_refused() -> None:
    with pytest.raises(UnsupportedBackboneError, match="multiple of key/value heads; got 6 and 4"):
        dataclasses.replace(SHAPE, key_value_heads=4)


def test_a_backbone_without_layers_is_refused() -> None:
    with pytest.raises(UnsupportedBackboneError, match="at least one layer"):
        dataclasses.replace(SHAPE, encoder_layers=0, decoder_layers=0)
