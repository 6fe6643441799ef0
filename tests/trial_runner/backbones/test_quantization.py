"""Backbones whose weights are held in 8 or 4 bits: what they are, what is computed with them, and packs over them."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.built_forms import made_up_shape
from support.packing_cases import request_for, runner_of, sized
from support.packing_traces import alone, train, worst
from support.rounding import rounding
from support.whole_blocks import WIDTH, in_whole_blocks
from torch import Tensor, nn

from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.forms import Dora
from search_space.gates import Add
from search_space.published import published_method
from trial_runner.backbones import BackboneSource, load_backbone, load_language_model
from trial_runner.backbones.backbone import held_as, loading_options
from trial_runner.deltas.blocks import blocks_of
from trial_runner.deltas.dora import DoraDelta
from trial_runner.deltas.form_delta import FormPlace
from trial_runner.deltas.frozen_matrix import FrozenMatrix
from trial_runner.errors import AttachError, BackboneError
from trial_runner.huggingface import quiet_transformers
from trial_runner.linear_layers import QuantizedLinear, dense_weight, hold_dense, hold_quantized
from trial_runner.silence import quiet_quantizers

torch.set_num_threads(1)

KINDS = ("nf4", "int8", "int4")
FAMILIES = ("roberta", "qwen3", "gpt2", "t5")
HELD = [(family, kind) for kind in KINDS for family in FAMILIES if (family, kind) != ("gpt2", "int4")]
"""The layers of GPT-2 are not those of torch, which alone torchao knows."""
WIDEST_GAP = 1 - 0.6961928009986877
"""Between neighbours of the 16 values of nf4 (Dettmers et al. 2023, appendix E)."""

PRODUCTS = 2 * 8
"""One after another, attention's own among them."""

TinyBackbone = Callable[..., Path]


def load(folder: Path, **options: Any) -> Any:
    precision = options.pop("precision", "float32")
    return load_backbone(BackboneSource(name=str(folder), **options), precision=precision)


def quantized(model: nn.Module) -> dict[str, QuantizedLinear]:
    return {name: one for name, one in model.named_modules() if isinstance(one, QuantizedLinear)}


