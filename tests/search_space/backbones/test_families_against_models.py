"""Families against models of Transformers: parameters, biases, and where the ports are."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.activations import ACT2FN
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from search_space.backbones import FAMILIES, PortLocation, PortTable, family_of, shape_of
from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.dimensions import NormPlacement, Port, Positions, Site, StackKind

BACKBONES = Path(__file__).parents[2] / "data" / "backbones"


TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
EXAMPLES = {name: dict(family.example) for name, family in FAMILIES.items()}
ENCODER, ENCODER_DECODER, T5, GPT2, DEBERTA = (EXAMPLES[name] for name in ("bert", "bart", "t5", "gpt2", "deberta-v2"))
DECODER = {name: value for name, value in EXAMPLES["llama"].items() if name != "tie_word_embeddings"}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    **{each: (each, EXAMPLES[name]) for name, family in FAMILIES.items() for each in family.model_types},
    "electra projected": ("electra", ENCODER | {"embedding_size": 10}),
    "bart untied": ("bart", ENCODER_DECODER | {"tie_word_embeddings": False}),
    "marian of two vocabularies": (
        "marian",
        ENCODER_DECODER | {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 30},
    ),
    "bart with fewer heads in its decoder": ("bart", ENCODER_DECODER | {"decoder_attention_heads": 2}),
    "t5 gated": ("t5", T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "gpt2 untied, own FFN width": ("gpt2", GPT2 | {"n_inner": 24, "tie_word_embeddings": False}),
    "llama untied, biased, own head width": (
        "llama",
        DECODER | {"attention_bias": True, "mlp_bias": True, "head_dim": 6, "num_key_value_heads": None},
    ),
    "qwen2 untied, own head width": ("qwen2", DECODER | {"head_dim": 6}),
    "deberta-v2 of exact distances": ("deberta-v2", DEBERTA | {"position_buckets": -1, "max_relative_positions": 6}),
    "qwen3 untied, biased": ("qwen3", DECODER | {"head_dim": 6, "attention_bias": True}),
}
SOURCE, TARGET = (2, 5), (2, 4)  # Examples and tokens, of different lengths so that neither is taken for the other.


@dataclass
class Wired:
    """Model with its shape and its ports, and the tensors at the ports in one forward pass.

    Attributes:
        base: The model without a head, in float64, its biases and gains not those of a fresh model.
        seen: What passed at a port of a sublayer.
        calls: Modules that called the attention function with queries, keys, values and heads.
    """

    model: nn.Module
    base: nn.Module
    shape: BackboneShape
    table: PortTable
    recorded: dict[tuple[Sublayer, Port], Tensor] = field(default_factory=dict)
    calls: list[tuple[nn.Module, tuple[Tensor, ...], Tensor]] = field(default_factory=list)

    @property
    def sublayers(self) -> tuple[Sublayer, ...]:
        return (*self.shape.sublayers(Site.ATTENTION), *self.shape.sublayers(Site.FFN))

    def ports_of(self, sublayer: Sublayer) -> dict[Port, PortLocation]:
        ports = self.table.ports.items()
        return {port: place for (stack, site, port), place in ports if (stack, site) == (sublayer.stack, sublayer.site)}

    def block(self, sublayer: Sublayer) -> nn.Module:
        return self.base.get_submodule(self.table.layers[sublayer.stack].format(layer=sublayer.layer))

    def run(self) -> Any:
        inputs = {"input_ids": torch.arange(10).view(SOURCE) + 3}
        if self.shape.kind is StackKind.ENCODER_DECODER:
            inputs["decoder_input_ids"] = torch.arange(8).view(TARGET) + 11
        return self.base(**inputs)

    def compute(self, sublayer: Sublayer, read: Port, write: Port) -> Tensor:
        """Compute the frozen map from a port that is read to one that is written."""
        place = self.ports_of(sublayer)[write]
        made: Tensor = self.block(sublayer).get_submodule(place.module)(self.recorded[sublayer, read])
        return made[..., place.columns(made.shape[-1])]


def build(name: str) -> Wired:
    """Build the model that the convention counts, and the shape of its saved config."""
    model_type, sizes = CONFIGS[name]
    torch.manual_seed(0)
    config = AutoConfig.for_model(model_type, **TOKENS, **sizes)
    entries = json.loads(config.to_json_string())
    shape, family = shape_of(entries), family_of(entries)
    models = AutoModelForCausalLM if shape.kind is StackKind.DECODER else AutoModel
    # the products of experts that are grouped are none of float64
    model = models.from_config(config, experts_implementation="eager").eval().double().requires_grad_(False)
    for parameter in model.parameters():
        parameter += 0.1 * torch.randn(parameter.shape)
    base = model.base_model if shape.kind is StackKind.DECODER else model
    return Wired(model=model, base=base, shape=shape, table=family.ports(shape))


@pytest.fixture
def wired(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Wired:
    """Return the model of a name in ``CONFIGS`` after a recorded forward pass."""
    wired = build(request.param)
    sdpa = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def recording(module: nn.Module, *tensors: Tensor, **options: Any) -> tuple[Tensor, Tensor | None]:
        is_own = wired.base.config._attn_implementation == "eager"
        original = sys.modules[type(module).__module__].eager_attention_forward if is_own else sdpa
        heads, weights = original(module, *tensors, **options)
        wired.calls.append((module, tensors[:3], heads))
        return heads, weights

    def note(key: tuple[Sublayer, Port], place: PortLocation) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Any) -> None:
            whole = inputs[0] if place.side == "input" else output
            whole = whole[0] if isinstance(whole, tuple) else whole
            if key in wired.recorded:  # projections of DeBERTa read positions after the tokens
                assert wired.table.relative_positions is not None
                return
            wired.recorded[key] = whole[..., place.columns(whole.shape[-1])]

        return hook

    handles = []
    for sublayer in wired.sublayers:
        for port, place in wired.ports_of(sublayer).items():
            module = wired.block(sublayer).get_submodule(place.module)
            handles.append(module.register_forward_hook(note((sublayer, port), place)))
    for name in ("sdpa", "eager"):
        monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, name, recording)
    wired.run()
    for handle in handles:
        handle.remove()
    return wired


every_config = pytest.mark.parametrize("wired", CONFIGS, indirect=True)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def assert_holds(base: nn.Module, shape: BackboneShape) -> None:
    frozen = [parameter for path, parameter in base.named_parameters() if not path.startswith("pooler.")]
    assert shape.frozen_parameters == sum(parameter.numel() for parameter in frozen)
    assert shape.parameter_tensors == len(frozen)


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_those_of_the_model_with_tied_ones_once(name):
    wired = build(name)
    assert wired.shape.parameters == sum(parameter.numel() for parameter in wired.model.parameters())
    assert_holds(wired.base, wired.shape)


@pytest.mark.parametrize("backbone", sorted(path.name for path in BACKBONES.iterdir()))
def test_published_backbones_hold_as_much_as_their_models(backbone):
    config = AutoConfig.from_pretrained(BACKBONES / backbone)
    with torch.device("meta"):
        model = AutoModel.from_config(config)
    assert_holds(model, shape_of(json.loads((BACKBONES / backbone / "config.json").read_text())))


def fused(path: str) -> int:
    """Return the number of ports that share a bias: those of one module in a row."""
    return 3 if path.endswith("c_attn.bias") else 2 if path.endswith("mlp.Wi.bias") else 1


@pytest.mark.parametrize("name", CONFIGS)
def test_biased_ports_and_stack_norms_are_the_biases_of_the_model(name):
    wired = build(name)
    shape = wired.shape
    expected = [shape.width] * shape.stack_norms
    for site, port in shape.biased_ports:
        expected += [shape.port_width(port)] * len(shape.sublayers(site))
    # Biases of another width than the model's, before its first block, are no ports; nor is the pooler's.
    outside = ("pooler.", "embeddings.LayerNorm.", "embeddings_project.") if shape.embedding_width else ("pooler.",)
    present = [
        # GPT-2 holds query, key and value in one module; its bias is theirs in a row.
        size
        for path, bias in wired.model.named_parameters()
        if path.endswith("bias") and not path.startswith(outside)
        for size in [bias.numel() // fused(path)] * fused(path)
    ]
    assert sorted(present) == sorted(expected)


@every_config
def test_every_port_carries_a_tensor_of_its_width_at_every_layer(wired):
    cross_reads_the_encoder = {Port.CTX, Port.K, Port.V}
    for sublayer in wired.sublayers:
        for port in wired.ports_of(sublayer):
            of_encoder = sublayer.stack == "encoder" or (
                sublayer.site is Site.CROSS and port in cross_reads_the_encoder
            )
            tokens = SOURCE if of_encoder or wired.shape.kind is StackKind.DECODER else TARGET
            assert wired.recorded[sublayer, port].shape == (*tokens, wired.shape.port_width(port))


@every_config
def test_projections_read_and_write_ports_of_the_design_space(wired):
    reads = {Port.X_ATTN: (Port.Q,), Port.CTX: (Port.K, Port.V), Port.CONCAT: (Port.O,)}
    reads |= {Port.X_FFN: (Port.U, Port.G), Port.M: (Port.F,)}
    for sublayer in wired.sublayers:
        for read, writes in reads.items():
            for write in writes:
                if {read, write} <= wired.ports_of(sublayer).keys():
                    torch.testing.assert_close(wired.compute(sublayer, read, write), wired.recorded[sublayer, write])


@every_config
def test_the_hidden_units_are_those_after_the_activation(wired):
    config = wired.model.config
    names = ("hidden_activation", "hidden_act", "activation", "activation_function", "dense_act_fn")
    activate = ACT2FN[next(getattr(config, name) for name in names if hasattr(config, name))]
    for sublayer in wired.shape.sublayers(Site.FFN):
        if not wired.shape.has(Site.FFN, Port.U):
            assert Port.M not in wired.ports_of(sublayer)
            continue
        up = wired.recorded[sublayer, Port.U]
        hidden = activate(wired.recorded[sublayer, Port.G]) * up if wired.shape.gated_ffn else activate(up)
        torch.testing.assert_close(wired.recorded[sublayer, Port.M], hidden)


@every_config
def test_cross_attention_keys_and_values_come_from_the_encoder(wired):
    outcome = wired.run()
    for sublayer in wired.shape.sublayers(Site.ATTENTION):
        is_cross = sublayer.site is Site.CROSS
        source = outcome.encoder_last_hidden_state if is_cross else wired.recorded[sublayer, Port.X_ATTN]
        torch.testing.assert_close(wired.recorded[sublayer, Port.CTX], source)


def behind(block: nn.Module, site: Site) -> nn.Module:
    """Return the module between a sublayer's last port and the sum: an identity, or a norm."""
    has_four = hasattr(block, "pre_feedforward_layernorm")
    if site is Site.FFN:
        return getattr(block, "post_feedforward_layernorm", nn.Identity())
    is_last = has_four or hasattr(block, "post_feedforward_layernorm")
    return block.get_submodule("post_attention_layernorm") if is_last else nn.Identity()


