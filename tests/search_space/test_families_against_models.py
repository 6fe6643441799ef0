"""Families against tiny models of Transformers: parameters, biases, and where the ports are."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from search_space.backbone_shape import BackboneShape
from search_space.dimensions import Port, Site, StackKind
from search_space.families import FAMILIES, Family, family_of, shape_of

TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
# Sizes differ from one another, so that no formula passes with two of them mixed up.
ENCODER = {
    "vocab_size": 40,
    "max_position_embeddings": 21,
    "type_vocab_size": 3,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
ENCODER_DECODER = {
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
GPT2 = {"vocab_size": 40, "n_positions": 21, "n_embd": 16, "n_layer": 2, "n_head": 4}
DECODER = {
    "vocab_size": 40,
    "max_position_embeddings": 21,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "roberta": ("roberta", ENCODER),
    "xlm-roberta": ("xlm-roberta", ENCODER),
    "bert": ("bert", ENCODER),
    "bart": ("bart", ENCODER_DECODER),
    "bart untied": ("bart", ENCODER_DECODER | {"tie_word_embeddings": False}),
    "mbart": ("mbart", ENCODER_DECODER),
    "gpt2": ("gpt2", GPT2),
    "gpt2 untied, own FFN width": ("gpt2", GPT2 | {"n_inner": 24, "tie_word_embeddings": False}),
    "llama": ("llama", DECODER | {"tie_word_embeddings": True}),
    "llama untied, biased, own head width": (
        "llama",
        DECODER | {"attention_bias": True, "mlp_bias": True, "head_dim": 6, "num_key_value_heads": None},
    ),
    "qwen2": ("qwen2", DECODER | {"tie_word_embeddings": True}),
    "qwen2 untied, own head width": ("qwen2", DECODER | {"head_dim": 6}),
    "qwen3": ("qwen3", DECODER | {"head_dim": 6, "tie_word_embeddings": True}),
    "qwen3 untied, biased": ("qwen3", DECODER | {"head_dim": 6, "attention_bias": True}),
}


def build(name: str) -> tuple[nn.Module, Family, BackboneShape]:
    """The model that the convention counts, and the shape that its saved config gives."""
    model_type, sizes = CONFIGS[name]
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **TOKENS, **sizes)
    entries = json.loads(config.to_json_string())
    shape = shape_of(entries)
    models = AutoModelForCausalLM if shape.kind is StackKind.DECODER else AutoModel
    return models.from_config(config).eval(), family_of(entries), shape


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_every_model_type_is_built_here() -> None:
    known = {model_type for family in FAMILIES for model_type in family.model_types}
    assert {model_type for model_type, _ in CONFIGS.values()} == known


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_those_of_the_model_with_tied_ones_once(name: str) -> None:
    model, _, shape = build(name)
    assert shape.parameters == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", CONFIGS)
def test_biased_ports_and_stack_norms_are_the_biases_of_the_model(name: str) -> None:
    model, _, shape = build(name)
    expected = [shape.width] * shape.stack_norms
    for site, port in shape.biased_ports:
        expected += [shape.port_width(port)] * len(shape.sublayers(site))
    present = [
        # GPT-2 holds query, key and value in one module; its bias is theirs in a row.
        size
        for parameter, bias in model.named_parameters()
        if parameter.endswith("bias") and not parameter.startswith("pooler.")
        for size in ([shape.width] * 3 if parameter.endswith("c_attn.bias") else [bias.numel()])
    ]
    assert sorted(present) == sorted(expected)


TRAINABLE = [
    name for name, (model_type, _) in CONFIGS.items() if family_of({"model_type": model_type}).ports is not None
]


def record_ports(model: nn.Module, family: Family, shape: BackboneShape) -> dict[tuple[Site, int, Port], Tensor]:
    """What passes the location of every port of every encoder block in one forward pass."""
    assert family.ports is not None
    seen: dict[tuple[Site, int, Port], Tensor] = {}

    def note(key: tuple[Site, int, Port], side: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            seen[key] = inputs[0] if side == "input" else output

        return hook

    for (site, port), location in family.ports.ports.items():
        for sublayer in shape.sublayers(site):
            block = family.ports.layers[sublayer.stack].format(layer=sublayer.layer)
            module = model.get_submodule(f"{block}.{location.module}")
            module.register_forward_hook(note((site, sublayer.layer, port), location.side))
    model(input_ids=torch.arange(10).view(2, 5) + 3)
    return seen


@pytest.mark.parametrize("name", TRAINABLE)
def test_every_port_carries_a_tensor_of_its_width_at_every_layer(name: str) -> None:
    model, family, shape = build(name)
    seen = record_ports(model, family, shape)
    assert family.ports is not None
    assert len(seen) == len(family.ports.ports) * shape.encoder_layers
    assert {key: tuple(tensor.shape) for key, tensor in seen.items()} == {
        key: (2, 5, shape.port_width(key[2])) for key in seen
    }


@pytest.mark.parametrize("name", TRAINABLE)
def test_ports_of_post_ln_blocks_are_wired_as_the_design_space_says(name: str) -> None:
    model, family, shape = build(name)
    seen = record_ports(model, family, shape)
    for layer in range(shape.encoder_layers):
        attention = {
            port: seen[Site.ENCODER_SELF, layer, port] for port in Port if (Site.ENCODER_SELF, layer, port) in seen
        }
        ffn = {port: seen[Site.FFN, layer, port] for port in Port if (Site.FFN, layer, port) in seen}
        assert attention[Port.RES_IN] is attention[Port.X_ATTN]
        assert torch.equal(attention[Port.X_ATTN], attention[Port.CTX])
        assert torch.equal(attention[Port.NORM], ffn[Port.RES_F])
        assert ffn[Port.RES_F] is ffn[Port.X_FFN]
        assert torch.allclose(ffn[Port.M], nn.functional.gelu(ffn[Port.U]))
        assert torch.allclose(attention[Port.NORM], normed(attention[Port.RES_IN] + attention[Port.O]), atol=1e-5)
        assert torch.allclose(ffn[Port.NORM], normed(ffn[Port.RES_F] + ffn[Port.F]), atol=1e-5)
        if layer:
            assert torch.equal(seen[Site.FFN, layer - 1, Port.NORM], attention[Port.RES_IN])


def normed(total: Tensor) -> Tensor:
    """LayerNorm as in a fresh model: gain 1, bias 0."""
    return nn.functional.layer_norm(total, total.shape[-1:])


@pytest.mark.parametrize("name", TRAINABLE)
def test_the_attention_function_is_called_by_the_listed_modules_on_q_k_and_v(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, family, shape = build(name)
    assert family.ports is not None
    original = ALL_ATTENTION_FUNCTIONS["sdpa"]
    calls: list[tuple[nn.Module, tuple[Tensor, ...], Tensor]] = []

    def recording(module: nn.Module, *tensors: Tensor, **options: Any) -> tuple[Tensor, Tensor | None]:
        heads, weights = original(module, *tensors, **options)
        calls.append((module, tensors[:3], heads))
        return heads, weights

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "sdpa", recording)
    seen = record_ports(model, family, shape)
    assert len(calls) == len(shape.sublayers(Site.ATTENTION))
    for sublayer, (module, inputs, heads) in zip(shape.sublayers(Site.ATTENTION), calls, strict=True):
        block = family.ports.layers[sublayer.stack].format(layer=sublayer.layer)
        assert module is model.get_submodule(f"{block}.{family.ports.attention_modules[sublayer.site]}")
        for port, tensor in zip((Port.Q, Port.K, Port.V), inputs, strict=True):
            # (B, H, T, D/H) -> (B, T, D)
            joined = tensor.transpose(1, 2).flatten(2)
            assert torch.equal(joined, seen[sublayer.site, sublayer.layer, port])
        assert torch.equal(heads.flatten(2), seen[sublayer.site, sublayer.layer, Port.CONCAT])


@pytest.mark.parametrize("name", TRAINABLE)
def test_stack_norms_are_the_layer_norms_outside_the_blocks(name: str) -> None:
    model, family, shape = build(name)
    assert family.ports is not None
    blocks = tuple(layers.partition("{layer}")[0] for layers in family.ports.layers.values())
    outside = {
        path
        for path, module in model.named_modules()
        if isinstance(module, nn.LayerNorm) and not path.startswith(blocks)
    }
    assert set(family.ports.stack_norms) == outside
    assert len(outside) == shape.stack_norms
