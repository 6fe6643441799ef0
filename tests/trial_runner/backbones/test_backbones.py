import json
import shutil

import pytest
import torch
from support.tiny_backbones import EVERY_FAMILY, exact_attention
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM

import trial_runner.huggingface
from search_space.dimensions import Positions, StackKind
from search_space.errors import UnsupportedBackboneError
from trial_runner.attachment.attention import register_attention
from trial_runner.backbones import (
    config_of,
    embedded_folder,
    load_backbone,
    load_tokenizer,
    tokenizer_id,
    weights_sha256,
)
from trial_runner.backbones.locate import padding_token
from trial_runner.errors import BackboneError

torch.set_num_threads(1)

ENCODERS = ("roberta", "bert", "distilbert", "electra", "modernbert", "eurobert", "deberta-v2", "mpnet")
LANGUAGE_MODELS = {StackKind.DECODER: AutoModelForCausalLM, StackKind.ENCODER_DECODER: AutoModelForSeq2SeqLM}


def base_weights(model):
    """Return the weights of a model without its head and pooler; that of T5 is its own base model."""
    weights = model.base_model.state_dict()
    return {name: tensor for name, tensor in weights.items() if not name.startswith(("lm_head", "pooler"))}


def hidden_states(backbone, ids, mask=None):
    """Return the output of the last stack; a decoder that reads an encoder gets the same tokens."""
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids) if mask is None else mask}
    if backbone.shape.kind is StackKind.ENCODER_DECODER:
        inputs |= {"decoder_input_ids": ids, "decoder_attention_mask": inputs["attention_mask"]}
    return backbone.model(**inputs).last_hidden_state


