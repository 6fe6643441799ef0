"""Encoder-decoders with the blocks of BART: BART and Marian (post-LN), mBART (pre-LN)."""

from collections.abc import Callable

from search_space.backbones.bert import encoder_block
from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import BackboneFamily, PortLocation, PortTable, attention_ports, ffn_ports, ports_of
from search_space.backbones.parameters import ALL_BIASED, ModuleWeights, layer_norm, linear, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Site, StackKind

_RESERVED_POSITIONS = 2  # the position tables of both stacks start with two rows that no token uses


def _ports(norm: NormPlacement, stack_norms: tuple[str, ...]) -> PortTable:
    is_pre = norm is NormPlacement.PRE

    def attention(module: str) -> dict[Port, PortLocation]:
        query, norm_module = f"{module}.q_proj", f"{module}_layer_norm"
        projections = (query, f"{module}.k_proj", f"{module}.v_proj", f"{module}.out_proj")
        return attention_ports(read=norm_module if is_pre else query, projections=projections, norm=norm_module)

    own, last = attention("self_attn"), "final_layer_norm"
    ffn = ffn_ports(read=last if is_pre else "fc1", up="fc1", down="fc2", norm=last, block="" if is_pre else None)
    return PortTable(
        layers={"encoder": "encoder.layers.{layer}", "decoder": "decoder.layers.{layer}"},
        attention_modules={
            Site.ENCODER_SELF: "self_attn",
            Site.DECODER_SELF: "self_attn",
            Site.CROSS: "encoder_attn",
        },
        ports=ports_of("encoder", Site.ENCODER_SELF, own)
        | ports_of("encoder", Site.FFN, ffn)
        | ports_of("decoder", Site.DECODER_SELF, own)
        | ports_of("decoder", Site.CROSS, attention("encoder_attn"))
        | ports_of("decoder", Site.FFN, ffn),
        stack_norms=stack_norms,
        embeddings="encoder.embed_tokens",
        positions="encoder.embed_positions",
    )


def _shape(entries: ConfigEntries, norm: NormPlacement, stack_norms: int, embeddings: ModuleWeights) -> BackboneShape:
    entries.refuse_flag("is_decoder")
    width = entries.size("d_model")
    heads, head_width = entries.size("encoder_attention_heads"), entries.share("d_model", "encoder_attention_heads")
    has_same_heads = head_width == entries.share("d_model", "decoder_attention_heads")
    ffn_width = entries.same_size("encoder_ffn_dim", "decoder_ffn_dim")
    encoder_layers, decoder_layers = entries.size("encoder_layers"), entries.size("decoder_layers")
    block = encoder_block(width, ffn_width)
    cross = 4 * linear(width, width) + layer_norm(width)
    base = embeddings + stack_norms * layer_norm(width) + encoder_layers * block + decoder_layers * (block + cross)
    return BackboneShape(
        family=entries.family,
        kind=StackKind.ENCODER_DECODER,
        norm=norm,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        width=width,
        query_heads=heads,
        key_value_heads=heads,
        head_width=head_width,
        ffn_width=ffn_width,
        parameters=base.parameters,
        biased_ports=ALL_BIASED,
        stack_norms=stack_norms,
        parameter_tensors=base.tensors,
        # an edit inside the heads has one number of them, at every sublayer
        lacks=frozenset() if has_same_heads else frozenset({(Site.ATTENTION, Port.HEAD)}),
    )


def _learned_embeddings(entries: ConfigEntries) -> ModuleWeights:
    """Both stacks share one table of tokens; with ``tie_word_embeddings`` false each holds its own beside it."""
    width = entries.size("d_model")
    tables = 1 if entries.flag("tie_word_embeddings", default=True) else 3
    positions = table(entries.size("max_position_embeddings") + _RESERVED_POSITIONS, width)
    return tables * table(entries.size("vocab_size"), width) + 2 * positions


def _fixed_embeddings(entries: ConfigEntries) -> ModuleWeights:
    """Tokens and fixed positions of both stacks; the stacks share their tokens unless the config says otherwise."""
    width, rows = entries.size("d_model"), entries.size("vocab_size")
    positions = 2 * table(entries.size("max_position_embeddings"), width)
    if not entries.flag("share_encoder_decoder_embeddings", default=True):
        return table(rows, width) + table(entries.size_or("decoder_vocab_size", rows), width) + positions
    entries.require_flag("tie_word_embeddings")
    return table(rows, width) + positions


def _family(
    name: str,
    words: str,
    *,
    norm: NormPlacement = NormPlacement.POST,
    stack_norms: tuple[str, ...],
    embeddings: Callable[[ConfigEntries], ModuleWeights] = _learned_embeddings,
) -> BackboneFamily:
    return BackboneFamily(
        name=name,
        words=words,
        model_types=(name,),
        shape_from=lambda entries: _shape(entries, norm, len(stack_norms), embeddings(entries)),
        ports=lambda _: _ports(norm, stack_norms),
        example={
            "vocab_size": 40,
            "max_position_embeddings": 21,
            "d_model": 16,
            "encoder_layers": 2,
            "decoder_layers": 3,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 24,
            "decoder_ffn_dim": 24,
        },
    )


BART = _family(
    "bart",
    "BART: post-LN encoder-decoder with learned positions.",
    stack_norms=("encoder.layernorm_embedding", "decoder.layernorm_embedding"),
)
MBART = _family(
    "mbart",
    "mBART: the entries of BART, with pre-LN blocks and a LayerNorm at the end of either stack.",
    norm=NormPlacement.PRE,
    stack_norms=(
        "encoder.layernorm_embedding",
        "encoder.layer_norm",
        "decoder.layernorm_embedding",
        "decoder.layer_norm",
    ),
)
MARIAN = _family(
    "marian",
    "Marian: the post-LN blocks of BART, with sinusoidal positions and no LayerNorm outside the blocks.",
    stack_norms=(),
    embeddings=_fixed_embeddings,
)
