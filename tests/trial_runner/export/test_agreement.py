"""Exports compared with their attached delta before they are reported: whole ones pass, broken ones do not."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.edits import edit
from support.export_cases import facts_of, trained_of, trial_of
from support.int8_products import need_exact_int8
from support.tiny_backbones import rig_of
from support.whole_blocks import in_whole_blocks

from search_space.dimensions import Port
from search_space.edit import Edit
from search_space.forms import Full, LowRank
from search_space.gates import FixedScale
from trial_runner.backbones import BackboneSource
from trial_runner.errors import ExportError
from trial_runner.export import TrainedDelta, write_delta, write_facts, write_merged, write_peft
from trial_runner.export.agreement import check_agreement
from trial_runner.export.merge import LinearSlice
from trial_runner.port_discovery.rig import Rig

RANK = LowRank(width=2, widened=1)
Q = edit(Port.Q, Port.X_ATTN, RANK, FixedScale(value=3))
V = edit(Port.V, Port.CTX, RANK)
FULL = edit(Port.WEIGHTS, None, Full())
LABELLERS, WRITERS = ("roberta", "bert", "t5", "gpt2"), ("llama", "gpt2", "t5", "bart")
MODELS = [*((family, True) for family in LABELLERS), *((family, False) for family in WRITERS)]

pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")


def trained(rig: Rig, *edits: Edit, has_head: bool) -> TrainedDelta:
    found = trained_of(rig, trial_of(rig, *edits))
    return found if has_head else TrainedDelta(**{**vars_of(found), "head": None})


def vars_of(one: TrainedDelta) -> dict[str, object]:
    return {name: getattr(one, name) for name in ("deltas", "head", "trained_as", "counts", "backbone_sha256")}


def written(rig: Rig, one: TrainedDelta, folder: Path, form: str) -> tuple[Path, Path]:
    """Write an export, and the same trial in the project's own format."""
    held, places = rig.backbone.source, (folder / form, folder / "attached")
    facts = replace(facts_of(rig.backbone), dtype=held.dtype, quantization=held.quantization)
    for place in places:
        place.mkdir()
    if form == "peft":
        write_peft(places[0], one, family=rig.backbone.family, shape=rig.backbone.shape, backbone=facts)
    else:
        write_merged(places[0], rig.backbone, one.deltas, one.head, max_tokens=24)
    write_facts(places[0], form, one, backbone=facts)
    write_delta(places[1], one, backbone=facts)
    return places


@pytest.mark.parametrize("form", ["merged", "peft"])
@pytest.mark.parametrize(("family", "has_head"), MODELS)
def test_whole_export_agrees_with_the_attached_delta(rig_named, family, has_head, form, tmp_path):
    rig = rig_named(family, "float32")
    one = trained(rig, Q, V, has_head=has_head)
    check_agreement(*written(rig, one, tmp_path, form), max_tokens=24)


@pytest.mark.parametrize("form", ["merged", "peft"])
@pytest.mark.parametrize("has_head", [True, False])
@pytest.mark.parametrize("held", [{"dtype": "bf16"}, *({"quantization": kind} for kind in ("nf4", "int8", "int4"))])
def test_export_of_rounded_weights_agrees(tiny_backbone, held, has_head, form, tmp_path):
    need_exact_int8(held.get("quantization"))
    source = BackboneSource(name=str(in_whole_blocks(tiny_backbone("qwen3"), tmp_path / "backbone")), **held)
    rig = rig_of(source, precision="float32")
    places = written(rig, trained(rig, Q, V, has_head=has_head), tmp_path, form)
    rig.attachment.detach()
    check_agreement(*places, max_tokens=24)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_merged_full_fine_tuning_with_tied_embeddings_agrees(rig_named, family, tmp_path):
    rig = rig_named(family, "float32")
    one = trained(rig, FULL, has_head=False)
    check_agreement(*written(rig, one, tmp_path, "merged"), max_tokens=24)


@pytest.mark.parametrize(("family", "has_head"), [("roberta", True), ("llama", False)])
def test_merge_with_a_wrong_sign_is_refused(rig_named, family, has_head, tmp_path, monkeypatch):
    rig = rig_named(family, "float32")
    one = trained(rig, Q, V, has_head=has_head)
    add = LinearSlice.add

    def subtracted(self: LinearSlice, other: object) -> None:
        before = self.matrix
        add(self, other)
        self.matrix = 2 * before - self.matrix

    monkeypatch.setattr(LinearSlice, "add", subtracted)
    places = written(rig, one, tmp_path, "merged")
    with pytest.raises(ExportError, match=r"cannot export as merged: its outputs differ .* Export without it"):
        check_agreement(*places, max_tokens=24)


@pytest.mark.parametrize(("family", "has_head"), [("roberta", True), ("llama", False)])
def test_merged_folder_without_its_head_is_refused(rig_named, family, has_head, tmp_path):
    rig = rig_named(family, "float32")
    places = written(rig, trained(rig, Q, V, has_head=has_head), tmp_path, "merged")
    file = places[0] / "model.safetensors"
    held = load_file(file)
    kept = {name: one for name, one in held.items() if not name.startswith(("lm_head", "classifier"))}
    assert len(kept) < len(held)
    save_file(kept, file, metadata={"format": "pt"})
    with pytest.raises(ExportError, match="cannot export as merged"):
        check_agreement(*places, max_tokens=24)


@pytest.mark.parametrize("part", ["lora_A", "lora_B"])
def test_adapter_with_a_wrong_sign_is_refused(rig_named, part, tmp_path):
    rig = rig_named("roberta", "float32")
    places = written(rig, trained(rig, Q, V, has_head=True), tmp_path, "peft")
    file = places[0] / "adapter_model.safetensors"
    held = {name: -one if part in name else one for name, one in load_file(file).items()}
    save_file(held, file, metadata={"format": "pt"})
    with pytest.raises(ExportError, match="cannot export as peft: its outputs differ"):
        check_agreement(*places, max_tokens=24)


@pytest.mark.parametrize("named", [None, [], ["LlamaModel"], ["LlamaForSequenceClassification"], "left out"])
def test_merged_class_is_that_of_the_search(tiny_backbone: Callable[[str], Path], named, tmp_path):
    from support.export_cases import rig_in_training

    backbone = tmp_path / "backbone"
    backbone.mkdir()
    for file in tiny_language_files(tiny_backbone("llama")):
        (backbone / file.name).write_bytes(file.read_bytes())
    facts = json.loads((backbone / "config.json").read_text())
    assert facts.pop("architectures") == ["LlamaForCausalLM"]
    entries = facts if named == "left out" else {**facts, "architectures": named}
    (backbone / "config.json").write_text(json.dumps(entries))
    rig = rig_in_training(backbone, "float32")
    places = written(rig, trained(rig, Q, has_head=False), tmp_path, "merged")
    assert json.loads((places[0] / "config.json").read_text())["architectures"] == ["LlamaForCausalLM"]
    head = load_file(places[0] / "model.safetensors")["lm_head.weight"]
    torch.testing.assert_close(head, load_file(backbone / "model.safetensors")["lm_head.weight"], rtol=0, atol=0)
    check_agreement(*places, max_tokens=24)
    rig.attachment.detach()


def tiny_language_files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file()]
