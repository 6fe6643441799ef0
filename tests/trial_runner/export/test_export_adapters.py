"""Exports as adapters of AdapterHub's `adapters`: its file names, keys and configs, and its own outputs where it is.

It needs an older transformers, so that it is never beside this project: ``DELTASPACE_ADAPTERS`` names a folder with
both, which a Python of its own then takes first::

    pip install --target FOLDER --no-deps adapters==1.3.0 transformers==4.57.6 'huggingface_hub<1' 'tokenizers<0.23'

The tables of keys hold without it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support.export_cases import LABELS, TEXTS, facts_of, logits_of, trained_of, trial_of
from torch import Tensor

from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Port, ScalePer, Site
from search_space.edit import Edit
from search_space.forms import Bottleneck, Diagonal, Form, LowRank, OwnNorm, SoftmaxMemory
from search_space.gates import Add, ConvexGate, FixedScale, Gate, LearnedScale, Multiply
from search_space.layers import LayerRange
from trial_runner.contract.rig import Rig
from trial_runner.errors import ExportError
from trial_runner.export import new_folder, unadaptable, write_adapters

PLACE = os.environ.get("DELTASPACE_ADAPTERS", "")
FAMILIES = ("roberta", "bert", "electra")
WITHIN = 1e-10


def edit(write: Port, read: Port, form: Form, gate: Gate | None = None, **options: Any) -> Edit:
    site = Site.FFN if write in (Port.U, Port.M, Port.F, Port.SUM) else Site.ATTENTION
    return Edit(**({"site": site, "write": write, "read": read, "form": form, "gate": gate or Add()} | options))


LAST = LayerRange(first=1, last=1)
Q = edit(Port.Q, Port.X_ATTN, LowRank(width=2, widened=1), FixedScale(value=3))
V = edit(Port.V, Port.CTX, LowRank(width=1), LearnedScale(per=ScalePer.CHANNEL))
DOWN = edit(Port.F, Port.M, LowRank(width=3))
PREFIX = edit(Port.HEAD, Port.Q, SoftmaxMemory(width=3, heads=Heads.KEY_VALUE), ConvexGate())
PARALLEL = edit(Port.F, Port.X_FFN, Bottleneck(width=3, widened=1), FixedScale(value=4))
CASES: dict[str, tuple[Edit, ...]] = {
    "lora of q and v": (Q, V),
    "lora of one layer": (
        edit(Port.K, Port.CTX, LowRank(width=2), layers=LAST),
        edit(Port.F, Port.M, LowRank(width=3)),
    ),
    "lora of up": (edit(Port.U, Port.X_FFN, LowRank(width=2), FixedScale(value=0.5)),),
    "houlsby": (
        edit(Port.O, Port.O, Bottleneck(width=3, norm=OwnNorm.INPUT, activation=Activation.GELU)),
        edit(Port.F, Port.F, Bottleneck(width=2, bias=False, activation=Activation.TANH)),
    ),
    "parallel at attention": (edit(Port.O, Port.RES_IN, Bottleneck(width=5), LearnedScale(), layers=LAST),),
    "scaled by channel": (edit(Port.F, Port.RES_F, Bottleneck(width=2), LearnedScale(per=ScalePer.CHANNEL)),),
    "low rank beside attention": (edit(Port.O, Port.X_ATTN, LowRank(width=2), FixedScale(value=2)),),
    "prefix": (PREFIX,),
    "mam": (PREFIX, PARALLEL),
    "everything": (Q, V, PREFIX, PARALLEL, edit(Port.O, Port.O, Bottleneck(width=2))),
}


def exported(rig: Rig, folder: Path, *edits: Edit) -> Tensor:
    """Writes the adapter; the logits that the trial had."""
    trial = trial_of(rig, *edits)
    trained, backbone = trained_of(rig, trial), rig.backbone
    with new_folder(folder) as place:
        write_adapters(place, trained, family=backbone.family, shape=backbone.shape, backbone=facts_of(backbone))
    return logits_of(rig, trial)


PROGRAM = """
import json, sys
import torch
from adapters import AutoAdapterModel

