"""Exports of trials on weights in 4 or 8 bits, or in bf16: attached, loaded by peft on an equal base, and merged."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.edits import edit
from support.export_cases import (
    LABELS,
    TEXTS,
    ExportTrial,
    facts_of,
    head_logits,
    hidden_of,
    logits_of,
    trained_of,
    trial_of,
)
from support.rounding import rounding
from support.tiny_backbones import rig_of
from support.whole_blocks import WIDTH, in_whole_blocks

from search_space.dimensions import Port
from search_space.forms import Dora, LowRank
from trial_runner.backbones import BackboneSource
from trial_runner.backbones.backbone import loading_options
from trial_runner.errors import ExportError
from trial_runner.export import BackboneFacts, load_delta, new_folder, open_delta, write_delta, write_merged, write_peft
from trial_runner.huggingface import quiet_transformers
from trial_runner.linear_layers import QuantizedLinear
from trial_runner.port_discovery.rig import Rig
from trial_runner.silence import quiet_quantizers

pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")

LORA = tuple(edit(*ports, LowRank(width=2)) for ports in ((Port.Q, Port.X_ATTN), (Port.V, Port.CTX)))
PRODUCTS = 2 * 8
"""One after another, attention's own among them."""

DORA = tuple(replace(one, form=Dora(width=2)) for one in LORA)
KINDS = (("nf4", DORA), ("int8", LORA), ("int4", LORA))
OTHERS = (("nf4", LORA), ("int8", DORA), ("int4", DORA))


@pytest.fixture
def folder(tiny_backbone: Callable[..., Path], tmp_path: Path) -> Path:
    return in_whole_blocks(tiny_backbone("qwen3"), tmp_path / "backbone")


def rig_on(folder: Path, **held: Any) -> Rig:
    return rig_of(BackboneSource(name=str(folder), **held), precision="float32")


def facts_on(rig: Rig) -> BackboneFacts:
    source = rig.backbone.source
    return replace(facts_of(rig.backbone), dtype=source.dtype, quantization=source.quantization)


def exported(rig: Rig, trial: ExportTrial, place: Path) -> Path:
    with new_folder(place) as unfinished:
        write_delta(unfinished, trained_of(rig, trial), backbone=facts_on(rig))
    return place


def hidden_with(rig: Rig, trial: ExportTrial) -> torch.Tensor:
    with rig.attachment.using(trial.deltas):
        return hidden_of(rig.backbone.model, rig.backbone)


def stock(folder: Path, auto_class: str, kind: str, **options: Any) -> Any:
    """Load a model as users do."""
    with quiet_transformers(), quiet_quantizers():
        import transformers

        held = loading_options(BackboneSource(name=str(folder), quantization=kind))
        model: Any = getattr(transformers, auto_class).from_pretrained(folder, **held, **options)
    for one in model.modules():
        one.support_avx512bf16_for_cpu = False  # its products are of other precision there
    return model.eval()


@pytest.mark.parametrize(("kind", "edits"), KINDS)
def test_quantized_delta_attaches_only_to_equal_quantization(folder, tmp_path, kind, edits):
    rig = rig_on(folder, quantization=kind)
    trial = trial_of(rig, *edits)
    wanted = logits_of(rig, trial)
    plain = head_logits(hidden_of(rig.backbone.model, rig.backbone), trial.head)
    bound = rounding(wanted, terms=PRODUCTS * WIDTH)
    assert (plain - wanted).abs().max() > 100 * bound, "what is attached is felt"
    place = exported(rig, trial, tmp_path / "delta")
    rig.attachment.detach()
    opened = open_delta(place)
    assert (opened.logits(TEXTS) - wanted).abs().max() <= bound
    assert (opened.labels, opened.backbone.quantization) == (LABELS, kind)
    opened.detach()
    model = stock(folder, "AutoModel", kind)
    before = hidden_of(model, rig.backbone)
    attached = load_delta(model, place)
    assert (attached.logits(TEXTS) - wanted).abs().max() <= bound
    attached.detach()
    assert not any(isinstance(one, QuantizedLinear) for one in model.modules())
    assert torch.equal(hidden_of(model, rig.backbone), before)
    others = [rig_on(folder).backbone, rig_on(folder, quantization="int8" if kind == "nf4" else "nf4").backbone]
    for other in others:
        with pytest.raises(ExportError, match=f"held as in its training, .*{kind}") as refused:
            load_delta(other, place)
        assert "\n" not in str(refused.value)


def test_a_delta_on_weights_in_bf16_is_attached_to_those(folder, tmp_path):
    rig = rig_on(folder, dtype="bf16")
    trial = trial_of(rig, *LORA)
    place = exported(rig, trial, tmp_path / "delta")
    rig.attachment.detach()
    with torch.autocast("cpu", torch.bfloat16):
        opened = open_delta(place)
        assert opened.logits(TEXTS).isfinite().all()
    opened.detach()
    with pytest.raises(ExportError, match=r"held as in its training, .*bf16"):
        load_delta(rig_on(folder).backbone, place)


@pytest.mark.parametrize(("kind", "edits"), [*KINDS, *OTHERS])
def test_peft_on_a_base_in_codes_has_the_logits_of_the_training(folder, tmp_path, kind, edits):
    rig = rig_on(folder, quantization=kind)
    trial = trial_of(rig, *edits)
    wanted = hidden_with(rig, trial)
    plain = hidden_of(rig.backbone.model, rig.backbone)
    with new_folder(tmp_path / "adapter") as place:
        trained = replace(trained_of(rig, trial), head=None)
        write_peft(place, trained, family=rig.backbone.family, shape=rig.backbone.shape, backbone=facts_on(rig))
    with quiet_quantizers():
        from peft import PeftModel
    model = PeftModel.from_pretrained(stock(folder, "AutoModelForCausalLM", kind), tmp_path / "adapter").eval()
    mask = torch.from_numpy(TEXTS.attention_mask)
    with torch.no_grad():
        inner = model.get_base_model().model
        found = inner(input_ids=torch.from_numpy(TEXTS.input_ids), attention_mask=mask.long()).last_hidden_state
    gap, moved = (found - wanted)[mask].abs().max(), (wanted - plain)[mask].abs().max()
    # bitsandbytes rounds what an int8 layer reads to 8 bits, half a code of its largest number, product after product
    rounding = torch.finfo(torch.float32).eps * WIDTH if kind != "int8" else 0.5 / 127
    bound = PRODUCTS * rounding * WIDTH**0.5 * wanted.abs().max()
    assert gap <= bound
    assert moved > (100 * gap if kind != "int8" else 2 * gap)


@pytest.mark.parametrize(("kind", "edits"), KINDS)
def test_merged_weights_are_dense_and_equal_the_delta(folder, tmp_path, kind, edits):
    from transformers import AutoModelForCausalLM

    rig = rig_on(folder, quantization=kind)
    trial = trial_of(rig, *edits)
    wanted = hidden_with(rig, trial)
    rig.attachment.detach()
    (tmp_path / "merged").mkdir()
    write_merged(tmp_path / "merged", rig.backbone, trial.deltas, None)
    assert any(isinstance(one, QuantizedLinear) for one in rig.backbone.model.modules())
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", attn_implementation="eager").eval()
    assert not hasattr(model.config, "quantization_config")
    found = hidden_of(model.model, rig.backbone)
    mask = torch.from_numpy(TEXTS.attention_mask)
    bound = PRODUCTS * torch.finfo(torch.float32).eps * WIDTH**1.5 * wanted.abs().max()
    assert (found - wanted)[mask].abs().max() <= bound
