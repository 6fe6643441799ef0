"""Export of a trial: loaded on a fresh backbone, its outputs equal those of training."""

import contextlib
import copy
import gc
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.edits import edit
from support.export_cases import (
    LABELS,
    TEXTS,
    ExportTrial,
    every_example,
    exported,
    fresh_model,
    logits_of,
    rig_in_training,
    trained_of,
    trial_of,
)
from support.tiny_backbones import EVERY_DENSE_FAMILY, in_turn

from search_space.dimensions import Heads, Port
from search_space.edit import Edit
from search_space.forms import Bottleneck, EncodedPrompt, Full, Intrinsic, LowRank, SoftmaxMemory, Sparse
from search_space.gates import ConvexGate, FixedScale, Prepend
from trial_runner import load_delta
from trial_runner.errors import ExportError, SnapshotError
from trial_runner.export import new_folder, open_delta, trained_delta
from trial_runner.export.trained import PREFIX, load_tensors
from trial_runner.files import check_all_regular
from trial_runner.port_discovery.rig import Rig

EXACTLY = 1e-12
"""Where the order of sums is another; all else is equal bit for bit."""


def at_heads(hidden: int | None = None) -> Edit:
    form = SoftmaxMemory(width=3, heads=Heads.KEY_VALUE, reparameterization=hidden)
    return edit(Port.HEAD, Port.Q, form, ConvexGate())


def whole(form: Full | Sparse | Intrinsic) -> Edit:
    return edit(Port.WEIGHTS, None, form)


ADAPTER = edit(Port.F, Port.X_FFN, Bottleneck(width=5), FixedScale(value=4))
LORA = edit(Port.Q, Port.X_ATTN, LowRank(width=3, widened=1))


@pytest.fixture(scope="module", params=in_turn(*EVERY_DENSE_FAMILY, at_once=("roberta", "gpt2")))
def any_rig(request: pytest.FixtureRequest, rig_named: Callable[[str], Rig]) -> Rig:
    return rig_named(request.param)


@pytest.fixture(scope="module")
def rig(rig_named: Callable[[str], Rig]) -> Rig:
    return rig_named("roberta")


@pytest.fixture
def folder(rig: Rig, tmp_path: Path) -> Path:
    """Write an export of LoRA."""
    return exported(rig, trial_of(rig, LORA), tmp_path / "export")


def forged(folder: Path, **facts: object) -> None:
    """Change facts in ``delta.json``."""
    file = folder / "delta.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **facts}))


def without_head(trial: ExportTrial) -> ExportTrial:
    tensors = {name: tensor for name, tensor in trial.snapshot.tensors.items() if not name.startswith("head.")}
    return replace(trial, snapshot=replace(trial.snapshot, tensors=tensors))


@pytest.mark.slow
def test_every_form_and_gate_computes_the_same_on_a_fresh_backbone(any_rig, tmp_path):
    model = fresh_model(any_rig)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    frozen = model(input_ids=torch.from_numpy(TEXTS.input_ids), **_decoder(any_rig)).last_hidden_state
    for index, one in enumerate(every_example(any_rig)):
        trial = trial_of(any_rig, one)
        expected = logits_of(any_rig, trial)
        loaded = load_delta(model, exported(any_rig, trial, tmp_path / str(index)))
        with torch.no_grad():
            found = loaded.logits(TEXTS)
        is_folded = loaded.facts["trained_as"] is not None
        torch.testing.assert_close(found, expected, rtol=0, atol=EXACTLY if is_folded else 0, msg=str(one))
        loaded.detach()
    after = model(input_ids=torch.from_numpy(TEXTS.input_ids), **_decoder(any_rig)).last_hidden_state
    assert torch.equal(frozen, after)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())


def _decoder(rig: Rig) -> dict[str, torch.Tensor]:
    return {"decoder_input_ids": torch.from_numpy(TEXTS.input_ids)} if "decoder_input_ids" in rig.inputs else {}


def test_written_parameters_equal_the_counted_ones(rig, tmp_path):
    shape = rig.backbone.shape
    cases = [
        (at_heads(hidden=5), 2 * 2 * 3 * shape.key_value_width),  # two layers, keys and values, three rows
        (edit(Port.EMBEDDING, None, EncodedPrompt(width=3, hidden=12), Prepend()), 3 * shape.width),
        (whole(Full()), shape.frozen_parameters),
        (whole(Sparse(width=50)), 50),
        (whole(Intrinsic(width=60, per_tensor=True)), 60),
    ]
    for one, stored in cases:
        folder = exported(rig, trial_of(rig, one), tmp_path / one.form.name)
        tensors = load_file(folder / "delta.safetensors")
        trained = [tensor for tensor in tensors.values() if tensor.is_floating_point()]
        head = 3 * shape.width + 3
        assert sum(tensor.numel() for tensor in trained) == stored + head
        facts = json.loads((folder / "delta.json").read_text())
        assert (facts["counts"]["stored"], facts["counts"]["head"]) == (stored, head)
        assert sorted(path.name for path in folder.iterdir()) == ["delta.json", "delta.safetensors"]


