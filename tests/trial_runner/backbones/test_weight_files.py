"""Misleading backbone folders: adapters, pickles, and configs of much larger models."""

import json
import pickle
import shutil
from pathlib import Path

import pytest

from trial_runner.backbones import load_backbone, load_tokenizer
from trial_runner.errors import BackboneError


@pytest.fixture
def folder(tiny_backbone, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_backbone("bert"), tmp_path / "copy"))


def change_config(folder: Path, **entries: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))


def test_adapter_folder_is_refused_as_backbone(folder):
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/somewhere/else"}')
    with pytest.raises(BackboneError, match=r"must be a whole model; its folder has an adapter_config\.json"):
        load_backbone(str(folder))


class _Bomb:
    """Unpickling it writes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.file,)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt"])
def test_pickles_are_refused_by_name_and_never_opened(folder, tmp_path, name):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(_Bomb(tmp_path / "ran")))
    with pytest.raises(BackboneError, match=rf"must be in safetensors files; got {name}, a pickle"):
        load_backbone(str(folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("entry", [{"vocab_size": 2 * 10**8}, {"intermediate_size": 2 * 10**6}])
def test_oversized_config_is_refused_before_building(folder, monkeypatch, entry):
    change_config(folder, **entry)
    monkeypatch.setattr("transformers.AutoModel.from_pretrained", None)
    with pytest.raises(BackboneError, match=r"must be complete; its config\.json counts [\d,]+, its files hold"):
        load_backbone(str(folder))


def test_code_in_the_folder_is_never_run(folder, tmp_path):
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: ...\n")
    evil = dict.fromkeys(("AutoConfig", "AutoModel", "AutoTokenizer"), "evil.Evil")
    change_config(folder, auto_map=evil)
    tokenizer = folder / "tokenizer_config.json"
    tokenizer.write_text(
        json.dumps({**json.loads(tokenizer.read_text()), "auto_map": {"AutoTokenizer": ["evil.Evil", None]}})
    )
    load_backbone(str(folder))
    load_tokenizer(str(folder))
    assert not (tmp_path / "ran").exists()
