"""The shape of a backbone: widths of ports, lists of sublayers, and refusal of what cannot be."""

import dataclasses

import pytest

from search_space.dimensions import Heads, Port
from search_space.errors import UnsupportedBackboneError


@pytest.mark.parametrize(
    ("ports", "width"),
    [
        ((Port.RES_IN, Port.X_ATTN, Port.CTX, Port.O, Port.RES_F, Port.X_FFN, Port.F, Port.NORM), 11),
        ((Port.Q, Port.HEAD, Port.CONCAT), 6 * 5),
        ((Port.K, Port.V), 2 * 5),
        ((Port.G, Port.U, Port.M), 17),
    ],
)
def test_a_port_is_as_wide_as_its_tensor(ports, width, odd):
    assert {port: odd.port_width(port) for port in ports} == dict.fromkeys(ports, width)


def test_heads_stand_for_the_number_of_blocks(odd):
    assert {heads: odd.heads(heads) for heads in Heads} == {
        Heads.SINGLE: 1,
        Heads.QUERY: 6,
        Heads.KEY_VALUE: 2,
    }


SIZES = ("width", "query_heads", "key_value_heads", "head_width", "ffn_width", "parameters")


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        *(({size: 0}, f"^{size} of a backbone must be at least 1; got 0") for size in SIZES),
        ({"key_value_heads": 4}, "multiple of key/value heads; got 6 and 4"),
        ({"encoder_layers": 0, "decoder_layers": 0}, "at least one layer"),
    ],
)
def test_impossible_sizes_are_refused(sizes, reason, odd):
    with pytest.raises(UnsupportedBackboneError, match=reason):
        dataclasses.replace(odd, **sizes)
