"""Post-LN encoders with the blocks of BERT: BERT, RoBERTa, XLM-R, ELECTRA, DistilBERT and MPNet."""

from collections.abc import Mapping
from dataclasses import replace

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import BackboneFamily, PortTable, attention_ports, ffn_ports, ports_of
from search_space.backbones.parameters import ALL_BIASED, ModuleWeights, layer_norm, linear, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Site, StackKind
from search_space.errors import UnsupportedBackboneError

_TABLES = ("vocab_size", "max_position_embeddings", "type_vocab_size")
_OF_DISTILBERT = {
    "hidden_size": "dim",
    "intermediate_size": "hidden_dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
}
_BUCKETS_OF_MPNET = 32
_NOTHING = ModuleWeights()


def encoder_ports(projections: tuple[str, str, str, str]) -> PortTable:
    """The ports of an encoder with the modules of BERT, whose queries, keys, values and heads meet these."""
    attention = attention_ports(read=projections[0], projections=projections, norm="attention.output.LayerNorm")
    ffn = ffn_ports(read="intermediate.dense", up="intermediate.dense", down="output.dense", norm="output.LayerNorm")
    return PortTable(
        layers={"encoder": "encoder.layer.{layer}"},
        attention_modules={Site.ENCODER_SELF: "attention.self"},
        ports=ports_of("encoder", Site.ENCODER_SELF, attention) | ports_of("encoder", Site.FFN, ffn),
        stack_norms=("embeddings.LayerNorm",),
        embeddings="embeddings.word_embeddings",
        positions="embeddings.position_embeddings",
        token_types="embeddings.token_type_embeddings",
    )


def encoder_shape(
    entries: ConfigEntries,
    *,
    tables: tuple[str, ...] = _TABLES,
    embedding_width: int | None = None,
    pooler: bool = False,
    beside: ModuleWeights = _NOTHING,
) -> BackboneShape:
    """Shape of an encoder with the blocks of BERT.

    Args:
        tables: Entries that say how many rows the embeddings have.
        embedding_width: Width of the embeddings if a projection follows them; their LayerNorm, which is not as wide
            as the model, is then none of ``stack_norms``. None if they are as wide as the model.
        pooler: Whether the pretrained model has a pooler, which its parameters include.
        beside: What it holds beside its embeddings, the norm of them, and its blocks.

    Raises:
        UnsupportedBackboneError: If an entry is missing or cannot be.
    """
    width, ffn_width = entries.size("hidden_size"), entries.size("intermediate_size")
    layers, heads = entries.size("num_hidden_layers"), entries.size("num_attention_heads")
    embedded = embedding_width or width
    embeddings = sum((table(entries.size(rows), embedded) for rows in tables), layer_norm(embedded))
    base = embeddings + beside + layers * encoder_block(width, ffn_width)
    if embedding_width is not None:
        base += linear(embedding_width, width)
    unused = linear(width, width).parameters if pooler else 0
    return BackboneShape(
        family=entries.family,
        kind=StackKind.ENCODER,
        norm=NormPlacement.POST,
        encoder_layers=layers,
        width=width,
        query_heads=heads,
        key_value_heads=heads,
        head_width=entries.share("hidden_size", "num_attention_heads"),
        ffn_width=ffn_width,
        parameters=base.parameters + unused,
        biased_ports=ALL_BIASED,
        stack_norms=1 if embedding_width is None else 0,
        unused_parameters=unused,
        parameter_tensors=base.tensors,
        embedding_width=embedding_width,
    )


def encoder_block(width: int, ffn_width: int) -> ModuleWeights:
    """A block of self-attention and FFN with a LayerNorm each and biases everywhere."""
    attention = 4 * linear(width, width) + layer_norm(width)
    return attention + linear(width, ffn_width) + linear(ffn_width, width) + layer_norm(width)


def _plain(entries: ConfigEntries) -> ConfigEntries:
    """Of an encoder with learned positions: old configs may ask for others, whose embeddings models no longer have."""
    entries.refuse_flag("is_decoder")
    entries.refuse_flag("add_cross_attention")
    kind = entries.text_or("position_embedding_type", "absolute")
    if kind != "absolute":
        raise UnsupportedBackboneError(
            f"position_embedding_type of a {entries.family} config must be 'absolute'; got {kind!r}. "
            "Use another backbone."
        )
    return entries