@pytest.fixture
def unreachable_hub(monkeypatch, tmp_path):
    """Simulate a hub whose host has no address, with an empty cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(trial_runner.huggingface, "is_resolved", lambda endpoint: False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_folder_loads_silently_as_frozen_base_model(tiny_backbone, family, capfd):
    folder = tiny_backbone(family)
    capfd.readouterr()
    backbone = load_backbone(str(folder))
    backbone.load_tokenizer()
    assert tuple(capfd.readouterr()) == ("", "")
    kind = backbone.shape.kind
    expected = base_weights(LANGUAGE_MODELS.get(kind, AutoModel).from_pretrained(folder))
    loaded = backbone.model.state_dict()
    assert loaded.keys() == expected.keys()
    assert all(torch.equal(loaded[key], expected[key]) for key in expected)
    assert not any(parameter.requires_grad for parameter in backbone.model.parameters())
    assert not any(module.training for module in backbone.model.modules())
    assert {parameter.dtype for parameter in backbone.model.parameters()} == {torch.float32}
    assert (backbone.family.name, backbone.shape.width) == (family.removesuffix("_gated"), 16)
    layers = (backbone.shape.encoder_layers, backbone.shape.decoder_layers)
    assert layers == {StackKind.ENCODER: (2, 0), StackKind.DECODER: (0, 2)}.get(kind, (2, 2))
    sizes = [parameter.numel() for parameter in backbone.model.parameters()]
    assert (sum(sizes), len(sizes)) == (backbone.shape.frozen_parameters, backbone.shape.parameter_tensors)
    double = load_backbone(str(folder), precision="float64")
    assert {parameter.dtype for parameter in double.model.parameters()} == {torch.float64}
    assert double.weights_sha256 == backbone.weights_sha256


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_the_longest_input_runs_and_a_longer_one_does_not(tiny_backbone, family):
    limit = 64 if family in ("roberta", "mpnet") else 66
    backbone = load_backbone(str(tiny_backbone(family)))
    positions = backbone.shape.positions
    assert backbone.position_limit_tokens == (None if positions.are_relative else limit)
    assert hidden_states(backbone, torch.full((1, limit), 7)).shape == (1, limit, 16)
    if positions is not Positions.ABSOLUTE:
        assert hidden_states(backbone, torch.full((1, limit + 1), 7)).shape == (1, limit + 1, 16)
        return
    with pytest.raises((IndexError, RuntimeError)):
        hidden_states(backbone, torch.full((1, limit + 1), 7))


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_padding_does_not_change_hidden_states(tiny_backbone, family):
    register_attention()
    attention = exact_attention(family)
    backbone = load_backbone(str(tiny_backbone(family)), precision="float64", attn_implementation=attention)
    ids = torch.arange(10, 20).view(2, 5)
    padded = torch.nn.functional.pad(ids, (0, 3), value=backbone.pad_token_id)
    mask = (torch.arange(8) < 5).long().expand(2, -1)
    found, alone = hidden_states(backbone, padded, mask)[:, :5], hidden_states(backbone, ids)
    torch.testing.assert_close(found, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("entries", "token"),
    [
        ({"pad_token_id": 3, "eos_token_id": 5}, 3),
        ({"pad_token_id": 0, "eos_token_id": 5}, 0),
        ({"pad_token_id": None, "eos_token_id": 5}, 5),
        ({"pad_token_id": None, "eos_token_id": [7, 8]}, 7),
        ({"pad_token_id": None, "eos_token_id": None}, 0),
        ({}, 0),
        ({"pad_token_id": -1, "eos_token_id": 5}, 5),
        ({"eos_token_id": 50_256, "vocab_size": 80}, 0),
    ],
)
def test_model_without_padding_token_pads_with_end_of_text(entries, token):
    assert padding_token(entries) == token


def test_the_hash_of_the_weights_changes_with_any_weight(tiny_backbone):
    backbone = load_backbone(str(tiny_backbone("roberta")))
    with torch.no_grad():
        next(backbone.model.parameters())[0, 0] += 1e-3
    assert weights_sha256(backbone.model) != backbone.weights_sha256


def test_the_embedded_backbone_loads_without_a_word(capfd):
    backbone = load_backbone("embedded")
    tokenizer = backbone.load_tokenizer()
    assert tuple(capfd.readouterr()) == ("", "")
    assert (backbone.shape.width, backbone.shape.encoder_layers, backbone.position_limit_tokens) == (256, 4, 512)
    assert tokenizer.pad_token_id == backbone.pad_token_id
    assert (embedded_folder() / "README.md").is_file()


def test_embedded_backbone_places_similar_sentences_nearer():
    """Test that a sentence with one changed word is nearer than another sentence."""
    backbone = load_backbone("embedded")
    tokenizer = backbone.load_tokenizer()
    texts = ["The ship left the harbour.", "The boat left the harbour.", "Returns a list of integers."]
    vectors = [backbone.model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0) for text in texts]
    near, far = (torch.cosine_similarity(vectors[0], vectors[other], dim=0) for other in (1, 2))
    assert near > far + 0.05


@pytest.mark.parametrize(
    ("kind", "message"),
    [("deberta", "cannot use deberta backbones: its queries"), ("resnet", r"roberta.*bert.*got 'resnet'")],
)
def test_a_backbone_that_cannot_be_used_is_refused_before_weights_are_read(tmp_path, kind, message):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    with pytest.raises(UnsupportedBackboneError, match=message):
        load_backbone(str(tmp_path))


@pytest.mark.parametrize(
    "entries",
    [
        {"_attn_implementation": "someone/kernel"},
        {"attn_implementation": {"": "eager", "text_config": "someone/kernel"}},
        {"model_type": "mean_pooled_classifier", "backbone": {"attn_implementation": "flash_attention_2"}},
        {"per_layer_config": [{"_attn_implementation": "someone/kernel@main"}]},
    ],
)
def test_attention_that_would_be_downloaded_as_a_program_is_refused(tmp_path, entries):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"} | entries))
    with pytest.raises(BackboneError, match=r"attn_implementation of backbone .* must be eager or sdpa; got '.*Delete"):
        config_of(str(tmp_path))


@pytest.mark.parametrize("attention", [None, "eager", "sdpa"])
def test_attention_of_transformers_itself_is_accepted(tmp_path, attention):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "_attn_implementation": attention}))
    assert config_of(str(tmp_path))["_attn_implementation"] == attention


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
def test_missing_backbone_is_one_clear_line(tmp_path, name, message):
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
    with pytest.raises(BackboneError, match="must be in safetensors files; got none"):
        load_backbone(str(folder))


def test_missing_tokenizer_is_one_clear_line(tiny_backbone, tmp_path):
    folder = shutil.copytree(tiny_backbone("bert"), tmp_path / "copy")
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(BackboneError, match="must have a tokenizer with a vocabulary"):
        load_tokenizer(str(folder))


def test_tokenizer_id_depends_on_content_only(tiny_backbone, tmp_path):
    first = load_tokenizer(str(tiny_backbone("bert")))
    before = tokenizer_id(first)
    first(["a b c", "d"], truncation=True, max_length=3, padding=True)
    copy = shutil.copytree(tiny_backbone("bert"), tmp_path / "copy")
    assert tokenizer_id(first) == before == tokenizer_id(load_tokenizer(str(copy)))
    assert before != tokenizer_id(load_tokenizer(str(tiny_backbone("roberta"))))


def test_tokenizer_is_read_again_only_if_its_files_changed(tiny_backbone, tmp_path):
    folder = shutil.copytree(tiny_backbone("bert"), tmp_path / "copy")
    first = load_tokenizer(str(folder))
    assert load_tokenizer(str(folder)) is first
    for file in tiny_backbone("roberta").glob("tokenizer*"):
        shutil.copy(file, folder)
    assert tokenizer_id(load_tokenizer(str(folder))) != tokenizer_id(first)