torch.set_default_dtype(torch.float64)  # of the modules that it makes
given = json.load(sys.stdin)
ids, mask = torch.tensor(given["ids"]), torch.tensor(given["mask"])
for backbone, folder in given["cases"]:
    model = AutoAdapterModel.from_pretrained(backbone, torch_dtype=torch.float64, attn_implementation="eager")
    told = {}
    name = model.load_adapter(folder, use_safetensors=True, set_active=True, loading_info=told)
    model.double().eval()
    with torch.no_grad():
        each = model(input_ids=ids, attention_mask=mask.long()).logits
    real = mask.unsqueeze(-1)
    logits = (each * real).sum(dim=1) / real.sum(dim=1)
    print("RESULT", json.dumps([logits.tolist(), told.get("unexpected_keys", [])]))
"""


@pytest.mark.skipif(not PLACE, reason="DELTASPACE_ADAPTERS names no folder with adapters and its transformers")
@pytest.mark.parametrize("family", FAMILIES)
def test_adapters_computes_what_the_trial_did(rig_named: Callable[[str], Rig], family: str, tmp_path: Path) -> None:
    rig = rig_named(family)
    expected = {name: exported(rig, tmp_path / name, *edits) for name, edits in CASES.items()}
    given = {
        "ids": TEXTS.input_ids.tolist(),
        "mask": TEXTS.attention_mask.tolist(),
        "cases": [(rig.backbone.name, str(tmp_path / name)) for name in CASES],
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(given),
        env={**os.environ, "PYTHONPATH": PLACE, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    far = {
        name: (torch.tensor(found, dtype=torch.float64) - logits).abs().max().item()
        for (name, logits), (found, _) in zip(expected.items(), lines, strict=True)
    }
    assert [unexpected for _, unexpected in lines] == [[] for _ in CASES]
    assert {name: by for name, by in far.items() if not by < WITHIN} == {}


def test_files_keys_and_configs_are_those_that_its_loader_reads(
    rig_named: Callable[[str], Rig], tmp_path: Path
) -> None:
    """By the loader and the modules of release 1.3: ``loading.py``, ``methods``, ``heads/base.py``."""
    rig = rig_named("roberta")
    exported(rig, tmp_path / "mam", *CASES["mam"])
    names = ["adapter.safetensors", "adapter_config.json", "head_config.json", "model_head.safetensors"]
    assert sorted(path.name for path in (tmp_path / "mam").iterdir()) == names
    stated = json.loads((tmp_path / "mam" / "adapter_config.json").read_text())
    assert (stated["name"], stated["model_class"]) == ("deltaspace", "RobertaAdapterModel")
    prefix, parallel = stated["config"]["configs"]
    assert prefix == {"architecture": "prefix_tuning", "flat": True, "prefix_length": 3}
    width = rig.backbone.shape.width
    units = [int(width // parallel["reduction_factor"][layer]) for layer in ("0", "1")]
    assert (units, parallel["scaling"], parallel["is_parallel"]) == ([3, 4], 4.0, True)
    assert (parallel["output_adapter"], parallel["mh_adapter"], parallel["leave_out"]) == (True, False, [])
    shapes = {key: tuple(one.shape) for key, one in load_file(tmp_path / "mam" / names[0]).items()}
    expected: dict[str, tuple[int, ...]] = {
        "roberta.prefix_tuning.prefix_tunings.deltaspace.self_prefix.control_trans": (3 * 2 * 2 * width,)
    }
    for layer, units_there in enumerate(units):
        at = f"roberta.encoder.layer.{layer}.output.adapters.deltaspace"
        expected |= {
            f"{at}.adapter_down.0.weight": (units_there, width),
            f"{at}.adapter_down.0.bias": (units_there,),
            f"{at}.adapter_up.weight": (width, units_there),
            f"{at}.adapter_up.bias": (width,),
        }
    assert shapes == expected
    head = json.loads((tmp_path / "mam" / "head_config.json").read_text())["config"]
    assert (head["head_type"], head["layers"], head["label2id"]) == ("tagging", 1, {"no": 0, "yes": 1, "perhaps": 2})
    outputs = load_file(tmp_path / "mam" / names[3])
    assert {key: tuple(one.shape) for key, one in outputs.items()} == {
        "heads.deltaspace.1.weight": (len(LABELS), width),
        "heads.deltaspace.1.bias": (len(LABELS),),
    }


def test_low_rank_maps_are_one_of_one_rank_with_scales_in_b(rig_named: Callable[[str], Rig], tmp_path: Path) -> None:
    rig = rig_named("bert")
    trial = trial_of(rig, Q, V)
    exported(rig, tmp_path / "lora", Q, V)
    config = json.loads((tmp_path / "lora" / "adapter_config.json").read_text())["config"]
    assert (config["architecture"], config["r"], config["alpha"]) == ("lora", 3, 3)
    assert (config["attn_matrices"], config["intermediate_lora"], config["output_lora"]) == (["q", "v"], False, False)
    found = load_file(tmp_path / "lora" / "adapter.safetensors")
    for plan in trial.deltas.plans.values():
        for delta in (delta for some in plan.parallel.values() for delta in some):
            module = {Port.Q: "query", Port.V: "value"}[delta.edit.write]
            (layer,) = (s.layer for s, other in trial.deltas.plans.items() if other is plan)
            at = f"bert.encoder.layer.{layer}.attention.self.{module}.loras.deltaspace"
            product = (found[f"{at}.lora_B"] @ found[f"{at}.lora_A"]).T
            torch.testing.assert_close(product, delta.affine().matrix(product), rtol=0, atol=1e-12)
            assert found[f"{at}.lora_A"].shape[0] == 3


def test_numbers_stand_where_its_modules_read_them(rig_named: Callable[[str], Rig], tmp_path: Path) -> None:
    """Rows, then layers with keys before values, then heads; matrices as ``nn.Linear`` has them."""
    rig = rig_named("roberta")
    trial, shape = trial_of(rig, *CASES["mam"]), rig.backbone.shape
    exported(rig, tmp_path / "mam", *CASES["mam"])
    found = load_file(tmp_path / "mam" / "adapter.safetensors")
    flat = found["roberta.prefix_tuning.prefix_tunings.deltaspace.self_prefix.control_trans"]
    rows = flat.view(3, 2 * shape.encoder_layers, shape.query_heads, -1)
    for sublayer, plan in trial.deltas.plans.items():
        for prefix in plan.lse:
            for offset, table in enumerate(prefix.table()):
                assert torch.equal(rows[:, 2 * sublayer.layer + offset].transpose(0, 1), table)
        for adapter in (one for some in plan.parallel.values() for one in some):
            at = f"roberta.encoder.layer.{sublayer.layer}.output.adapters.deltaspace"
            own = dict(adapter.form.named_parameters())
            assert torch.equal(found[f"{at}.adapter_down.0.weight"].T, own["down"])
            assert torch.equal(found[f"{at}.adapter_down.0.bias"], own["down_bias"])
            assert torch.equal(found[f"{at}.adapter_up.weight"].T, own["up"])
            assert torch.equal(found[f"{at}.adapter_up.bias"], own["up_bias"])


REFUSED = {
    "after the residual sum": (edit(Port.SUM, Port.SUM, Bottleneck(width=2)), "reads sum and writes sum"),
    "ia3": (edit(Port.K, Port.K, Diagonal(), Multiply()), "no such form"),
    "lora of the output": (edit(Port.O, Port.CONCAT, LowRank(width=2)), "residual stream"),
    "a longer prefix at one layer": (
        edit(Port.HEAD, Port.Q, SoftmaxMemory(width=3, widened=1, heads=Heads.KEY_VALUE), ConvexGate()),
        "as long at every layer",
    ),
    "a norm on what it computes": (
        edit(Port.O, Port.O, Bottleneck(width=2, norm=OwnNorm.OUTPUT)),
        "LayerNorm of their own on what they read",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_express_is_refused_by_name(rig_named: Callable[[str], Rig], name: str, tmp_path: Path) -> None:
    wrong, why = REFUSED[name]
    rig = rig_named("roberta")
    (found,) = unadaptable(Configuration(edits=(wrong, PARALLEL)), rig.backbone.shape, "roberta").items()
    assert found[0].startswith("edit 0 (")
    assert why in found[1]
    with pytest.raises(ExportError, match="every edit must be one that adapters has"):
        exported(rig, tmp_path / "out", wrong)
    assert not (tmp_path / "out").exists()


def test_two_of_a_kind_at_a_place_another_family_and_no_edit_are_refused(rig_named: Callable[[str], Rig]) -> None:
    shape = rig_named("roberta").backbone.shape
    twice = Configuration(edits=(PARALLEL, edit(Port.F, Port.F, Bottleneck(width=2))))
    assert list(unadaptable(twice, shape, "roberta").values()) == ["it has one of a kind at a place"]
    assert list(unadaptable(twice, shape, "gpt2")) == ["the backbone"]
    assert list(unadaptable(Configuration(edits=()), shape, "bert")) == ["nothing"]
