import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel

import trial_runner.huggingface
from search_space.errors import UnsupportedBackboneError
from trial_runner.backbones import (
    config_of,
    embedded_folder,
    load_backbone,
    load_tokenizer,
    tokenizer_id,
    weights_sha256,
)
from trial_runner.errors import BackboneError

torch.set_num_threads(1)


@pytest.fixture
def unreachable_hub(monkeypatch, tmp_path):
    """A hub whose host has no address, and an empty cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(trial_runner.huggingface, "_is_resolved", lambda endpoint: False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.mark.parametrize("family", ["roberta", "bert"])
def test_a_folder_loads_as_the_frozen_base_model_with_the_stored_weights(tiny_backbone, family):
    folder = tiny_backbone(family)
    backbone = load_backbone(str(folder))
    expected = AutoModel.from_pretrained(folder, add_pooling_layer=False).state_dict()
    loaded = backbone.model.state_dict()
    assert loaded.keys() == expected.keys()
    assert all(torch.equal(loaded[key], expected[key]) for key in expected)
    assert not any(parameter.requires_grad for parameter in backbone.model.parameters())
    assert not any(module.training for module in backbone.model.modules())
    assert not any("pooler" in key for key in loaded)
    assert {parameter.dtype for parameter in backbone.model.parameters()} == {torch.float32}
    assert (backbone.family.name, backbone.shape.width, backbone.shape.encoder_layers) == (family, 16, 2)


def test_the_parameters_of_the_shape_are_those_of_the_full_pretrained_model(tiny_backbone):
    folder = tiny_backbone("bert")
    with_pooler = sum(p.numel() for p in load_backbone(str(folder)).model.parameters()) + 16 * 16 + 16
    assert load_backbone(str(folder)).shape.parameters == with_pooler


@pytest.mark.parametrize(("family", "limit"), [("roberta", 64), ("bert", 66)])
def test_the_longest_input_runs_and_a_longer_one_does_not(tiny_backbone, family, limit):
    backbone = load_backbone(str(tiny_backbone(family)))
    assert backbone.position_limit_tokens == limit
    assert backbone.model(torch.full((1, limit), 7)).last_hidden_state.shape == (1, limit, 16)
    with pytest.raises((IndexError, RuntimeError)):
        backbone.model(torch.full((1, limit + 1), 7))


def test_double_precision_holds_the_same_weights_and_has_the_same_hash(tiny_backbone):
    single = load_backbone(str(tiny_backbone("roberta")))
    double = load_backbone(str(tiny_backbone("roberta")), precision="float64")
    assert {parameter.dtype for parameter in double.model.parameters()} == {torch.float64}
    assert double.weights_sha256 == single.weights_sha256


def test_the_hash_of_the_weights_changes_with_any_weight(tiny_backbone):
    backbone = load_backbone(str(tiny_backbone("roberta")))
    with torch.no_grad():
        next(backbone.model.parameters())[0, 0] += 1e-3
    assert weights_sha256(backbone.model) != backbone.weights_sha256


def test_the_attention_function_is_the_one_that_was_asked_for(tiny_backbone):
    backbone = load_backbone(str(tiny_backbone("roberta")), attn_implementation="sdpa")
    assert backbone.model.config._attn_implementation == "sdpa"


def test_the_embedded_backbone_loads_without_a_word(capfd):
    backbone = load_backbone("embedded")
    tokenizer = backbone.load_tokenizer()
    assert tuple(capfd.readouterr()) == ("", "")
    assert (backbone.shape.width, backbone.shape.encoder_layers, backbone.position_limit_tokens) == (256, 4, 512)
    assert tokenizer.pad_token_id == backbone.pad_token_id
    assert (embedded_folder() / "README.md").is_file()


def test_the_embedded_backbone_has_learned_something():
    """Tokens of a sentence are nearer to those of the sentence with one word changed than to another's."""
    backbone = load_backbone("embedded")
    tokenizer = backbone.load_tokenizer()
    texts = ["The ship left the harbour.", "The boat left the harbour.", "Returns a list of integers."]
    vectors = [backbone.model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0) for text in texts]
    near, far = (torch.cosine_similarity(vectors[0], vectors[other], dim=0) for other in (1, 2))
    assert near > far + 0.05