_PORTS = encoder_ports(("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"))


def _ports(shape: BackboneShape) -> PortTable:
    return _PORTS if shape.stack_norms else replace(_PORTS, stack_norms=())


def _distilbert_ports(_: BackboneShape) -> PortTable:
    projections = ("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin")
    attention = attention_ports(read=projections[0], projections=projections, norm="sa_layer_norm")
    ffn = ffn_ports(read="ffn.lin1", up="ffn.lin1", down="ffn.lin2", norm="output_layer_norm")
    return replace(
        _PORTS,
        layers={"encoder": "transformer.layer.{layer}"},
        attention_modules={Site.ENCODER_SELF: "attention"},
        ports=ports_of("encoder", Site.ENCODER_SELF, attention) | ports_of("encoder", Site.FFN, ffn),
        token_types=None,
    )


def _mpnet_ports(_: BackboneShape) -> PortTable:
    projections = ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o")
    attention = attention_ports(read=projections[0], projections=projections, norm="attention.LayerNorm")
    return replace(
        _PORTS,
        attention_modules={Site.ENCODER_SELF: "attention.attn"},
        ports={**_PORTS.ports, **ports_of("encoder", Site.ENCODER_SELF, attention)},
        token_types=None,
    )


def _electra_shape(entries: ConfigEntries) -> BackboneShape:
    """Without a pooler; small ones project narrower embeddings to the width of the model."""
    embedding_width = entries.size("embedding_size")
    is_projected = embedding_width != entries.size("hidden_size")
    return encoder_shape(_plain(entries), embedding_width=embedding_width if is_projected else None)


def _mpnet_shape(entries: ConfigEntries) -> BackboneShape:
    """All blocks add one bias of relative positions to the logits, beside the positions of the input."""
    buckets = entries.size_or("relative_attention_num_buckets", _BUCKETS_OF_MPNET)
    if buckets < _BUCKETS_OF_MPNET:
        raise UnsupportedBackboneError(
            f"relative_attention_num_buckets of a mpnet config must be at least {_BUCKETS_OF_MPNET}; got {buckets}. "
            "Check the backbone's config.json."
        )
    biases = table(buckets, entries.size("num_attention_heads"))
    return encoder_shape(_plain(entries), tables=_TABLES[:2], pooler=True, beside=biases)


SMALL_ENCODER: Mapping[str, object] = {
    "vocab_size": 40,
    "max_position_embeddings": 21,
    "type_vocab_size": 3,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
_WITHOUT_TYPES = {name: size for name, size in SMALL_ENCODER.items() if name != "type_vocab_size"}

BERT = BackboneFamily(
    name="bert",
    words="BERT: post-LN encoder with learned positions.",
    model_types=("bert",),
    shape_from=lambda entries: encoder_shape(_plain(entries), pooler=True),
    ports=_ports,
    example=SMALL_ENCODER,
)
ROBERTA = BackboneFamily(
    name="roberta",
    words="RoBERTa, and XLM-R, which differs only in its vocabulary and training data: the modules of BERT.",
    model_types=("roberta", "xlm-roberta"),
    shape_from=lambda entries: encoder_shape(_plain(entries), pooler=True),
    ports=_ports,
    example=SMALL_ENCODER,
)
ELECTRA = BackboneFamily(
    name="electra",
    words="ELECTRA: the modules of BERT; small ones project narrower embeddings to the width of the model.",
    model_types=("electra",),
    shape_from=_electra_shape,
    ports=_ports,
    example={**SMALL_ENCODER, "embedding_size": 16},
)
DISTILBERT = BackboneFamily(
    name="distilbert",
    words="DistilBERT: the blocks of BERT under other names, without token types.",
    model_types=("distilbert",),
    shape_from=lambda entries: encoder_shape(replace(entries, names=_OF_DISTILBERT), tables=_TABLES[:2]),
    ports=_distilbert_ports,
    example={_OF_DISTILBERT.get(name, name): size for name, size in _WITHOUT_TYPES.items()},
)
MPNET = BackboneFamily(
    name="mpnet",
    words="MPNet: the blocks of BERT without token types, and a bias of relative positions beside the learned ones.",
    model_types=("mpnet",),
    shape_from=_mpnet_shape,
    ports=_mpnet_ports,
    example=_WITHOUT_TYPES,
)
