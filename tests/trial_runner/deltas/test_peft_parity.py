"""Edits of projections against `peft`: same weights, same outputs, in float64.

`peft` wraps modules of a second copy of the backbone. Its target modules are spelt out here, so that the tables of
ports are checked too. Prompts and prefixes have a file of their own. Where methods of peft differ, the compared point
of the space is the equal one. On GPT-2, whose one projection is q, k and v, peft trains one A for all three. Its (IA)^3
scales q instead of k in some families, and by the suffix output.dense also the input of BERT's W_o. It has no BitFit:
the biases that LoRA marks with ``bias="all"`` get the constants.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import BeftConfig, IA3Config, LoraConfig, VeraConfig, get_peft_model
from support.edits import edit
from support.peft_pairs import PeftPair, peft_pairs
from torch import Tensor, nn

from search_space.backbones.shape import Sublayer
from search_space.configuration import Configuration
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.edit_protocol import sublayers_of
from search_space.forms import Constant, Diagonal, Dora, LowRank, Vera
from search_space.gates import Add, FixedScale, Multiply
from search_space.published import published_method
from search_space.rules import PROJECTION_INPUTS
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.errors import AttachError


@dataclass(frozen=True)
class Modules:
    """Where peft finds the modules of one kind of sublayer: a path with ``{}`` for the block, and names by port."""

    path: str
    names: dict[Port, str]

    def at(self, layer: int, port: Port) -> str:
        return self.path.format(layer) + self.names[port]


_BERT = {
    ("encoder", Site.ENCODER_SELF): Modules(
        "encoder.layer.{}.attention.",
        {
            Port.Q: "self.query",
            Port.K: "self.key",
            Port.V: "self.value",
            Port.O: "output.dense",
            Port.NORM: "output.LayerNorm",
        },
    ),
    ("encoder", Site.FFN): Modules(
        "encoder.layer.{}.", {Port.U: "intermediate.dense", Port.F: "output.dense", Port.NORM: "output.LayerNorm"}
    ),
}
_BART_NAMES = {Port.Q: "q_proj", Port.K: "k_proj", Port.V: "v_proj", Port.O: "out_proj"}
_BART = {
    (stack, site): Modules(
        f"{stack}.layers.{{}}.",
        {port: f"{name}.{inner}" for port, inner in _BART_NAMES.items()} | {Port.NORM: f"{name}_layer_norm"},
    )
    for stack, site, name in (
        ("encoder", Site.ENCODER_SELF, "self_attn"),
        ("decoder", Site.DECODER_SELF, "self_attn"),
        ("decoder", Site.CROSS, "encoder_attn"),
    )
} | {
    (stack, Site.FFN): Modules(f"{stack}.layers.{{}}.", {Port.U: "fc1", Port.F: "fc2", Port.NORM: "final_layer_norm"})
    for stack in ("encoder", "decoder")
}
_T5 = {
    (stack, site): Modules(f"{stack}.block.{{}}.layer.{index}.{name}.", {port: port.value for port in _BART_NAMES})
    for stack, site, index, name in (
        ("encoder", Site.ENCODER_SELF, 0, "SelfAttention"),
        ("decoder", Site.DECODER_SELF, 0, "SelfAttention"),
        ("decoder", Site.CROSS, 1, "EncDecAttention"),
    )
}
_T5_FFN = {
    gated: {
        (stack, Site.FFN): Modules(f"{stack}.block.{{}}.layer.{index}.DenseReluDense.", names)
        for stack, index in (("encoder", 1), ("decoder", 2))
    }
    for gated, names in (
        (False, {Port.U: "wi", Port.F: "wo"}),
        (True, {Port.G: "wi_0", Port.U: "wi_1", Port.F: "wo"}),
    )
}
_GPT2 = {
    ("decoder", Site.DECODER_SELF): Modules(
        "h.{}.", dict.fromkeys((Port.Q, Port.K, Port.V), "attn.c_attn") | {Port.O: "attn.c_proj", Port.NORM: "ln_1"}
    ),
    ("decoder", Site.FFN): Modules("h.{}.", {Port.U: "mlp.c_fc", Port.F: "mlp.c_proj", Port.NORM: "ln_2"}),
}
_LLAMA = {
    ("decoder", Site.DECODER_SELF): Modules("layers.{}.self_attn.", {port: f"{port}_proj" for port in _BART_NAMES}),
    ("decoder", Site.FFN): Modules("layers.{}.mlp.", {Port.G: "gate_proj", Port.U: "up_proj", Port.F: "down_proj"}),
}
MODULES = {
    "roberta": _BERT,
    "bert": _BERT,
    "bart": _BART,
    "t5": _T5 | _T5_FFN[False],
    "t5_gated": _T5 | _T5_FFN[True],
    "gpt2": _GPT2,
    "llama": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
}
STACK_NORMS = {
    "roberta": ("embeddings.LayerNorm",),
    "bert": ("embeddings.LayerNorm",),
    "bart": ("encoder.layernorm_embedding", "decoder.layernorm_embedding"),
    "gpt2": ("ln_f",),
}
FUSED = {Port.Q: 0, Port.K: 1, Port.V: 2}
"""Which third of GPT-2's one projection is q, k and v."""


