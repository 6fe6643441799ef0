"""T5 (1.0, 1.1, Flan) and mT5: pre-RMSNorm encoder-decoder with relative position biases and no other bias."""

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import BackboneFamily, PortLocation, PortTable, attention_ports, ffn_ports, ports_of
from search_space.backbones.parameters import linear, rms_norm, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Positions, Site, StackKind
from search_space.errors import UnsupportedBackboneError

_DEFAULT_FFN = {"t5": "relu", "mt5": "gated-gelu"}
_DEFAULT_BUCKETS = 32


def _ports(shape: BackboneShape) -> PortTable:
    own = _attention("layer.0", "SelfAttention")
    return PortTable(
        layers={"encoder": "encoder.block.{layer}", "decoder": "decoder.block.{layer}"},
        attention_modules={
            Site.ENCODER_SELF: "layer.0.SelfAttention",
            Site.DECODER_SELF: "layer.0.SelfAttention",
            Site.CROSS: "layer.1.EncDecAttention",
        },
        ports=ports_of("encoder", Site.ENCODER_SELF, own)
        | ports_of("encoder", Site.FFN, _ffn("layer.1", is_gated=shape.gated_ffn))
        | ports_of("decoder", Site.DECODER_SELF, own)
        | ports_of("decoder", Site.CROSS, _attention("layer.1", "EncDecAttention"))
        | ports_of("decoder", Site.FFN, _ffn("layer.2", is_gated=shape.gated_ffn)),
        stack_norms=(),
        embeddings="encoder.embed_tokens",
    )


def _attention(sublayer: str, name: str) -> dict[Port, PortLocation]:
    module = f"{sublayer}.{name}"
    return attention_ports(
        read=f"{sublayer}.layer_norm",
        projections=(f"{module}.q", f"{module}.k", f"{module}.v", f"{module}.o"),
        norm=f"{sublayer}.layer_norm",
    )


def _ffn(sublayer: str, *, is_gated: bool) -> dict[Port, PortLocation]:
    module, norm = f"{sublayer}.DenseReluDense", f"{sublayer}.layer_norm"
    gate, up = (f"{module}.wi_0", f"{module}.wi_1") if is_gated else (None, f"{module}.wi")
    return ffn_ports(read=norm, gate=gate, up=up, down=f"{module}.wo", norm=norm, block=sublayer)


def _shape(entries: ConfigEntries) -> BackboneShape:
    _refuse_lone_encoder(entries)
    width, ffn_width = entries.size("d_model"), entries.size("d_ff")
    heads, head_width = entries.size("num_heads"), entries.size("d_kv")
    encoder_layers = entries.size("num_layers")
    decoder_layers = entries.size_or("num_decoder_layers", encoder_layers)
    is_gated = entries.text_or("feed_forward_proj", _DEFAULT_FFN[str(entries.entries.get("model_type"))]).startswith(
        "gated-"
    )
    query_width = heads * head_width
    attention = 3 * linear(width, query_width, bias=False) + linear(query_width, width, bias=False) + rms_norm(width)
    ups = (2 if is_gated else 1) * linear(width, ffn_width, bias=False)
    ffn = ups + linear(ffn_width, width, bias=False) + rms_norm(width)
    # The first block of a stack holds the position biases of all; a norm stands at the end of either stack.
    stacks = 2 * (table(entries.size_or("relative_attention_num_buckets", _DEFAULT_BUCKETS), heads) + rms_norm(width))
    blocks = encoder_layers * (attention + ffn) + decoder_layers * (2 * attention + ffn)
    base = table(entries.size("vocab_size"), width) + stacks + blocks
    return BackboneShape(
        family="t5",
        kind=StackKind.ENCODER_DECODER,
        norm=NormPlacement.PRE,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        width=width,
        query_heads=heads,
        key_value_heads=heads,
        head_width=head_width,
        ffn_width=ffn_width,
        gated_ffn=is_gated,
        parameters=base.parameters,
        positions=Positions.BIAS,
        parameter_tensors=base.tensors,
    )


def _refuse_lone_encoder(entries: ConfigEntries) -> None:
    """A checkpoint of the encoder alone has the config of the whole model but for its ``architectures``."""
    entries.refuse_flag("is_decoder")
    architectures = entries.entries.get("architectures")
    if isinstance(architectures, list) and "T5EncoderModel" in architectures:
        raise UnsupportedBackboneError(
            "a t5 backbone must have an encoder and a decoder; got a checkpoint of T5EncoderModel. "
            "Use one of T5ForConditionalGeneration."
        )


T5 = BackboneFamily(
    name="t5",
    words="T5 (1.0, 1.1, Flan) and mT5: pre-RMSNorm encoder-decoder with relative position biases and no other bias.",
    model_types=("t5", "mt5"),
    shape_from=_shape,
    ports=_ports,
    example={
        "vocab_size": 40,
        "d_model": 16,
        "d_ff": 24,
        "d_kv": 6,
        "num_layers": 2,
        "num_decoder_layers": 3,
        "num_heads": 4,
        "relative_attention_num_buckets": 8,
        "decoder_start_token_id": 0,
    },
)
