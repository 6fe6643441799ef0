"""BERT: post-LN encoder with learned positions. RoBERTa has the same modules and entries."""

from collections.abc import Mapping

from search_space.backbone_shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Site, StackKind
from search_space.errors import UnsupportedBackboneError
from search_space.families.entries import ConfigEntries
from search_space.families.family import Family, PortLocation, PortTable
from search_space.families.parameters import ALL_BIASED, layer_norm, linear

__all__ = ["BERT", "ENCODER_PORTS", "encoder_shape"]

ENCODER_PORTS = PortTable(
    layers={"encoder": "encoder.layer.{layer}"},
    attention_modules={Site.ENCODER_SELF: "attention.self"},
    ports={
        (Site.ENCODER_SELF, Port.RES_IN): PortLocation("attention.self.query", "input"),
        (Site.ENCODER_SELF, Port.X_ATTN): PortLocation("attention.self.query", "input"),
        (Site.ENCODER_SELF, Port.CTX): PortLocation("attention.self.key", "input"),
        (Site.ENCODER_SELF, Port.Q): PortLocation("attention.self.query", "output"),
        (Site.ENCODER_SELF, Port.K): PortLocation("attention.self.key", "output"),
        (Site.ENCODER_SELF, Port.V): PortLocation("attention.self.value", "output"),
        (Site.ENCODER_SELF, Port.CONCAT): PortLocation("attention.output.dense", "input"),
        (Site.ENCODER_SELF, Port.O): PortLocation("attention.output.dense", "output"),
        (Site.ENCODER_SELF, Port.NORM): PortLocation("attention.output.LayerNorm", "output"),
        (Site.FFN, Port.RES_F): PortLocation("intermediate.dense", "input"),
        (Site.FFN, Port.X_FFN): PortLocation("intermediate.dense", "input"),
        (Site.FFN, Port.U): PortLocation("intermediate.dense", "output"),
        (Site.FFN, Port.M): PortLocation("output.dense", "input"),
        (Site.FFN, Port.F): PortLocation("output.dense", "output"),
        (Site.FFN, Port.NORM): PortLocation("output.LayerNorm", "output"),
    },
    stack_norms=("embeddings.LayerNorm",),
)


def encoder_shape(family: str, config: Mapping[str, object]) -> BackboneShape:
    """Shape of an encoder with the modules of BERT; its parameters include the pooler.

    Raises:
        UnsupportedBackboneError: If an entry is missing or cannot be, or if the model is used as a decoder.
    """
    entries = ConfigEntries(family, config)
    entries.refuse_flag("is_decoder")
    entries.refuse_flag("add_cross_attention")
    _refuse_relative_positions(family, config)
    width, ffn_width = entries.size("hidden_size"), entries.size("intermediate_size")
    layers, heads = entries.size("num_hidden_layers"), entries.size("num_attention_heads")
    tables = ("vocab_size", "max_position_embeddings", "type_vocab_size")
    embeddings = sum(entries.size(table) for table in tables) * width + layer_norm(width)
    attention = 4 * linear(width, width) + layer_norm(width)
    ffn = linear(width, ffn_width) + linear(ffn_width, width) + layer_norm(width)
    pooler = linear(width, width)
    return BackboneShape(
        family=family,
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
        parameters=embeddings + layers * (attention + ffn) + pooler,
        biased_ports=ALL_BIASED,
        stack_norms=1,
    )


def _refuse_relative_positions(family: str, config: Mapping[str, object]) -> None:
    """Old configs may ask for relative positions, whose embeddings current models no longer have."""
    kind = config.get("position_embedding_type", "absolute")
    if kind not in (None, "absolute"):
        raise UnsupportedBackboneError(
            f"position_embedding_type of a {family} config must be 'absolute'; got {kind!r}. Use another backbone."
        )


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    return encoder_shape("bert", config)


BERT = Family(name="bert", model_types=("bert",), read_shape=_read_shape, ports=ENCODER_PORTS)