@every_config
def test_residual_streams_run_from_sublayer_to_sublayer(wired):
    """Test the sum of each sublayer, with norms at its end (post-LN), its start (pre-LN), or on its contribution."""
    placement = wired.shape.norm
    is_pre = placement is NormPlacement.PRE
    factor = getattr(wired.model.config, "residual_multiplier", 1.0)
    order = list(Site).index
    for stack in wired.table.layers:
        own = [sublayer for sublayer in wired.sublayers if sublayer.stack == stack]
        stream = None
        for sublayer in sorted(own, key=lambda sublayer: (sublayer.layer, order(sublayer.site))):
            is_ffn = sublayer.site is Site.FFN
            recorded = {port: wired.recorded[sublayer, port] for port in wired.ports_of(sublayer)}
            got, reads = (
                recorded[Port.RES_F if is_ffn else Port.RES_IN],
                recorded[Port.X_FFN if is_ffn else Port.X_ATTN],
            )
            added = behind(wired.block(sublayer), sublayer.site)(recorded[Port.F if is_ffn else Port.O])
            total = got + factor * added
            norm = wired.block(sublayer).get_submodule(wired.ports_of(sublayer)[Port.NORM].module)
            assert stream is None or torch.allclose(got, stream)
            torch.testing.assert_close(reads, norm(got) if is_pre else got)
            of_branch = placement is NormPlacement.BRANCH
            torch.testing.assert_close(recorded[Port.NORM], added if of_branch else norm(got if is_pre else total))
            if is_ffn:
                torch.testing.assert_close(recorded[Port.SUM], total)
            stream = recorded[Port.NORM] if placement is NormPlacement.POST else total


