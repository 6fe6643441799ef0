"""A small copy of a model: its own config class, two blocks, all sizes shrunk, weights drawn."""

from typing import Any

_HEADS, _LAYERS, _WORDS, _TOKENS = 4, 2, 64, 66
_WIDTH, _HEAD_WIDTH, _FFN_WIDTH, _WINDOW, _EXPERTS = 32, 8, 40, 4, 4

_SIZES: dict[str, int] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "emb_dim", "word_embed_proj_dim"), _WIDTH),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"), _HEADS),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"), _LAYERS),
    **dict.fromkeys(("num_decoder_layers", "decoder_layers"), _LAYERS),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "d_inner", "d_ff", "ffn_hidden_size"), _FFN_WIDTH),
    **dict.fromkeys(("hidden_dim", "encoder_ffn_dim", "decoder_ffn_dim"), _FFN_WIDTH),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), _FFN_WIDTH // 2),
    **dict.fromkeys(("head_dim", "d_head", "d_kv", "kv_channels", "attention_head_size"), _HEAD_WIDTH),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len"), _TOKENS),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), _EXPERTS),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token"), 2),
    **dict.fromkeys(("sliding_window", "local_attention"), _WINDOW),
    **dict.fromkeys(("vocab_size", "decoder_vocab_size"), _WORDS),
    "rotary_dim": _HEAD_WIDTH // 2,
}
_KEY_HEADS = ("num_key_value_heads", "num_kv_heads")
_TOKEN_IDS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")


def small_config(config: Any) -> Any:
    """A config of the same class whose model has two blocks and is as narrow as can be.

    Args:
        config: Of transformers.
    """
    entries: dict[str, Any] = config.to_dict()
    width, encoder_heads = entries.get("hidden_size"), entries.get("encoder_attention_heads")
    heads = next((entries[name] for name in ("num_attention_heads", "n_head") if entries.get(name)), None)
    for name, value in entries.items():
        if name == "decoder_attention_heads" and isinstance(value, int):
            entries[name] = _HEADS if value == encoder_heads else _HEADS // 2
        elif name in _SIZES and isinstance(value, int) and not isinstance(value, bool):
            entries[name] = _SIZES[name]
        elif name in _KEY_HEADS and isinstance(value, int):
            entries[name] = _HEADS if value == heads else min(value, _HEADS // 2)
        elif name == "embedding_size" and isinstance(value, int):
            entries[name] = _WIDTH if value == width else _WIDTH // 2
        elif name in _TOKEN_IDS:
            entries[name] = _small_id(value)
        elif name in ("layer_types", "mlp_layer_types") and isinstance(value, list):
            kinds = list(dict.fromkeys(value))[:_LAYERS]
            entries[name] = kinds + kinds[-1:] * (_LAYERS - len(kinds))
    entries.pop("quantization_config", None)
    return type(config).from_dict(entries)


def _small_id(value: Any) -> Any:
    if isinstance(value, list):
        return [_small_id(one) for one in value[:1]]
    return min(value, 3) if isinstance(value, int) else value


def drawn(model: Any, seed: int = 0) -> Any:
    """A model with weights in float64 that are those of no fresh one, whose biases are 0 and gains 1."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    model = model.double().eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return model
