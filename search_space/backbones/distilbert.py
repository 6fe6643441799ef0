"""DistilBERT: post-LN encoder with the blocks of BERT under other names, without token types and pooler."""

from collections.abc import Mapping

from search_space.backbones.bert import encoder_block
from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortLocation, PortTable, attention_ports, ports_of
from search_space.backbones.parameters import ALL_BIASED, layer_norm, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Site, StackKind

_ATTENTION = attention_ports(
    read="attention.q_lin",
    projections=("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),
    norm="sa_layer_norm",
)
_FFN = {
    Port.RES_F: PortLocation("ffn.lin1", "input"),
    Port.X_FFN: PortLocation("ffn.lin1", "input"),
    Port.U: PortLocation("ffn.lin1", "output"),
    Port.M: PortLocation("ffn.lin2", "input"),
    Port.F: PortLocation("ffn.lin2", "output"),
    Port.SUM: PortLocation("output_layer_norm", "input"),
    Port.NORM: PortLocation("output_layer_norm", "output"),
}


def _ports(_: BackboneShape) -> PortTable:
    return PortTable(
        layers={"encoder": "transformer.layer.{layer}"},
        attention_modules={Site.ENCODER_SELF: "attention"},
        ports=ports_of("encoder", Site.ENCODER_SELF, _ATTENTION) | ports_of("encoder", Site.FFN, _FFN),
        stack_norms=("embeddings.LayerNorm",),
        embeddings="embeddings.word_embeddings",
        positions="embeddings.position_embeddings",
    )


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("distilbert", config)
    width, heads, layers = entries.size("dim"), entries.size("n_heads"), entries.size("n_layers")
    ffn_width = entries.size("hidden_dim")
    tables = table(entries.size("vocab_size"), width) + table(entries.size("max_position_embeddings"), width)
    base = tables + layer_norm(width) + layers * encoder_block(width, ffn_width)
    return BackboneShape(
        family="distilbert",
        kind=StackKind.ENCODER,
        norm=NormPlacement.POST,
        encoder_layers=layers,
        decoder_layers=0,
        width=width,
        query_heads=heads,
        key_value_heads=heads,
        head_width=entries.share("dim", "n_heads"),
        ffn_width=ffn_width,
        gated_ffn=False,
        parameters=base.parameters,
        biased_ports=ALL_BIASED,
        stack_norms=1,
        parameter_tensors=base.tensors,
    )


DISTILBERT = Family(
    name="distilbert",
    model_types=("distilbert",),
    read_shape=_read_shape,
    ports=_ports,
    example={"vocab_size": 40, "max_position_embeddings": 21, "dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 4},
)