@every_config
def test_listed_modules_call_the_attention_function_on_q_k_v(wired):
    if wired.shape.family in ("deberta-v2", "mpnet"):
        assert not wired.calls, "its modules call no function: `trial_runner.attachment.forwards`"
        return
    attention = wired.shape.sublayers(Site.ATTENTION)
    by_module = {id(module): (inputs, heads) for module, inputs, heads in wired.calls}
    assert len(wired.calls) == len(by_module) == len(attention)
    for sublayer in attention:
        module = wired.block(sublayer).get_submodule(wired.table.attention_modules[sublayer.site])
        inputs, heads = by_module[id(module)]
        norms = {Port.Q: getattr(module, "q_norm", None), Port.K: getattr(module, "k_norm", None)}
        for port, given in zip((Port.Q, Port.K, Port.V), inputs, strict=True):
            norm, whole = norms.get(port), wired.recorded[sublayer, port]
            is_of_all = norm is not None and norm.weight.numel() == whole.shape[-1]
            whole = norm(whole) if norm is not None and is_of_all else whole
            # (B, T, H * D) -> (B, H, T, D)
            width = wired.shape.head_width if wired.shape.has(sublayer.site, Port.HEAD) else given.shape[-1]
            split = whole.unflatten(-1, (-1, width)).transpose(1, 2)
            split = split if norm is None or is_of_all else norm(split)
            # The first token's rotation turns by nothing.
            is_rotated = wired.shape.positions is Positions.ROTARY and port is not Port.V
            tokens = slice(0, 1) if is_rotated else slice(None)
            torch.testing.assert_close(given[:, :, tokens], split[:, :, tokens])
            is_turned = is_rotated and getattr(module, "use_rope", True)
            assert not is_turned or not torch.allclose(given, split)
        torch.testing.assert_close(heads.flatten(2), wired.recorded[sublayer, Port.CONCAT])


