"""A study goes on only with the data and the backbone that it was begun with."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.ledger_query import query_study

from deltaspace.commands.main import main
from studies.backends.backend import TorchRunnerFactory
from studies.confirmation.execution import confirm
from studies.confirmation.request import AblationRequest, ConfirmationRequest
from studies.errors import LaunchError, StudyChangedError
from studies.launch.launch import launch
from studies.records import StudyRecord
from studies.study import Study
from studies.study_file import Specification, specification_from_mapping
from studies.study_file.recorded_specification import recorded_specification
from trial_runner.backbones import embedded_folder
from trial_runner.errors import TaskError
from trial_runner.tasks.input_digest import InputDigest

SIZES = {"train": 16, "validation": 8, "test": 8}


@dataclass(frozen=True)
class Begun:
    """A study of one trial, with the folder of its database, its data and its backbone."""

    folder: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'ledger.db'}"

    def specification(self, **given: Any) -> Specification:
        own: dict[str, Any] = {
            "name": "begun",
            "backbone": str(self.folder / "backbone"),
            "task": {"folder": str(self.folder / "data"), "text": "text", "label": "label", "max_tokens": 8},
            "budget": "2%",
            "trials": 1,
            "training": {"steps": 2, "batch_size": 4},
            "search": {"published": ["lora_qv"], "replicates": 0},
            "fleet": {"backend": "inline", "artefacts": str(self.folder / "artefacts")},
        }
        return specification_from_mapping(own | given)

    def launched(self, **given: Any) -> list[str]:
        """Launch the study and return its announcements."""
        announced: list[str] = []
        launch(self.specification(**given), storage_url=self.url, announce=announced.extend)
        return announced

    def inputs(self) -> InputDigest | None:
        return self.query(lambda study: recorded_specification(study).inputs)

    def query(self, read: Callable[[StudyRecord], Any]) -> Any:
        return query_study(self.url, "begun", lambda _, study: read(study))

    def forget_inputs(self) -> None:
        """Leave the study as a release recorded it that knew no digests."""
        with closing(sqlite3.connect(self.folder / "ledger.db")) as link, link:
            link.execute("UPDATE studies SET specification = json_remove(specification, '$.inputs')")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    begun = Begun(tmp_path_factory.mktemp("begun"))
    (begun.folder / "data").mkdir()
    shutil.copytree(embedded_folder(), begun.folder / "backbone")
    for split, size in SIZES.items():
        rows = [{"text": f"{split} row number {row}", "label": "even" if row % 2 else "odd"} for row in range(size)]
        write(begun.folder / "data" / f"{split}.jsonl", rows)
    begun.launched()
    return begun


@pytest.fixture
def begun(made: Begun, tmp_path: Path) -> Begun:
    """Yield the study; restore its files after the test."""
    kept = tmp_path / "kept"
    shutil.copytree(made.folder, kept)
    yield made
    shutil.rmtree(made.folder)
    shutil.copytree(kept, made.folder)


def write(file: Path, rows: list[dict[str, str]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def changed_rows(change: Callable[[list[dict[str, str]]], None], split: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        file = folder / "data" / f"{split}.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        change(rows)
        write(file, rows)

    return apply


def swap_label(rows: list[dict[str, str]]) -> None:
    rows[2]["label"] = "even"


def swap_rows(rows: list[dict[str, str]]) -> None:
    rows[2], rows[3] = rows[3], rows[2]


def append_row(rows: list[dict[str, str]]) -> None:
    rows.append({"text": "one more", "label": "odd"})


def change_character(rows: list[dict[str, str]]) -> None:
    rows[5]["text"] = rows[5]["text"].replace("row", "raw")


def change_weights(folder: Path) -> None:
    file = folder / "backbone" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def change_tokenizer(folder: Path) -> None:
    file = folder / "backbone" / "tokenizer.json"
    state = json.loads(file.read_text())
    state["model"]["merges"].pop()
    file.write_text(json.dumps(state))


CHANGES = {
    "label": (
        changed_rows(swap_label, "validation"),
        "other data: validation has other labels (8 rows then, 8 now). Restore",
    ),
    "order": (
        changed_rows(swap_rows, "validation"),
        "other data: validation has the same 8 rows in another order. Restore",
    ),
    "row": (changed_rows(append_row, "test"), "other data: test has other rows (8 then, 9 now). Restore"),
    "text": (
        changed_rows(change_character, "train"),
        "other data: train has other texts (16 rows then, 16 now). Restore",
    ),
    "weights": (change_weights, "another backbone: the backbone has other weights. Restore the weights of"),
    "tokenizer": (
        change_tokenizer,
        "another backbone: the backbone has another tokenizer. Restore the tokenizer of",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changed_inputs_are_refused_by_every_command(begun, what):
    change, message = CHANGES[what]
    change(begun.folder)
    study = Study.open("begun", begun.url)
    commands: list[Callable[[], object]] = [
        lambda: begun.launched(trials=2),
        lambda: confirm(ConfirmationRequest(study="begun", top=1, seeds=2, against=()), storage_url=begun.url),
        lambda: confirm(AblationRequest(study="begun", trial=0, seeds=2), storage_url=begun.url),
        lambda: study.export(begun.folder / "out", 0),
    ]
    for command in commands:
        with pytest.raises(StudyChangedError) as refused:
            command()
        assert str(refused.value).startswith(f"study 'begun' was begun with {message}")
        assert len(str(refused.value).splitlines()) == 1
    (violation,) = study.verify()
    assert violation.endswith(f"begun with; {message.partition(': ')[2].partition('. Restore')[0]}")
    assert not (begun.folder / "out").exists()
    assert len(study) == 1


def test_unchanged_inputs_are_taken_in_another_format(begun):
    rows = [json.loads(line) for line in (begun.folder / "data" / "test.jsonl").read_text().splitlines()]
    (begun.folder / "data" / "test.jsonl").unlink()
    lines = ["label,text", *(f"{row['label']},{row['text']}" for row in rows)]
    (begun.folder / "data" / "test.csv").write_text("\n".join(lines) + "\n")
    begun.launched()
    assert Study.open("begun", begun.url).verify() == []


def test_study_without_digest_is_continued_and_gets_one(begun):
    before = begun.inputs()
    begun.forget_inputs()
    assert begun.inputs() is None
    line = "study 'begun' has its data and its backbone recorded now; it goes on only with the same."
    assert line in begun.launched()
    assert begun.inputs() == before
    assert line not in begun.launched()


def test_missing_weights_are_recorded_later(begun):
    whole = begun.inputs()
    with closing(sqlite3.connect(begun.folder / "ledger.db")) as link, link:
        link.execute("UPDATE studies SET specification = json_set(specification, '$.inputs.weights', NULL)")
    assert begun.inputs() == replace(whole, weights=None)
    begun.launched()
    assert begun.inputs() == whole


def test_verify_reports_missing_data_as_not_compared(begun, capsys):
    shutil.rmtree(begun.folder / "data")
    assert main(["verify", "begun", "--storage", begun.url]) == 0
    printed = capsys.readouterr().err
    assert "data and backbone of 'begun' could not be compared with those it was begun with: a task's folder" in printed
    assert main(["export", "begun", "0", str(begun.folder / "out"), "--storage", begun.url]) == 0


def other_inputs(begun: Begun) -> TorchRunnerFactory:
    """Return workers that expect other labels than the stored ones."""
    recorded = begun.inputs()
    assert recorded is not None
    validation = replace(recorded.splits["validation"], answers="0" * 64, unordered="0" * 64)
    other = replace(recorded, splits={**recorded.splits, "validation": validation})
    return TorchRunnerFactory.of(begun.specification(), other)


SAID = (
    "a worker must read the data that the study was begun with; validation has other labels (8 rows then, 8 now). "
    "Restore it and launch again."
)


def test_worker_with_other_data_ends_launch(begun):
    study = begun.specification(trials=3)
    with pytest.raises(TaskError) as refused:
        launch(study, storage_url=begun.url, factory=other_inputs(begun))
    assert str(refused.value) == SAID
    assert len(query_study(begun.url, "begun", lambda ledger, study: ledger.readings(study.id))) == 1


@pytest.mark.slow
def test_ray_worker_with_other_data_ends_launch(begun):
    fleet = {"backend": "ray", "workers": 1, "artefacts": str(begun.folder / "artefacts")}
    with pytest.raises(LaunchError) as refused:
        launch(begun.specification(trials=3, fleet=fleet), storage_url=begun.url, factory=other_inputs(begun))
    assert str(refused.value) == SAID
    assert len(query_study(begun.url, "begun", lambda ledger, study: ledger.readings(study.id))) == 1
