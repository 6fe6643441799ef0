"""BART: post-LN encoder-decoder with learned positions. mBART and Marian share its modules."""

from collections.abc import Mapping

from search_space.backbones.bert import encoder_block
from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortLocation, PortTable, attention_ports, ports_of
from search_space.backbones.parameters import ALL_BIASED, Weights, layer_norm, linear, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Site, StackKind

_RESERVED_POSITIONS = 2  # the position tables of both stacks start with two rows that no token uses
_EMBEDDING_NORMS = ("encoder.layernorm_embedding", "decoder.layernorm_embedding")


def encoder_decoder_ports(norm: NormPlacement, *, stack_norms: tuple[str, ...]) -> PortTable:
    """The ports of an encoder-decoder with the modules of BART, whose blocks normalise where ``norm`` says."""
    own, cross, ffn = _attention("self_attn", norm), _attention("encoder_attn", norm), _ffn(norm)
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
        | ports_of("decoder", Site.CROSS, cross)
        | ports_of("decoder", Site.FFN, ffn),
        stack_norms=stack_norms,
        embeddings="encoder.embed_tokens",
        positions="encoder.embed_positions",
    )


def _attention(module: str, norm: NormPlacement) -> dict[Port, PortLocation]:
    query, norm_module = f"{module}.q_proj", f"{module}_layer_norm"
    return attention_ports(
        read=norm_module if norm is NormPlacement.PRE else query,
        projections=(query, f"{module}.k_proj", f"{module}.v_proj", f"{module}.out_proj"),
        norm=norm_module,
    )


def _ffn(norm: NormPlacement) -> dict[Port, PortLocation]:
    is_pre = norm is NormPlacement.PRE
    return {
        Port.RES_F: PortLocation("final_layer_norm" if is_pre else "fc1", "input"),
        Port.X_FFN: PortLocation("fc1", "input"),
        Port.U: PortLocation("fc1", "output"),
        Port.M: PortLocation("fc2", "input"),
        Port.F: PortLocation("fc2", "output"),
        Port.SUM: PortLocation("", "output") if is_pre else PortLocation("final_layer_norm", "input"),
        Port.NORM: PortLocation("final_layer_norm", "output"),
    }


def encoder_decoder_shape(
    entries: ConfigEntries, *, norm: NormPlacement, stack_norms: int, embeddings: Weights
) -> BackboneShape:
    """Shape of an encoder-decoder with the modules of BART.

    Args:
        stack_norms: As in ``BackboneShape``.
        embeddings: The tables of tokens and positions of both stacks.

    Raises:
        UnsupportedBackboneError: If an entry is missing or cannot be, if the FFNs of the two stacks differ in width,
            or if the model is a decoder alone.
    """
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
        gated_ffn=False,
        parameters=base.parameters,
        biased_ports=ALL_BIASED,
        stack_norms=stack_norms,
        parameter_tensors=base.tensors,
        # an edit inside the heads has one number of them, at every sublayer
        lacks=frozenset() if has_same_heads else frozenset({(Site.ATTENTION, Port.HEAD)}),
    )


def learned_embeddings(entries: ConfigEntries) -> Weights:
    """Tokens and learned positions of both stacks.

    Both stacks share one table of tokens; with ``tie_word_embeddings`` false each of them holds its own beside it.
    """
    width = entries.size("d_model")
    tables = 1 if entries.flag("tie_word_embeddings", default=True) else 3
    positions = table(entries.size("max_position_embeddings") + _RESERVED_POSITIONS, width)
    return tables * table(entries.size("vocab_size"), width) + 2 * positions


def _ports(shape: BackboneShape) -> PortTable:
    return encoder_decoder_ports(shape.norm, stack_norms=_EMBEDDING_NORMS)


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("bart", config)
    embeddings = learned_embeddings(entries)
    # A LayerNorm after the embeddings of either stack.
    return encoder_decoder_shape(entries, norm=NormPlacement.POST, stack_norms=2, embeddings=embeddings)


SMALL: Mapping[str, object] = {
    "vocab_size": 40,
    "max_position_embeddings": 21,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
}

BART = Family(name="bart", model_types=("bart",), read_shape=_read_shape, ports=_ports, example=SMALL)