# This release of peft asks transformers for a property by its old name.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")

SLOPE_TOLERANCE = 1e-10
"""Of gradients, relative to the largest; those of the gated T5 lose two digits to its sharp softmax."""
RANK, ALPHA = 3, 8


class Pair(PeftPair):
    """Pair with the paths of the modules of ports in peft."""

    def wrapped(self, config: Any) -> Any:
        """Wrap a fresh copy of the backbone with peft."""
        return get_peft_model(self.fresh(), config)

    def path(self, sublayer: Sublayer, port: Port) -> str:
        return MODULES[self.family][sublayer.stack, sublayer.site].at(sublayer.layer, port)

    def targets(self, edits: Sequence[Edit]) -> list[str]:
        """Return the full paths of the modules that compute the written ports."""
        return sorted({self.path(place, of.write) for of in edits for place in sublayers_of(of, self.shape)})

    def places(self, deltas: DeltaSet, of: Edit) -> list[tuple[Sublayer, Any]]:
        """Return the sublayers of an edit, each with the module of its form."""
        found = [module.form for module in deltas.modules() if isinstance(module, PortDelta) and module.edit == of]
        return list(zip(sublayers_of(of, self.shape), found, strict=True))


@pytest.fixture(scope="module")
def pair(tiny_backbone: Callable[[str], Path]) -> Iterator[Callable[[str], Pair]]:
    with peft_pairs(tiny_backbone, Pair) as make:
        yield make


def low_rank(port: Port) -> Edit:
    return edit(port, PROJECTION_INPUTS[port], LowRank(width=RANK), FixedScale(value=ALPHA / RANK))


def diagonal(port: Port) -> Edit:
    return edit(port, port, Diagonal(), Multiply())


# --- LoRA -------------------------------------------------------------------------------------------------------------

LORA_PORTS = {
    "q and v": (Port.Q, Port.V),
    "k": (Port.K,),
    "k and v": (Port.K, Port.V),
    "o": (Port.O,),
    "the FFN": (Port.U, Port.F),
    "the gate": (Port.G,),
    "everything": (Port.Q, Port.K, Port.V, Port.O, Port.U, Port.F),
}
LORA_CASES = [
    (family, name)
    for family in MODULES
    for name in LORA_PORTS
    if name != "the gate" or family in ("t5_gated", "llama", "qwen2", "qwen3")
]


def lora_config(pair: Pair, edits: Sequence[Edit], **options: Any) -> LoraConfig:
    settings = {"r": RANK, "lora_alpha": ALPHA, "lora_dropout": 0.0} | options
    return LoraConfig(target_modules=pair.targets(edits), fan_in_fan_out=pair.family == "gpt2", **settings)


@pytest.mark.parametrize(("family", "name"), [case for case in LORA_CASES if case[0] != "gpt2"])
def test_lora_is_that_of_peft(pair: Callable[[str], Pair], family: str, name: str) -> None:
    """Test outputs, and the gradients of A and B."""
    both = pair(family)
    edits = [low_rank(port) for port in LORA_PORTS[name]]
    deltas, theirs = both.deltas(*edits), both.wrapped(lora_config(both, edits))
    matched = [
        pair
        for form, layer in layers_of(both, deltas, theirs, edits)
        for pair in ((form.a, layer.lora_A["default"].weight), (form.b, layer.lora_B["default"].weight))
    ]
    copy_transposed(matched)
    both.assert_same(deltas, theirs)
    assert len([parameter for parameter in theirs.parameters() if parameter.requires_grad]) == len(matched)
    assert deltas.counts.trained == trained_by(theirs)
    assert_same_gradients(both, deltas, theirs, matched)


def layers_of(both: Pair, deltas: DeltaSet, theirs: Any, edits: Sequence[Edit]) -> Iterator[tuple[Any, Any]]:
    """Yield the module of every form with the corresponding layer of peft."""
    for of in edits:
        for sublayer, form in both.places(deltas, of):
            yield form, theirs.base_model.model.get_submodule(both.path(sublayer, of.write))