def test_random_subspace_is_kept_with_a_folded_prefix(rig, tmp_path):
    trial = trial_of(rig, at_heads(hidden=5), whole(Intrinsic(width=20)))
    loaded = load_delta(fresh_model(rig), exported(rig, trial, tmp_path / "export"))
    torch.testing.assert_close(loaded.logits(TEXTS), logits_of(rig, trial), rtol=0, atol=EXACTLY)


def test_a_delta_loads_on_every_way_of_having_the_backbone(tiny_backbone, tmp_path):
    from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

    from trial_runner.huggingface import quiet_transformers

    rigs = {name: rig_in_training(tiny_backbone(name), "float32") for name in ("roberta", "bart")}
    kinds = {"roberta": AutoModelForSequenceClassification, "bart": AutoModelForSeq2SeqLM}
    for name, rig in rigs.items():
        trial = trial_of(rig, at_heads(), ADAPTER)
        expected = logits_of(rig, trial)
        folder = exported(rig, trial, tmp_path / name)
        rig.attachment.detach()
        with quiet_transformers():
            with_head = kinds[name].from_pretrained(rig.backbone.name).eval()
        for loaded in (open_delta(folder), load_delta(rig.backbone, folder), load_delta(with_head, folder)):
            assert torch.equal(loaded.logits(TEXTS), expected), loaded.model
            assert loaded.labels == LABELS
            loaded.detach()


def test_a_language_model_computes_with_the_delta_until_it_is_detached(tiny_language_model, tiny_backbone, tmp_path):
    rig = rig_in_training(tiny_backbone("gpt2"), "float32")
    trial = without_head(trial_of(rig, at_heads(), ADAPTER))
    folder = exported(rig, trial, tmp_path / "export")
    model = tiny_language_model("gpt2")
    inputs = {"input_ids": torch.from_numpy(TEXTS.input_ids)}
    frozen = model(**inputs).logits
    with rig.attachment.using(trial.deltas):
        hidden = rig.backbone.model(**inputs).last_hidden_state
    loaded = load_delta(model, folder)
    expected = model.lm_head(hidden)
    assert (loaded.head, loaded.labels) == (None, ())
    assert torch.equal(loaded.logits(inputs), expected)
    assert torch.equal(loaded(**inputs).logits, expected)
    assert torch.equal(model(**inputs).logits, expected)
    loaded.detach()
    loaded.detach()
    assert torch.equal(model(**inputs).logits, frozen)
    with pytest.raises(ExportError, match="must have a head to compute logits"):
        open_delta(folder).logits(inputs)


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_a_tied_head_follows_a_change_of_the_whole_model(tiny_language_model, tiny_backbone, tmp_path, family):
    rig = rig_in_training(tiny_backbone(family), "float32")
    trial = without_head(trial_of(rig, whole(Full())))
    model = tiny_language_model(family)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    head = model.get_output_embeddings().weight
    loaded = load_delta(model, exported(rig, trial, tmp_path / "export"))
    inputs = {"input_ids": torch.from_numpy(TEXTS.input_ids), **_decoder(rig)}
    with rig.attachment.using(trial.deltas), torch.no_grad():
        hidden = rig.backbone.model(**inputs).last_hidden_state
        embeddings = rig.backbone.model.get_input_embeddings().weight
    scale = hidden.shape[-1] ** -0.5 if family == "t5" else 1.0
    expected = torch.nn.functional.linear(hidden * scale, head if family == "llama" else embeddings)
    with torch.no_grad():
        assert torch.equal(loaded.logits(inputs), expected)
    loaded.detach()
    assert model.get_output_embeddings().weight is head
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_backbone_with_other_weights_is_refused_with_both_named(rig, folder):
    other = fresh_model(rig)
    with torch.no_grad():
        other.encoder.layer[0].output.dense.bias[0] += 1e-3
    other.config._name_or_path = other.name_or_path = "some/other-model"
    with pytest.raises(ExportError) as refused:
        load_delta(other, folder)
    own = rig.backbone.weights_sha256[:12]
    assert f"{rig.backbone.name} (weights {own})" in str(refused.value)
    assert "got some/other-model (weights " in str(refused.value)
    assert other.config._attn_implementation != "deltaspace"
    assert not any(module._forward_hooks for module in other.modules())


