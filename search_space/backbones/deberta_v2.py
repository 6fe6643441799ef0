"""DeBERTa-v3: the blocks of BERT, whose attention weighs contents and relative positions by the same projections.

Its model type is that of DeBERTa-v2, whose larger models have a convolution behind their first block, and are refused.
An edit of queries or keys is one of their projection: it acts on what is projected of the positions, too, as a change
of the weights does.
"""

from dataclasses import replace

from search_space.backbones.bert import SMALL_ENCODER, encoder_ports, encoder_shape
from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import BackboneFamily
from search_space.backbones.parameters import layer_norm, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Positions
from search_space.errors import UnsupportedBackboneError

_NORM_OF_POSITIONS = "encoder.LayerNorm"
_QUERY, _KEY, _VALUE = (f"attention.self.{name}_proj" for name in ("query", "key", "value"))
_PORTS = replace(
    encoder_ports((_QUERY, _KEY, _VALUE, "attention.output.dense")),
    stack_norms=("embeddings.LayerNorm", _NORM_OF_POSITIONS),
    positions=None,
    token_types=None,
    relative_positions=_NORM_OF_POSITIONS,
)


def _shape(entries: ConfigEntries) -> BackboneShape:
    _refuse_others(entries)
    width = entries.size("hidden_size")
    of_positions = table(2 * _reach(entries), width) + layer_norm(width)
    shape = encoder_shape(entries, tables=("vocab_size",), beside=of_positions)
    return replace(shape, stack_norms=2, positions=Positions.RELATIVE)


def _reach(entries: ConfigEntries) -> int:
    """Distances to either side that have rows of their own in the table of relative positions."""
    for name in ("position_buckets", "max_relative_positions"):
        value = entries.entries.get(name)
        if isinstance(value, int) and value > 0:
            return value
    return entries.size("max_position_embeddings")


def _refuse_others(entries: ConfigEntries) -> None:
    """What earlier models of the type have, and DeBERTa-v3 has not."""
    for name in ("type_vocab_size", "conv_kernel_size", "embedding_size", "attention_head_size"):
        entries.refuse(name)
    for name in ("relative_attention", "share_att_key"):
        if not entries.flag(name, default=False):
            raise _other(name, "true", entries)
    if entries.flag("position_biased_input", default=True):
        raise _other("position_biased_input", "false", entries)
    if entries.text_or("norm_rel_ebd", "none") != "layer_norm":
        raise _other("norm_rel_ebd", "'layer_norm'", entries)
    kinds = entries.entries.get("pos_att_type")
    named = kinds.split("|") if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    if {str(one).strip() for one in named} != {"c2p", "p2c"}:
        raise _other("pos_att_type", "'p2c|c2p'", entries)


def _other(name: str, must: str, entries: ConfigEntries) -> UnsupportedBackboneError:
    got = repr(entries.entries[name]) if name in entries.entries else "no such entry"
    return UnsupportedBackboneError(
        f"{name} of a {entries.family} config must be {must}, as in DeBERTa-v3; got {got}. Use another backbone."
    )


DEBERTA_V2 = BackboneFamily(
    name="deberta-v2",
    words="DeBERTa-v3: the blocks of BERT, whose attention weighs contents and relative positions by the same "
    "projections.",
    model_types=("deberta-v2",),
    shape_from=_shape,
    ports=lambda _: _PORTS,
    example={
        **{name: size for name, size in SMALL_ENCODER.items() if name != "type_vocab_size"},
        "relative_attention": True,
        "position_buckets": 4,
        "max_relative_positions": -1,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
    },
)
