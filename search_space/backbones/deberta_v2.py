"""DeBERTa-v3: the blocks of BERT, whose attention weighs contents and relative positions by the same projections.

Its model type is that of DeBERTa-v2, whose larger models have a convolution behind their first block, and are refused.
An edit of queries or keys is one of their projection: it acts on what is projected of the positions, too, as a change
of the weights does.
"""

from collections.abc import Mapping
from dataclasses import replace

from search_space.backbones.bert import SMALL_ENCODER, encoder_block, encoder_ports
from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortTable, attention_ports, ports_of
from search_space.backbones.parameters import ALL_BIASED, layer_norm, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Positions, Site, StackKind
from search_space.errors import UnsupportedBackboneError

_NORM_OF_POSITIONS = "encoder.LayerNorm"
_ATTENTION = attention_ports(
    read="attention.self.query_proj",
    projections=(
        "attention.self.query_proj",
        "attention.self.key_proj",
        "attention.self.value_proj",
        "attention.output.dense",
    ),
    norm="attention.output.LayerNorm",
)


def _ports(shape: BackboneShape) -> PortTable:
    like_bert = encoder_ports(shape)
    return replace(
        like_bert,
        ports={**like_bert.ports, **ports_of("encoder", Site.ENCODER_SELF, _ATTENTION)},
        stack_norms=("embeddings.LayerNorm", _NORM_OF_POSITIONS),
        positions=None,
        token_types=None,
        relative_positions=_NORM_OF_POSITIONS,
    )


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("deberta-v2", config)
    _refuse_others(entries)
    width, ffn_width = entries.size("hidden_size"), entries.size("intermediate_size")
    layers, heads = entries.size("num_hidden_layers"), entries.size("num_attention_heads")
    base = table(entries.size("vocab_size"), width) + layers * encoder_block(width, ffn_width) + 2 * layer_norm(width)
    base += table(2 * _reach(entries), width)
    return BackboneShape(
        family=entries.family,
        kind=StackKind.ENCODER,
        norm=NormPlacement.POST,
        encoder_layers=layers,
        decoder_layers=0,
        width=width,
        query_heads=heads,
        key_value_heads=heads,
        head_width=entries.share("hidden_size", "num_attention_heads"),
        ffn_width=ffn_width,
        gated_ffn=False,
        parameters=base.parameters,
        biased_ports=ALL_BIASED,
        stack_norms=2,
        positions=Positions.RELATIVE,
        parameter_tensors=base.tensors,
    )


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


DEBERTA_V2 = Family(
    name="deberta-v2",
    model_types=("deberta-v2",),
    read_shape=_read_shape,
    ports=_ports,
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