def test_a_backbone_that_can_be_counted_but_not_trained_is_refused_before_weights_are_read(tmp_path):
    config = {"model_type": "gpt2", "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedBackboneError, match=r"families roberta, bert.*; got gpt2"):
        load_backbone(str(tmp_path))


def test_a_backbone_of_an_unknown_family_is_refused_with_the_known_ones(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "resnet"}')
    with pytest.raises(UnsupportedBackboneError, match=r"roberta.*bert.*got 'resnet'"):
        load_backbone(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere/at/all", "there is no such folder"),
        ("/nowhere", "there is no such folder"),
        ("{tmp}", "which has no config.json"),
        ("{tmp}/file", "Give its folder"),
        ("embeded", "Did you mean 'embedded'"),
    ],
)
def test_a_backbone_that_is_not_there_is_one_clear_line(tmp_path, name, message):
    (tmp_path / "file").touch()
    with pytest.raises(BackboneError, match=message) as caught:
        config_of(name.format(tmp=tmp_path))
    assert "'embedded', a folder with a config.json, or a hub name" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("unreachable_hub")
def test_a_hub_name_without_a_hub_is_one_clear_line_at_once(capfd):
    with pytest.raises(BackboneError, match=r"got 'somebody/something'.* cannot be reached") as caught:
        load_backbone("somebody/something")
    assert "\n" not in str(caught.value)
    assert tuple(capfd.readouterr()) == ("", "")


@pytest.mark.usefixtures("unreachable_hub")
def test_a_hub_backbone_in_the_cache_loads_without_a_hub(tiny_backbone, tmp_path):
    commit = "0" * 40
    repository = tmp_path / "hub" / "models--somebody--something"
    shutil.copytree(tiny_backbone("bert"), repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    cached = load_backbone("somebody/something")
    assert cached.weights_sha256 == load_backbone(str(tiny_backbone("bert"))).weights_sha256
    assert cached.load_tokenizer()("a").input_ids == load_tokenizer(str(tiny_backbone("bert")))("a").input_ids


@pytest.mark.parametrize("content", ["{", "[1]", ""])
def test_a_config_that_is_no_json_object_is_one_clear_line(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(BackboneError, match=r"config\.json of backbone"):
        config_of(str(tmp_path))


def test_weights_that_are_missing_damaged_or_incomplete_are_one_clear_line(tiny_backbone, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(tiny_backbone("bert"), tmp_path / "copy")
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(BackboneError, match=r"1 are missing, such as encoder\.layer\.1\.output\.dense\.weight"):
        load_backbone(str(folder))
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(BackboneError, match="must be readable"):
        load_backbone(str(folder))
    weights.unlink()
    with pytest.raises(BackboneError, match="must be readable"):
        load_backbone(str(folder))


def test_a_tokenizer_that_is_missing_or_too_large_is_one_clear_line(tiny_backbone, tmp_path):
    folder = shutil.copytree(tiny_backbone("bert"), tmp_path / "copy")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 50}))
    with pytest.raises(BackboneError, match="must have at most 50 tokens"):
        load_tokenizer(str(folder))
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(BackboneError, match="must have a tokenizer with a vocabulary"):
        load_tokenizer(str(folder))


def test_the_id_of_a_tokenizer_is_that_of_its_content_whatever_it_was_used_for(tiny_backbone, tmp_path):
    first = load_tokenizer(str(tiny_backbone("bert")))
    before = tokenizer_id(first)
    first(["a b c", "d"], truncation=True, max_length=3, padding=True)
    copy = shutil.copytree(tiny_backbone("bert"), tmp_path / "copy")
    assert tokenizer_id(first) == before == tokenizer_id(load_tokenizer(str(copy)))
    assert before != tokenizer_id(load_tokenizer(str(tiny_backbone("roberta"))))


def test_dropout_is_that_of_the_config_and_off_in_a_frozen_backbone(tiny_backbone):
    backbone = load_backbone(str(tiny_backbone("roberta", dropout=0.5)))
    assert backbone.model.config.hidden_dropout_prob == 0.5
    ids = torch.arange(5, 20)[None]
    np.testing.assert_array_equal(
        backbone.model(ids).last_hidden_state.numpy(), backbone.model(ids).last_hidden_state.numpy()
    )


def test_reading_a_config_and_importing_the_packages_loads_no_heavy_library():
    script = (
        "import sys; from trial_runner.backbones import config_of; import trial_runner.tasks; config_of('embedded');"
        "print(*{'torch', 'transformers', 'datasets', 'sklearn', 'huggingface_hub'} & set(sys.modules))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == ""