@pytest.mark.parametrize("what", ["value", "head", "name", "garbage"])
def test_weights_that_were_changed_are_refused(rig, folder, what):
    file = folder / "delta.safetensors"
    tensors = load_file(file)
    if what == "garbage":
        file.write_bytes(file.read_bytes()[:-4])
    else:
        name = next(iter(tensors)) if what != "head" else "head.bias"
        changed = tensors.pop(name) + (what != "name") * 1e-6
        save_file(tensors | {f"{name}x" if what == "name" else name: changed}, file, metadata={"format": "deltaspace"})
    with pytest.raises(ExportError, match="must be as it was written, with hash") as refused:
        load_delta(fresh_model(rig), folder)
    assert "\n" not in str(refused.value)


def test_more_tensors_than_any_export_has_are_refused_unread(rig, folder):
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"deltas.{number}": entry for number in range(60_000)}).encode()
    content = len(header).to_bytes(8, "little") + header
    (folder / "delta.safetensors").write_bytes(content)
    forged(folder, weights={"sha256": hashlib.sha256(content).hexdigest()})
    for read in (partial(load_delta, fresh_model(rig)), check_all_regular):
        with pytest.raises(ExportError, match=r"the header of .* must have at most 4,194,304 bytes; got [\d,]+\. Exp"):
            read(folder)


def test_a_configuration_that_was_changed_does_not_fit_its_weights(rig, folder):
    configuration = json.loads((folder / "delta.json").read_text())["configuration"]
    configuration["edits"][0]["form"]["width"] += 1
    forged(folder, configuration=configuration)
    with pytest.raises(ExportError, match=r"must hold the [\d,]+ parameters of its configuration; got"):
        load_delta(fresh_model(rig), folder)
    configuration["edits"][0]["layers"] = {"name": "range", "first": 1, "last": 1}
    configuration["edits"][0]["form"]["widened"] = 0
    forged(folder, configuration=configuration)
    with pytest.raises(ExportError, match=r"must hold the [\d,]+ parameters of its configuration; got"):
        load_delta(fresh_model(rig), folder)


def test_tensors_of_other_names_or_shapes_are_refused(rig, tmp_path):
    trained = trained_of(rig, trial_of(rig, LORA))
    tensors = trained.tensors()
    name = next(name for name, tensor in tensors.items() if tensor.dim() == 2)
    with pytest.raises(ExportError, match="must have shape"):
        load_tensors(trained.deltas, {**tensors, name: tensors[name].T})
    with pytest.raises(ExportError, match="hold the tensors of its configuration"):
        load_tensors(trained.deltas, {**tensors, f"{PREFIX}another": tensors[name]})


@pytest.mark.parametrize(
    ("file", "match"),
    [
        ("delta.json", "must have a readable delta.json"),
        ("delta.safetensors", "cannot read delta.safetensors of an export"),
    ],
)
def test_a_folder_that_is_no_whole_export_is_refused(rig, folder, file, match):
    (folder / file).unlink()
    with pytest.raises(ExportError, match=match):
        load_delta(fresh_model(rig), folder)


@pytest.mark.parametrize("file", ["delta.json", "delta.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_an_export_of_pipes_or_devices_is_refused_unread(rig, folder, file, kind):
    (folder / file).unlink()
    if kind == "pipe":
        os.mkfifo(folder / file)
    else:
        (folder / file).symlink_to("/dev/zero")
    with pytest.raises(ExportError, match="it must be a regular file"):
        load_delta(fresh_model(rig), folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_weights_of_another_precision_are_refused_with_a_remedy(rig, folder, dtype):
    model = fresh_model(rig).to(dtype)
    with pytest.raises(ExportError) as refused:
        load_delta(model, folder)
    name = str(dtype).removeprefix("torch.")
    assert f"has some in {name}. Load it with dtype=torch.float64." in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_model_takes_one_delta_at_a_time(rig, folder):
    model = fresh_model(rig)
    loaded = load_delta(model, folder)
    with pytest.raises(ExportError, match="has one already"):
        load_delta(model, folder)
    loaded.detach()
    load_delta(model, folder).detach()


@pytest.mark.slow
def test_a_model_keeps_its_delta_whether_or_not_the_result_is_kept(rig, folder):
    model, tokens = fresh_model(rig), torch.from_numpy(TEXTS.input_ids)
    frozen = model(input_ids=tokens).last_hidden_state
    kept = load_delta(model, folder)
    expected = model(input_ids=tokens).last_hidden_state
    kept.detach()
    load_delta(model, folder)
    gc.collect()
    assert torch.equal(model(input_ids=tokens).last_hidden_state, expected)
    assert not torch.equal(expected, frozen)
    model.deltaspace_delta.detach()
    assert torch.equal(model(input_ids=tokens).last_hidden_state, frozen)
    assert not hasattr(model, "deltaspace_delta")


def test_existing_folder_is_never_overwritten(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "full" / "mine").mkdir(parents=True)
    (tmp_path / "file").write_text("mine")
    for name in ("empty", "full", "file"):
        with pytest.raises(ExportError, match="is there already"), new_folder(tmp_path / name):
            pytest.fail("nothing must be written")
    assert ((tmp_path / "file").read_text(), (tmp_path / "full" / "mine").is_dir()) == ("mine", True)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o007, 0o660)])
