"""The data sets beside the repository, where they are: each goes through ``init`` and ``check`` without an edit."""

import json
from pathlib import Path

import pytest
import yaml
from support import rotation
from support.chat_cases import THINKING, chat_backbone

import deltaspace
from deltaspace.commands.main import main

DATA = Path(__file__).parents[4] / "shared" / "data"
HERE = [folder.name for folder in DATA.iterdir() if folder.is_dir()] if DATA.is_dir() else []
KINDS = {
    "ag_news_slice": ("classification", "text", "label"),
    "banking77": ("classification", "text", "label_text"),
    "reuters_headlines": ("summarisation", "document", "summary"),
    "sick": ("classification", ["premise", "hypothesis"], "label"),
    "snli": ("classification", ["premise", "hypothesis"], "label"),
    "sst2": ("classification", "sentence", "label"),
    "webnlg": ("data_to_text", "modified_triple_sets", "references"),
}
QUICK = ("sick",)


@pytest.mark.skipif(not HERE, reason="the data sets are not beside the repository")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in sorted(KINDS)]
)
def test_a_data_set_goes_through_init_and_check_without_an_edit(name, tmp_path, monkeypatch, tiny_backbone):
    monkeypatch.chdir(tmp_path)
    kind, read, learned = KINDS[name]
    backbone = None if kind == "classification" else str(tiny_backbone("t5"))
    file = deltaspace.init(DATA / name, backbone=backbone, takes_steps=False)
    task = yaml.safe_load(file.read_text())["task"]
    found = (task["kind"], task.get("text", task.get("source")), task.get("label", task.get("target")))
    assert found == (kind, read, learned)
    shown = str(deltaspace.check(file, takes_steps=False))
    assert shown.splitlines()[0].startswith(f"{name} on ")


@pytest.mark.slow
@pytest.mark.skipif(not HERE, reason="the data sets are not beside the repository")
def test_dialogues_and_scales_need_a_matching_backbone(tmp_path, monkeypatch, tiny_backbone):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))
    backbone = chat_backbone(tiny_backbone("llama"), tmp_path / "talks", THINKING)
    config = json.loads((backbone / "config.json").read_text())
    (backbone / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 2_000}))
    name = "user_instructions_chat"
    file = deltaspace.init(DATA / name, backbone=str(backbone), takes_steps=False)
    task = yaml.safe_load(file.read_text())["task"]
    assert (task["kind"], task["messages"], task["metric"]) == ("instruction", "messages", "rougeL")
    shown = str(deltaspace.check(file, takes_steps=False))
    assert f"max_new_tokens: {task['decoding']['max_new_tokens']}" in file.read_text()
    assert shown.splitlines()[0].startswith(f"{name} on ")
    related = deltaspace.init(DATA / "sick", name="related", label="relatedness", takes_steps=False)
    task = yaml.safe_load(related.read_text())["task"]
    assert (task["kind"], task["label"], task["metric"]) == ("regression", "relatedness", "pearson")


@pytest.mark.slow
@pytest.mark.skipif(not HERE, reason="the data sets are not beside the repository")
@pytest.mark.parametrize("name", rotation.parts(sorted(KINDS)))
def test_a_study_that_init_wrote_is_launched(name, tmp_path, monkeypatch, tiny_backbone, capsys):
    monkeypatch.chdir(tmp_path)
    backbone = None if KINDS[name][0] == "classification" else str(tiny_backbone("t5"))
    file = deltaspace.init(DATA / name, backbone=backbone, budget="1%", takes_steps=False)
    small = ["training.steps=2", "task.examples.validation=4", "search.published=none", "pruning.first_rung_steps=null"]
    settings = [part for setting in small for part in ("--set", setting)]
    assert main(["launch", str(file), "--trials", "2", "--backend", "inline", "--pack", "1", *settings]) == 0
    assert " validation, " in capsys.readouterr().err
