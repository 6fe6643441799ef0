"""BERT: post-LN encoder with learned positions. RoBERTa and ELECTRA have the same modules."""

from collections.abc import Mapping

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortLocation, PortTable, attention_ports, ports_of
from search_space.backbones.parameters import ALL_BIASED, Weights, layer_norm, linear, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Site, StackKind
from search_space.errors import UnsupportedBackboneError

_ATTENTION = attention_ports(
    read="attention.self.query",
    projections=("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
    norm="attention.output.LayerNorm",
)
_FFN = {
    Port.RES_F: PortLocation("intermediate.dense", "input"),
    Port.X_FFN: PortLocation("intermediate.dense", "input"),
    Port.U: PortLocation("intermediate.dense", "output"),
    Port.M: PortLocation("output.dense", "input"),
    Port.F: PortLocation("output.dense", "output"),
    Port.SUM: PortLocation("output.LayerNorm", "input"),
    Port.NORM: PortLocation("output.LayerNorm", "output"),
}


def encoder_ports(shape: BackboneShape) -> PortTable:
    """The ports of an encoder with the modules of BERT."""
    return PortTable(
        layers={"encoder": "encoder.layer.{layer}"},
        attention_modules={Site.ENCODER_SELF: "attention.self"},
        ports=ports_of("encoder", Site.ENCODER_SELF, _ATTENTION) | ports_of("encoder", Site.FFN, _FFN),
        stack_norms=("embeddings.LayerNorm",) if shape.stack_norms else (),
        embeddings="embeddings.word_embeddings",
        positions="embeddings.position_embeddings",
        token_types="embeddings.token_type_embeddings",
    )


def encoder_shape(entries: ConfigEntries, *, embedding_width: int | None = None, pooler: bool = True) -> BackboneShape:
    """Shape of an encoder with the modules of BERT.

    Args:
        embedding_width: Width of the embeddings if a projection follows them; their LayerNorm, which is not as wide
            as the model, is then none of ``stack_norms``. None if they are as wide as the model.
        pooler: Whether the pretrained model has a pooler, which its parameters include.

    Raises:
        UnsupportedBackboneError: If an entry is missing or cannot be, or if the model is used as a decoder.
    """
    entries.refuse_flag("is_decoder")
    entries.refuse_flag("add_cross_attention")
    _refuse_relative_positions(entries)
    width, ffn_width = entries.size("hidden_size"), entries.size("intermediate_size")
    layers, heads = entries.size("num_hidden_layers"), entries.size("num_attention_heads")
    base = _embeddings(entries, embedding_width or width) + layers * encoder_block(width, ffn_width)
    if embedding_width is not None:
        base += linear(embedding_width, width)
    unused = linear(width, width).parameters if pooler else 0
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
        parameters=base.parameters + unused,
        biased_ports=ALL_BIASED,
        stack_norms=1 if embedding_width is None else 0,
        unused_parameters=unused,
        parameter_tensors=base.tensors,
        embedding_width=embedding_width,
    )


def encoder_block(width: int, ffn_width: int) -> Weights:
    """A block of self-attention and FFN with a LayerNorm each and biases everywhere."""
    attention = 4 * linear(width, width) + layer_norm(width)
    return attention + linear(width, ffn_width) + linear(ffn_width, width) + layer_norm(width)


def _embeddings(entries: ConfigEntries, width: int) -> Weights:
    tables = Weights()
    for rows in ("vocab_size", "max_position_embeddings", "type_vocab_size"):
        tables += table(entries.size(rows), width)
    return tables + layer_norm(width)


def _refuse_relative_positions(entries: ConfigEntries) -> None:
    """Old configs may ask for relative positions, whose embeddings current models no longer have."""
    kind = entries.text_or("position_embedding_type", "absolute")
    if kind != "absolute":
        raise UnsupportedBackboneError(
            f"position_embedding_type of a {entries.family} config must be 'absolute'; got {kind!r}. "
            "Use another backbone."
        )


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    return encoder_shape(ConfigEntries("bert", config))


SMALL_ENCODER: Mapping[str, object] = {
    "vocab_size": 40,
    "max_position_embeddings": 21,
    "type_vocab_size": 3,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}

BERT = Family(name="bert", model_types=("bert",), read_shape=_read_shape, ports=encoder_ports, example=SMALL_ENCODER)