def inputs_of(model: Any) -> dict[str, Tensor]:
    ids = torch.randint(6, 60, (2, 9), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return inputs | ({"decoder_input_ids": ids} if model.config.is_encoder_decoder else {})


@pytest.mark.parametrize(("family", "kind"), HELD)
def test_dequantized_weights_are_nearest_codes(
    tiny_backbone: TinyBackbone, tmp_path: Path, family: str, kind: str
) -> None:
    folder = in_whole_blocks(tiny_backbone(family), tmp_path) if kind == "int4" else tiny_backbone(family)
    plain, held = load(folder).model, load(folder, quantization=kind).model
    layers = quantized(held)
    assert len(layers) >= 2 * (4 if family == "gpt2" else 6)
    assert family == "t5" or not any(isinstance(one, nn.Linear) for one in held.modules())
    for name, layer in layers.items():
        weight, dense = dense_weight(plain.get_submodule(name)), dense_weight(layer)
        assert dense.shape == weight.shape
        assert layer.kind == kind
        blocks = weight.T if kind == "int8" else weight.T.reshape(-1, 32 if kind == "int4" else 64)
        gaps = (dense.T.reshape(blocks.shape) - blocks).abs()
        most = blocks.abs().amax(dim=1, keepdim=True)
        # int8 is made of float16: half a code, and half a unit in the last of 11 places
        bounds = {"int8": 0.5 / 127 + 2**-11, "nf4": WIDEST_GAP / 2, "int4": 0.5 / 7.5}
        bound = most * bounds[kind]
        assert (gaps <= bound * (1 + 1e-5)).all()  # of int4 the largest number itself is half a code off
        assert gaps.max() > 0


@pytest.mark.parametrize(("family", "kind"), [(family, kind) for family, kind in HELD if kind != "int8"])
def test_outputs_in_4_bits_are_those_of_transformers(
    tiny_backbone: TinyBackbone, tmp_path: Path, family: str, kind: str
) -> None:
    folder = in_whole_blocks(tiny_backbone(family), tmp_path)
    held = load(folder, quantization=kind).model
    with quiet_transformers():
        from transformers import AutoModel

        options = loading_options(BackboneSource(name=str(folder), quantization=kind))
        stock = AutoModel.from_pretrained(folder, attn_implementation="eager", **options).eval()
    assert held_as(stock).quantization == kind
    for one in stock.modules():
        one.support_avx512bf16_for_cpu = False  # type: ignore[assignment] # its products are of other precision there
    inputs = inputs_of(held)
    with torch.no_grad():
        found, wanted, plain = (one(**inputs).last_hidden_state for one in (held, stock, load(folder).model))
    bound = rounding(wanted, terms=PRODUCTS * WIDTH)
    assert (found - wanted).abs().max() <= bound
    assert (plain - wanted).abs().max() > 10 * bound, "codes are not the weights"


@pytest.mark.parametrize(("family", "kind"), [one for one in HELD if one[0] in ("gpt2", "qwen3")])
def test_products_and_gradients_are_those_of_the_dense_weights(
    tiny_backbone: TinyBackbone, tmp_path: Path, family: str, kind: str
) -> None:
    folder = in_whole_blocks(tiny_backbone(family), tmp_path)
    held = load(folder, quantization=kind, precision="float64").model
    dense = load(folder, quantization=kind, precision="float64").model
    hold_dense(dense)
    assert not quantized(dense)
    dense.to(torch.float64)
    found = []
    for model in (held, dense):
        ids = torch.randint(6, 60, (2, 9), generator=torch.Generator().manual_seed(0))
        embedded = model.get_input_embeddings()(ids).clone().requires_grad_()
        hidden = model(inputs_embeds=embedded).last_hidden_state
        (gradient,) = torch.autograd.grad(hidden.square().sum(), embedded)
        found.append((hidden, gradient))
    (hidden, gradient), (dense_hidden, dense_gradient) = found
    assert hidden.dtype == torch.float64
    assert torch.allclose(hidden, dense_hidden, rtol=0, atol=1e-12)
    assert torch.allclose(gradient, dense_gradient, rtol=1e-10, atol=1e-12)


def test_the_output_layer_of_a_language_model_keeps_its_weights(tiny_backbone: TinyBackbone) -> None:
    model: Any = load_language_model(BackboneSource(name=str(tiny_backbone("qwen3")), quantization="nf4")).whole
    assert isinstance(model.get_output_embeddings(), nn.Linear)
    assert quantized(model)


@pytest.mark.parametrize(("kind", "codes"), [("nf4", "Params4bit"), ("int4", "IntxUnpackedToInt8Tensor")])
def test_a_head_that_labels_tokens_keeps_its_weights(
    tiny_backbone: TinyBackbone, tmp_path: Path, kind: str, codes: str
) -> None:
    from transformers import AutoModelForTokenClassification

    folder = in_whole_blocks(tiny_backbone("roberta"), tmp_path)
    options = loading_options(BackboneSource(name=str(folder), quantization=kind), heads=("classifier",))
    with quiet_transformers(), quiet_quantizers():
        model = AutoModelForTokenClassification.from_pretrained(folder, **options)
    assert type(model.classifier.weight) is nn.Parameter
    kinds = {type(one.weight).__name__ for one in model.roberta.modules() if isinstance(one, nn.Linear)}
    assert kinds == {codes}


def test_backbone_unfit_for_int4_is_refused_in_one_line(tiny_backbone: TinyBackbone) -> None:
    for family, why in (("qwen3", r"whole groups of 32 numbers.*q_proj reads 16"), ("gpt2", "it has none")):
        with pytest.raises(BackboneError, match=rf"{why}\. Take backbone.quantization: nf4") as refused:
            load(tiny_backbone(family), quantization="int4")
        assert "\n" not in str(refused.value)


def test_other_weights_of_torchao_are_not_taken_for_int4() -> None:
    with quiet_quantizers():
        from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig, MappingType, PerGroup, quantize_

        kind: Any = torch.int4  # type: ignore[attr-defined]
        wide = IntxWeightOnlyConfig(weight_dtype=kind, granularity=PerGroup(64))
        shifted = IntxWeightOnlyConfig(weight_dtype=kind, granularity=PerGroup(32), mapping_type=MappingType.ASYMMETRIC)
        for config in (Int8WeightOnlyConfig(), wide, shifted):
            model = nn.Sequential(nn.Linear(64, 8))
            quantize_(model, config)
            with pytest.raises(BackboneError, match="must be int4 in groups of 32 without zero points"):
                hold_quantized(model)


def test_weights_hash_depends_on_dtype_and_quantization(tiny_backbone: TinyBackbone) -> None:
    folder = tiny_backbone("qwen3")
    plain, whole = load(folder), load(folder, dtype="fp32")
    half, codes, other = load(folder, dtype="bf16"), load(folder, quantization="nf4"), load(tiny_backbone("gpt2"))
    assert plain.weights_sha256 == whole.weights_sha256
    assert half.weights_sha256 == codes.weights_sha256 != plain.weights_sha256
    assert other.weights_sha256 not in (plain.weights_sha256, half.weights_sha256)
    assert {one.dtype for one in half.model.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize(("kind", "package"), [("nf4", "bitsandbytes"), ("int4", "torchao")])
def test_missing_quantization_package_is_named_in_one_line(
    tiny_backbone: TinyBackbone, monkeypatch: pytest.MonkeyPatch, kind: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BackboneError, match=rf"{kind} needs {package}.*pip install 'deltaspace\[quant") as refused:
        load(tiny_backbone("qwen3"), quantization=kind)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("family", "kind"), [("roberta", "nf4"), ("qwen3", "int8"), ("qwen3", "int4")])
def test_a_trial_in_a_pack_on_codes_is_the_trial_alone_checkpointed_or_not(
    tiny_backbone: TinyBackbone, tmp_path: Path, family: str, kind: str
) -> None:
    folder = in_whole_blocks(tiny_backbone(family), tmp_path) if kind == "int4" else tiny_backbone(family)
    runner = runner_of(folder, quantization=kind)
    shape = runner.backbone.shape
    names = ("lora_qv", "mam_adapter", "dora", "dora")
    structures = [published_method(name).structure(shape) for name in names]
    requests = [request_for(sized(one, number), number, steps=4) for number, one in enumerate(structures)]
    packed = train(runner.open_pack(len(names)), requests)
    references = [alone(runner, request) for request in requests]
    assert worst(packed, references, requests).share <= 1e-9
    checkpointed = [replace(one, plan=replace(one.plan, checkpointing=True)) for one in requests]
    again = train(runner.open_pack(len(names)), checkpointed)
    assert worst(again, references, requests).share <= 1e-9
    runner.close()


@pytest.mark.parametrize("kind", KINDS)
def test_dora_on_codes_is_that_on_the_dense_weights_and_keeps_none_of_them(
    tiny_backbone: TinyBackbone, tmp_path: Path, kind: str
) -> None:
    """Test some columns of a layer in float64, and the gradients of its inputs and parameters."""
    folder = in_whole_blocks(tiny_backbone("qwen3"), tmp_path)
    layer = next(iter(quantized(load(folder, quantization=kind, precision="float64").model).values()))
    shape, edit = made_up_shape(), Edit(site=Site.FFN, write=Port.U, read=Port.X_FFN, form=Dora(width=2), gate=Add())
    z = torch.randn(2, 3, layer.in_features, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    kept, found = [], []
    for held in (layer, layer.dense().double().T):
        matrix = FrozenMatrix(held=held, columns=slice(8, 56))
        place = FormPlace(blocks=blocks_of(edit, shape), width=2, weight=matrix)
        dora = DoraDelta(edit, place, torch.Generator().manual_seed(0)).double()
        with torch.no_grad():
            dora.b += torch.linspace(-1, 1, dora.b.numel(), dtype=torch.float64).view_as(dora.b)
            dora.magnitude += 1
        read = z.clone().requires_grad_()
        sizes: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda one, to=sizes: to.append(one.numel()) or one, lambda x: x):  # type: ignore[func-returns-value, misc]
            out = dora(read, torch.tensor(0.5, dtype=torch.float64))
        kept.append(max(sizes))
        found.append([out, *torch.autograd.grad(out.square().sum(), [read, *dora.parameters()])])
    for ours, wanted in zip(*found, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-12, atol=1e-12)
    whole = layer.in_features * 48
    assert kept[0] < whole <= kept[1]


@pytest.mark.parametrize("method", ["full_finetuning", "diff_pruning"])
def test_a_change_of_weights_themselves_is_refused_on_codes(tiny_backbone: TinyBackbone, method: str) -> None:
    runner = runner_of(tiny_backbone("roberta"), quantization="nf4", precision="fp32")
    request = request_for(published_method(method).structure(runner.backbone.shape), 0, steps=2)
    with pytest.raises(AttachError, match=r"must not be quantised; .* changes those") as refused:
        runner.open_pack(1).admit(request)
    assert "\n" not in str(refused.value)
    runner.close()