@pytest.mark.parametrize("name", CONFIGS)
def test_stack_norms_are_model_width_norms_outside_blocks(name):
    wired = build(name)
    blocks = tuple(layers.partition("{layer}")[0] for layers in wired.table.layers.values())
    outside = {
        path
        for path, module in wired.base.named_modules()
        if isinstance(module, nn.LayerNorm)
        and module.normalized_shape == (wired.shape.width,)
        and module.bias is not None
        and not path.startswith(blocks)
    }
    assert set(wired.table.stack_norms) == outside
    assert len(wired.table.stack_norms) == len(outside) == wired.shape.stack_norms


def blank(model: nn.Module, path: str) -> None:
    """Replace the module's output by zeros."""
    model.get_submodule(path).register_forward_hook(lambda _, __, output: torch.zeros_like(output))


def encoded(wired: Wired, ids: Tensor, **options: Tensor) -> Tensor:
    """Return the encoder's output for tokens."""
    if wired.shape.kind is StackKind.ENCODER_DECODER:
        found: Tensor = wired.base.get_submodule("encoder")(input_ids=ids, **options).last_hidden_state
    else:
        found = wired.base(input_ids=ids, **options).last_hidden_state
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_the_embeddings_are_those_of_the_tokens_of_the_first_stack(name):
    wired = build(name)
    found: list[Tensor] = []
    wired.base.get_submodule(wired.table.embeddings).register_forward_hook(lambda _, __, output: found.append(output))
    wired.run()
    assert [tuple(tensor.shape) for tensor in found] == [(*SOURCE, wired.shape.embedding_width or wired.shape.width)]
    assert (wired.table.token_types is not None) == ("type_vocab_size" in CONFIGS[name][1])


@pytest.mark.parametrize("name", CONFIGS)
def test_encoder_without_positions_is_permutation_equivariant(name):
    wired = build(name)
    is_decoder = wired.shape.kind is StackKind.DECODER
    assert (wired.table.positions is None) == (is_decoder or wired.shape.positions is not Positions.ABSOLUTE)
    if wired.table.positions is None:
        return
    ids = torch.arange(5)[None] + 3
    backwards = encoded(wired, ids.flip(1)).flip(1)
    assert not torch.allclose(encoded(wired, ids), backwards, atol=1e-3)
    blank(wired.base, wired.table.positions)
    if wired.shape.family == "mpnet":  # of relative positions there is a bias beside
        blank(wired.base, "encoder.relative_attention_bias")
    torch.testing.assert_close(encoded(wired, ids), encoded(wired, ids.flip(1)).flip(1))


@pytest.mark.parametrize("name", [name for name, (_, sizes) in CONFIGS.items() if "type_vocab_size" in sizes])
def test_encoder_without_type_embeddings_ignores_token_types(name):
    wired = build(name)
    ids, types = torch.arange(5)[None] + 3, torch.tensor([[0, 0, 1, 1, 1]])
    assert not torch.allclose(encoded(wired, ids), encoded(wired, ids, token_type_ids=types))
    blank(wired.base, wired.table.token_types)
    torch.testing.assert_close(encoded(wired, ids), encoded(wired, ids, token_type_ids=types))
