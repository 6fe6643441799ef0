"""Exports go to the hub without paths of this machine; the hub is a server of the test's own."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.stub_hub import Hub, stub_hub

from studies.errors import StudiesError
from studies.exports.hub_upload import push_folder

# huggingface_hub hands a file over in a way that its own client deprecates
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

WEIGHTS = b"\x00" * 1000 + b"weights"
CARD = "---\nbase_model: org/model\ntags:\n- deltaspace\n---\n\n# A delta\n"
DELTA = {"backbone": {"name": "/home/me/backbones/tiny"}, "task": {"folder": "/home/me/data", "hub": "org/data"}}
PEFT = {"base_model_name_or_path": "/home/me/backbones/tiny", "target_modules": ["/q", "v"], "r": 4}
CONFIG = {"_name_or_path": "~/backbones/tiny", "architectures": ["A"]}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with stub_hub(monkeypatch) as hub:
        yield hub


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder = tmp_path / "winner"
    (folder / "sub").mkdir(parents=True)
    (folder / "weights.safetensors").write_bytes(WEIGHTS)
    (folder / "sub" / "more.txt").write_text("more")
    (folder / "README.md").write_text(CARD)
    for name, facts in {"delta.json": DELTA, "adapter_config.json": PEFT, "config.json": CONFIG}.items():
        (folder / name).write_text(json.dumps(facts))
    return folder


def test_no_path_of_this_machine_goes_along_and_the_export_stays_as_it_is(hub, export):
    assert push_folder(export, "me/winner") == f"{hub.url}/me/winner"
    files = hub.files["me/winner"]
    assert set(files) == {file.relative_to(export).as_posix() for file in export.rglob("*") if file.is_file()}
    assert (files["README.md"].decode(), [*hub.objects.values()]) == (CARD, [WEIGHTS])
    delta = json.loads(files["delta.json"])
    assert delta == {"backbone": {"name": "tiny"}, "task": {"folder": "data", "hub": "org/data"}}
    assert json.loads(files["adapter_config.json"]) == {**PEFT, "base_model_name_or_path": "tiny"}
    assert json.loads(files["config.json"]) == {**CONFIG, "_name_or_path": "tiny"}
    assert b"/home/me" not in b"".join(files.values())
    assert json.loads((export / "delta.json").read_text()) == DELTA


def test_names_of_the_hub_stay_and_a_backbone_beside_is_named_relatively(hub, export):
    (export / "backbone").mkdir()
    (export / "backbone" / "config.json").write_text("{}")
    (export / "delta.json").write_text(json.dumps({"backbone": {"name": "org/model"}}))
    push_folder(export, "me/winner")
    files = hub.files["me/winner"]
    assert json.loads(files["delta.json"]) == {"backbone": {"name": "org/model"}}
    assert json.loads(files["adapter_config.json"])["base_model_name_or_path"] == "backbone"


def test_a_repository_is_made_as_asked_for_and_pushed_to_again(hub, export):
    push_folder(export, "winner", private=True)
    assert hub.repositories["me/winner"]["visibility"] == "private"
    (export / "sub" / "more.txt").write_text("other")
    push_folder(export, "me/winner")
    assert hub.files["me/winner"]["sub/more.txt"] == b"other"


def test_a_hub_that_refuses_is_said_in_a_line_that_names_the_export(hub, export):
    hub.refuses = True
    with pytest.raises(StudiesError) as refused:
        push_folder(export, "me/winner")
    assert "\n" not in str(refused.value)
    assert "the hub must take me/winner; it did not: " in str(refused.value)
    assert str(refused.value).endswith(f"The export stays in {export}.")


def test_a_hub_that_is_away_is_said_in_a_line(hub, export, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(StudiesError, match=r"the hub must take me/winner; it did not: .* stays in"):
        push_folder(export, "me/winner")


def test_without_a_token_or_a_name_nothing_is_tried(hub, export, monkeypatch, tmp_path):
    for name in ("me/../you", "a b", "a/b/c", ""):
        with pytest.raises(StudiesError, match="a repository of the hub is named like user/name; got"):
            push_folder(export, name)
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(StudiesError, match="Run 'hf auth login', or set HF_TOKEN"):
        push_folder(export, "me/winner")
    assert hub.repositories == {}
