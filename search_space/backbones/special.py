"""Families whose counts or ports cannot be expressed in ``families.toml``."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from search_space.backbones.blocks import TransformerBlocks, family_blocks
from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import BackboneFamily
from search_space.backbones.module_weights import ModuleWeights, table_weights
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site
from search_space.errors import UnsupportedBackboneError

_MPNET_BUCKETS, _T5_BUCKETS = 32, 32
_T5_FFN = {"t5": "relu", "mt5": "gated-gelu"}
_RESERVED_POSITIONS = 2  # the position tables of BART's stacks start with two rows that no token uses


def _electra(blocks: TransformerBlocks, entries: ConfigEntries) -> BackboneShape:
    """Return the shape; small models project narrower embeddings to the width of the model."""
    embedding_width = entries.size("embedding_size")
    is_projected = embedding_width != entries.size("hidden_size")
    return blocks.shape(entries, embedding_width=embedding_width if is_projected else None)


def _mpnet(blocks: TransformerBlocks, entries: ConfigEntries) -> BackboneShape:
    """Return the shape; all blocks share one bias of relative positions, in addition to the positions of the input."""
    buckets = entries.size_or("relative_attention_num_buckets", _MPNET_BUCKETS)
    if buckets < _MPNET_BUCKETS:
        raise UnsupportedBackboneError(
            f"relative_attention_num_buckets of a mpnet config must be at least {_MPNET_BUCKETS}; got {buckets}. "
            "Check the backbone's config.json."
        )
    return blocks.shape(entries, other_weights=table_weights(buckets, entries.size("num_attention_heads")))


def _deberta(blocks: TransformerBlocks, entries: ConfigEntries) -> BackboneShape:
    """Return the shape; a table of relative positions has rows for distances in both directions."""
    kinds = entries.entries.get("pos_att_type")
    listed = kinds.split("|") if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    if {str(one).strip() for one in listed} != {"c2p", "p2c"}:
        got = repr(kinds) if "pos_att_type" in entries.entries else "no such entry"
        raise UnsupportedBackboneError(
            f"pos_att_type of a deberta-v2 config must be 'p2c|c2p', as in DeBERTa-v3; got {got}. Use another backbone."
        )
    candidates = (entries.entries.get(name) for name in ("position_buckets", "max_relative_positions"))
    max_distance = next((value for value in candidates if isinstance(value, int) and value > 0), None)
    rows = 2 * (max_distance or entries.size("max_position_embeddings"))
    return blocks.shape(entries, other_weights=table_weights(rows, entries.size("hidden_size")))


def _bart(blocks: TransformerBlocks, entries: ConfigEntries, embeddings: ModuleWeights | None = None) -> BackboneShape:
    """Return the shape; both stacks share one token table, or have their own if ``tie_word_embeddings`` is false."""
    width = entries.size("hidden_size")
    entries.size("num_decoder_layers")
    entries.same_size("encoder_ffn_dim", "decoder_ffn_dim")
    if embeddings is None:
        tables = 1 if entries.flag("tie_word_embeddings", default=True) else 3
        positions = table_weights(entries.size("max_position_embeddings") + _RESERVED_POSITIONS, width)
        embeddings = tables * table_weights(entries.size("vocab_size"), width) + 2 * positions
    shape = blocks.shape(entries, other_weights=embeddings)
    has_same_heads = shape.head_width == entries.quotient("d_model", "decoder_attention_heads")
    # an edit inside the heads has the same number of heads at every sublayer
    return shape if has_same_heads else replace(shape, lacks=frozenset({(Site.ATTENTION, Port.HEAD)}))


def _marian(blocks: TransformerBlocks, entries: ConfigEntries) -> BackboneShape:
    """Return the shape; both stacks have fixed positions and share their tokens by default."""
    width, rows = entries.size("hidden_size"), entries.size("vocab_size")
    embeddings = table_weights(rows, width) + 2 * table_weights(entries.size("max_position_embeddings"), width)
    if entries.flag("share_encoder_decoder_embeddings", default=True):
        entries.check_equal("tie_word_embeddings", True, default=True)
    else:
        embeddings += table_weights(entries.size_or("decoder_vocab_size", rows), width)
    return _bart(blocks, entries, embeddings)


def _t5(blocks: TransformerBlocks, entries: ConfigEntries) -> BackboneShape:
    """Return the shape; the first block of each stack has the position biases of all."""
    architectures = entries.entries.get("architectures")
    if isinstance(architectures, list) and "T5EncoderModel" in architectures:  # else the config of the whole model
        raise UnsupportedBackboneError(
            "a t5 backbone must have an encoder and a decoder; got a checkpoint of T5EncoderModel. "
            "Use one of T5ForConditionalGeneration."
        )
    kind = entries.text_or("feed_forward_proj", _T5_FFN[str(entries.entries.get("model_type"))])
    buckets = entries.size_or("relative_attention_num_buckets", _T5_BUCKETS)
    biases = 2 * table_weights(buckets, entries.size("num_attention_heads"))
    return _t5_of(blocks, is_gated=kind.startswith("gated-")).shape(entries, other_weights=biases)


def _t5_of(blocks: TransformerBlocks, *, is_gated: bool) -> TransformerBlocks:
    """Return the blocks with the gated FFN of T5 1.1, or with the FFN of T5."""

    def plain(ffn: Mapping[str, str]) -> Mapping[str, str]:
        return {**ffn, "g": "", "u": ffn["g"].removesuffix("_0")}

    return blocks if is_gated else replace(blocks, ffn=plain(blocks.ffn), decoder_ffn=plain(blocks.decoder_ffn))


def _gpt2(blocks: TransformerBlocks, entries: ConfigEntries) -> BackboneShape:
    """Return the shape; the FFN is four times as wide as the model by default."""
    default = {} if entries.has("intermediate_size") else {"n_inner": 4 * entries.size("hidden_size")}
    return blocks.shape(replace(entries, entries={**entries.entries, **default}))


_SHAPES: Mapping[str, Callable[[TransformerBlocks, ConfigEntries], BackboneShape]] = {
    "electra": _electra,
    "mpnet": _mpnet,
    "deberta-v2": _deberta,
    "bart": _bart,
    "mbart": _bart,
    "marian": _marian,
    "t5": _t5,
    "gpt2": _gpt2,
}


def _family(name: str, blocks: TransformerBlocks) -> BackboneFamily:
    shape = _SHAPES.get(name, TransformerBlocks.shape)
    return BackboneFamily(
        name=name,
        summary=blocks.summary,
        model_types=blocks.model_types,
        shape_from=lambda entries: shape(blocks, replace(entries, names=blocks.names)),
        ports=(lambda shape: _t5_of(blocks, is_gated=shape.gated_ffn).ports(shape)) if name == "t5" else blocks.ports,
        example=blocks.example,
    )


FAMILIES: Mapping[str, BackboneFamily] = {name: _family(name, blocks) for name, blocks in family_blocks().items()}
"""Families by name."""