def test_weights_have_the_mode_of_the_facts(rig, tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        folder = exported(rig, trial_of(rig, LORA), tmp_path / "export")
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}
    assert modes == dict.fromkeys(("delta.json", "delta.safetensors"), mode)


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    with contextlib.suppress(ZeroDivisionError), new_folder(tmp_path / "a" / "export") as place:
        (place / "half").write_text("half")
        assert not (tmp_path / "a" / "export").exists()
        raise ZeroDivisionError
    assert list((tmp_path / "a").iterdir()) == []


def test_width_mismatch_is_refused_before_building(rig, tmp_path, monkeypatch):
    folder = exported(rig, trial_of(rig, ADAPTER), tmp_path / "export")
    configuration = json.loads((folder / "delta.json").read_text())["configuration"]
    configuration["edits"][0]["form"]["width"] = 10_000_000
    forged(folder, configuration=configuration)
    monkeypatch.setattr("trial_runner.export.loader.DeltaSet", None)
    with pytest.raises(ExportError, match=r"must hold the [\d,]{9,} parameters of its configuration; got"):
        load_delta(fresh_model(rig), folder)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"labels": 5}, "must be a list of texts"),
        ({"labels": [["no"], "yes", "perhaps"]}, "must be a list of texts"),
        ({"labels": ["no", "yes"]}, "cannot load the head of an export"),
        ({"backbone": {"name": 5}}, "must have its fields; got name: "),
        ({"backbone": [1]}, "must have its fields; got no names"),
        ({"configuration": [1, 2]}, "must be of schema version"),
        ({"configuration": {"schema_version": 2, "edits": 7}}, "stored configuration"),
        ({"weights": "none"}, "must be as it was written"),
        ({"schema_version": {}}, "must be of format deltaspace"),
        ({"schema_version": 99}, "version 1; got 'deltaspace' of version 99"),
    ],
)
def test_forged_facts_are_one_line(rig, folder, facts, message):
    forged(folder, **facts)
    with pytest.raises(ExportError, match=message) as caught:
        load_delta(fresh_model(rig), folder)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, '{"a": ' + "9" * 100_000 + "}", "\x00", "[]", '"a"', ""]
)
def test_facts_that_are_no_plain_json_are_one_line(rig, folder, text):
    (folder / "delta.json").write_text(text)
    with pytest.raises(ExportError, match="must be a JSON object" if text in ("[]", '"a"') else "readable") as caught:
        load_delta(fresh_model(rig), folder)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_incomplete_snapshot_is_refused_before_building(rig, monkeypatch):
    snapshot = trial_of(rig, ADAPTER).snapshot
    facts = copy.deepcopy(snapshot.facts)
    facts["configuration"]["edits"][0]["form"]["width"] = 10_000_000
    monkeypatch.setattr("trial_runner.export.trained.DeltaSet", None)
    with pytest.raises(SnapshotError, match="parameters, where its configuration trains"):
        trained_delta(replace(snapshot, facts=facts), rig.backbone.shape, frozen=rig.weights())


def test_a_snapshot_that_lacks_something_is_not_exported(rig):
    snapshot = trial_of(rig, LORA).snapshot
    for name in ("head.bias", next(name for name in snapshot.tensors if name.startswith("deltas."))):
        broken = replace(snapshot, tensors={key: one for key, one in snapshot.tensors.items() if key != name})
        with pytest.raises(SnapshotError, match="must be whole to be exported"):
            trained_delta(broken, rig.backbone.shape)


def test_only_networks_that_serve_training_are_folded(rig):
    assert not trained_of(rig, trial_of(rig, at_heads())).is_folded
    folded = trained_of(rig, trial_of(rig, at_heads(hidden=5)))
    assert folded.is_folded
    (one,) = folded.configuration.edits
    assert one.form == SoftmaxMemory(width=3, heads=Heads.KEY_VALUE)


@pytest.mark.slow
def test_asking_for_the_package_loads_no_torch():
    script = "import sys, trial_runner; assert 'torch' not in sys.modules; trial_runner.load_delta"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    import trial_runner

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = trial_runner.nothing