def trained_by(theirs: nn.Module) -> int:
    return sum(parameter.numel() for parameter in theirs.parameters() if parameter.requires_grad)


def copy_transposed(matched: Sequence[tuple[Tensor, Tensor]]) -> None:
    with torch.no_grad():
        for ours, theirs in matched:
            theirs.copy_(ours.T if ours.dim() > 1 else ours)  # peft's are linear layers, which store (out, in)


def assert_same_gradients(
    both: Pair, deltas: DeltaSet, theirs: nn.Module, matched: Sequence[tuple[Tensor, Tensor]]
) -> None:
    direction = torch.randn(both.frozen.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (both.run(deltas) * direction).sum().backward()
    (both.outputs(theirs) * direction).sum().backward()
    for ours, other in matched:
        largest = other.grad.abs().max().item()
        slope = other.grad.T if ours.dim() > 1 else other.grad
        torch.testing.assert_close(ours.grad, slope, rtol=0, atol=SLOPE_TOLERANCE * largest)


@pytest.mark.parametrize("name", [name for family, name in LORA_CASES if family == "gpt2"])
def test_lora_on_fused_projections_is_that_of_peft_with_a_b_of_blocks(pair: Callable[[str], Pair], name: str) -> None:
    """Test that peft's A stacks that of our edits of one module, and that its B has their B in the written rows."""
    both = pair("gpt2")
    edits = [low_rank(port) for port in LORA_PORTS[name]]
    is_fused = bool(set(LORA_PORTS[name]) & set(FUSED))
    stacked = {"attn.c_attn": len(set(LORA_PORTS[name]) & set(FUSED))} if is_fused else {}
    ranks = {path: number * RANK for path, number in stacked.items()}
    alphas = {path: number * ALPHA for path, number in stacked.items()}
    theirs = both.wrapped(lora_config(both, edits, rank_pattern=ranks, alpha_pattern=alphas))
    deltas = both.deltas(*edits)
    for parameter in theirs.parameters():
        if parameter.requires_grad:
            parameter.data.zero_()
    used: dict[str, int] = {}
    with torch.no_grad():
        for of in edits:
            for sublayer, form in both.places(deltas, of):
                path = both.path(sublayer, of.write)
                layer = theirs.base_model.model.get_submodule(path)
                first, width = used.get(path, 0), form.b.shape[1]
                start = FUSED.get(of.write, 0) * width
                layer.lora_A["default"].weight[first : first + RANK] = form.a.T
                layer.lora_B["default"].weight[start : start + width, first : first + RANK] = form.b.T
                used[path] = first + RANK
    both.assert_same(deltas, theirs)


def test_peft_lora_on_fused_qkv_is_three_edits_with_shared_a(pair: Callable[[str], Pair]) -> None:
    both = pair("gpt2")
    edits = [low_rank(port) for port in FUSED]
    deltas, theirs = both.deltas(*edits), both.wrapped(lora_config(both, edits))
    with torch.no_grad():
        for of in edits:
            for sublayer, form in both.places(deltas, of):
                layer = theirs.base_model.model.get_submodule(both.path(sublayer, of.write))
                weight, start = layer.lora_B["default"].weight, FUSED[of.write] * both.shape.width
                weight[start : start + both.shape.width] = form.b.T
                form.a.copy_(layer.lora_A["default"].weight.T)
    both.assert_same(deltas, theirs)
    assert deltas.counts.trained - trained_by(theirs) == 2 * both.shape.decoder_layers * RANK * both.shape.width


# --- DoRA -------------------------------------------------------------------------------------------------------------

DORA_PORTS = {
    "roberta": (Port.Q, Port.V),
    "t5": (Port.K, Port.O),
    "gpt2": (Port.O, Port.U, Port.F),
    "llama": (Port.Q, Port.K, Port.V, Port.O, Port.G, Port.U, Port.F),
}


@pytest.mark.parametrize("family", DORA_PORTS)
def test_dora_is_that_of_peft(pair: Callable[[str], Pair], family: str) -> None:
    """Test outputs, initial magnitudes, and the gradients of A, B and m: none goes through the norm."""
    both = pair(family)
    edits = [replace(low_rank(port), form=Dora(width=RANK)) for port in DORA_PORTS[family]]
    deltas, theirs = both.deltas(*edits), both.wrapped(lora_config(both, edits, use_dora=True))
    matched: list[tuple[Tensor, Tensor]] = []
    for form, layer in layers_of(both, deltas, theirs, edits):
        magnitude = layer.lora_magnitude_vector["default"].weight
        torch.testing.assert_close(form.norms, magnitude.detach(), rtol=1e-12, atol=0)
        matched += [(form.a, layer.lora_A["default"].weight), (form.b, layer.lora_B["default"].weight)]
        matched.append((form.magnitude, magnitude))
    copy_transposed(matched)
    both.assert_same(deltas, theirs)
    assert deltas.counts.trained == trained_by(theirs)
    assert_same_gradients(both, deltas, theirs, matched)


VERA_PORTS = {"roberta": (Port.Q, Port.V), "gpt2": (Port.O,), "llama": (Port.G, Port.U)}


@pytest.mark.parametrize("family", VERA_PORTS)
def test_vera_is_that_of_peft_with_the_same_matrices(pair: Callable[[str], Pair], family: str) -> None:
    """Test outputs, distribution and initial values of the matrices, and the gradients of d and b."""
    both = pair(family)
    edits = [replace(low_rank(port), form=Vera(width=RANK, seed=4), gate=Add()) for port in VERA_PORTS[family]]
    start = DeltaSet(Configuration(edits=tuple(edits)), both.shape, seed=0, dtype=torch.float64)
    config = VeraConfig(r=RANK, target_modules=both.targets(edits), fan_in_fan_out=family == "gpt2")
    deltas, theirs = both.deltas(*edits), both.wrapped(config)
    matched: list[tuple[Tensor, Tensor]] = []
    for of in edits:
        for (sublayer, form), (_, first) in zip(both.places(deltas, of), both.places(start, of), strict=True):
            layer = theirs.base_model.model.get_submodule(both.path(sublayer, of.write))
            for name, own in (("d", form.d), ("b", form.b)):
                other = getattr(layer, f"vera_lambda_{name}")["default"]
                torch.testing.assert_close(getattr(first, name), other.detach().double(), rtol=1e-6, atol=0)
                matched.append((own, other))
            for one, other in ((form.shared.a, layer.vera_A["default"]), (form.shared.b, layer.vera_B["default"])):
                bound = (6 / one.shape[0]) ** 0.5
                assert bound / 2 < one.abs().max() <= bound
                assert bound / 2 < other.abs().max() <= bound
                other.copy_(one.T)
    copy_transposed(matched)
    both.assert_same(deltas, theirs)
    assert deltas.counts.trained == trained_by(theirs)
    assert_same_gradients(both, deltas, theirs, matched)


def test_dora_needs_the_weights_as_numbers(pair: Callable[[str], Pair]) -> None:
    both = pair("roberta")
    configuration = Configuration(edits=(replace(low_rank(Port.Q), form=Dora(width=RANK)),))
    weights = dict(both.ours.model.named_parameters())
    packed = {name: (one.to(torch.uint8) if "query" in name else one) for name, one in weights.items()}
    for frozen, got in ((None, "no weights"), ({}, "no encoder.layer.0"), (packed, "torch.uint8")):
        with pytest.raises(AttachError, match=rf"dora needs the frozen matrix that writes q of roberta; got .*{got}"):
            DeltaSet(configuration, both.shape, seed=0, frozen=frozen)


# --- (IA)^3 -----------------------------------------------------------------------------------------------------------

IA3_DEFAULTS = {
    "roberta": (Port.K, Port.V, Port.CONCAT, Port.M),
    "bert": (Port.K, Port.V, Port.CONCAT, Port.M),
    "bart": (Port.Q, Port.V, Port.M),
    "t5": (Port.K, Port.V, Port.M),
    "t5_gated": (Port.K, Port.V, Port.M),
    "gpt2": (Port.Q, Port.K, Port.V, Port.M),
    "llama": (Port.K, Port.V, Port.M),
    "qwen2": (Port.Q, Port.V, Port.M),
    "qwen3": (Port.Q, Port.V, Port.M),
}
SOLE_READERS = {
    Port.M: Port.F,
    Port.CONCAT: Port.O,
}  # peft scales what a module reads, where it is listed as feedforward


def copy_diagonals(both: Pair, deltas: DeltaSet, edits: Sequence[Edit], theirs: Any) -> None:
    with torch.no_grad():
        for of in edits:
            for sublayer, form in both.places(deltas, of):
                layer = theirs.base_model.model.get_submodule(both.path(sublayer, SOLE_READERS.get(of.write, of.write)))
                vector = layer.ia3_l["default"].view(-1)
                assert layer.is_feedforward == (of.write in SOLE_READERS)
                if both.family == "gpt2" and of.write in FUSED:
                    vector = vector.chunk(3)[FUSED[of.write]]
                vector.copy_(form.scale)


@pytest.mark.parametrize(
    ("family", "is_named"),
    [(family, named) for family in MODULES for named in (False, True) if family != "gpt2" or not named],
)
def test_ia3_is_that_of_peft(pair: Callable[[str], Pair], family: str, is_named: bool) -> None:
    """Test k, v and m where modules are named; by peft's defaults GPT-2's fused k and v come with q."""
    both = pair(family)
    edits: Sequence[Edit] = [diagonal(port) for port in IA3_DEFAULTS[family]]
    config = IA3Config(fan_in_fan_out=family == "gpt2")
    if is_named:
        edits = published_method("ia3").configuration(both.shape).edits
        assert {of.write for of in edits} == {Port.K, Port.V, Port.M}
        named = [
            (of, both.path(place, SOLE_READERS.get(of.write, of.write)))
            for of in edits
            for place in sublayers_of(of, both.shape)
        ]
        hidden = [path for of, path in named if of.write is Port.M]
        config = IA3Config(target_modules=[path for _, path in named], feedforward_modules=hidden)
    theirs, deltas = both.wrapped(config), both.deltas(*edits)
    copy_diagonals(both, deltas, edits, theirs)
    both.assert_same(deltas, theirs)
    assert deltas.counts.trained == trained_by(theirs)


# --- biases -----------------------------------------------------------------------------------------------------------


def marked_biases(theirs: Any) -> dict[str, Tensor]:
    """Return the parameters that peft trains in addition to LoRA, by name in the backbone."""
    return {
        name.removeprefix("base_model.model.").replace(".base_layer", ""): parameter
        for name, parameter in theirs.named_parameters()
        if parameter.requires_grad and "lora_" not in name
    }


@pytest.mark.parametrize("family", STACK_NORMS)
def test_bitfit_moves_the_biases_that_peft_trains(pair: Callable[[str], Pair], family: str) -> None:
    both = pair(family)
    configuration = published_method("bitfit").configuration(both.shape)
    deltas = both.deltas(*configuration.edits)
    theirs = both.wrapped(lora_config(both, [low_rank(Port.Q)], bias="all"))
    biases = marked_biases(theirs)
    moved: set[str] = set()
    with torch.no_grad():
        for of in configuration.edits:
            for name, part, vector in constants(both, deltas, of):
                bias = biases[name] if part is None else biases[name].chunk(3)[part]
                bias += vector
                moved.add(name)
    assert moved == set(biases)
    assert deltas.counts.trained == sum(bias.numel() for bias in biases.values())
    both.assert_same(deltas, theirs)


def constants(both: Pair, deltas: DeltaSet, of: Edit) -> Iterator[tuple[str, int | None, Tensor]]:
    """Yield the names of the biases that an edit moves, the part of each, and its change."""
    forms = [module.form for module in deltas.modules() if isinstance(module, PortDelta) and module.edit == of]
    if of.site is Site.STACK:
        for name, form in zip(STACK_NORMS[both.family], forms, strict=True):
            yield f"{name}.bias", None, form.bias
        return
    for sublayer, form in both.places(deltas, of):
        part = FUSED.get(of.write) if both.family == "gpt2" else None
        yield f"{both.path(sublayer, of.write)}.bias", part, form.bias


@pytest.mark.parametrize("family", ["roberta", "bart", "qwen2"])
def test_a_constant_at_v_is_beft_of_peft(pair: Callable[[str], Pair], family: str) -> None:
    both = pair(family)
    of = edit(Port.V, None, Constant())
    deltas, theirs = both.deltas(of), both.wrapped(BeftConfig(target_modules=both.targets([of])))
    with torch.no_grad():
        for sublayer, form in both.places(deltas, of):
            layer = theirs.base_model.model.get_submodule(both.path(sublayer, Port.V))
            layer.beft_bias["default"].view(-1).copy_(form.bias)
    both.assert_same(deltas, theirs)


def test_no_package_needs_peft() -> None:
    root = Path(__file__).parents[3]
    sources = [path for name in ("search_space", "trial_runner", "studies") for path in (root / name).rglob("*.py")]
    assert len(sources) > 50
    assert [path for path in sources if re.search(r"^(import|from) peft\b", path.read_text(), re.M)] == []
    # who predicts with an adapter of peft's has asked for it
    late = [path.name for path in sources if re.search(r"^\s+(import|from) peft\b", path.read_text(), re.M)]
    assert late == ["predictors.py"]
