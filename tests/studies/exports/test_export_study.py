"""Trials of a study that was really run, taken away: by the command line, to a folder that stands on its own."""

import json
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from support.ledger_query import query_study

from deltaspace.commands.main import main
from studies.confirmation.execution import confirm
from studies.confirmation.request import ConfirmationRequest
from studies.confirmation.results import confirmation_results, verdict_sentences
from studies.errors import StudiesError
from studies.launch.launch import launch
from studies.records import Reading, TrialRecord, TrialState
from studies.study import Study
from studies.study_file import Specification, specification_from_mapping
from trial_runner.export.merge import LinearSlice

STUDY = "reviews"
POINTS = ("lora_qv", "mam_adapter", "prefix_tuning:mid=6,l=2", "bitfit")
README = Path(__file__).parents[3] / "README.md"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A study that has ended.

    Attributes:
        url: Storage URL.
        folder: Folder of the study and its data.
        specification: Specification of the study.
    """

    url: str
    folder: Path
    specification: Specification

    def trials(self) -> list[TrialRecord]:
        return query_study(self.url, STUDY, lambda ledger, study: ledger.trials(study.id))

    def readings(self, number: int) -> list[Reading]:
        return query_study(self.url, STUDY, lambda ledger, study: ledger.readings(study.id, number))

    def number(self, method: str) -> int:
        return next(trial.number for trial in self.trials() if (trial.method or "").startswith(method))


def sentences(seed: int, size: int) -> str:
    """Return rows whose label depends on an x among the words."""
    draw = random.Random(seed)
    rows = []
    for row in range(size):
        words = [draw.choice(["red", "blue", "hill", "sea"]) for _ in range(draw.randint(2, 5))]
        words += ["x"] if row % 2 else []
        rows.append(json.dumps({"text": " ".join(words), "label": ["none", "some"][row % 2]}))
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def ran(tiny_backbone: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run four published methods and discoveries, some of them pruned."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "task").mkdir()
    for seed, (name, size) in enumerate({"train": 64, "validation": 32, "test": 32}.items()):
        (folder / "task" / f"{name}.jsonl").write_text(sentences(seed, size))
    mapping: dict[str, object] = {
        "name": STUDY,
        "backbone": str(tiny_backbone("roberta")),
        "task": {"folder": str(folder / "task"), "text": "text", "label": "label", "max_tokens": 16},
        "budget": 900,
        "trials": 8,
        "training": {"steps": 8, "batch_size": 8, "precision": "fp32", "head_learning_rate": 1e-2},
        "pruning": {"first_rung_steps": 2},
        "search": {"sampler": "random", "published": list(POINTS)},
        "fleet": {"backend": "inline", "pack": 2, "artefacts": str(folder / "artefacts")},
    }
    specification = specification_from_mapping(mapping)
    url = f"sqlite:///{folder / 'ledger.db'}"
    assert launch(specification, storage_url=url).finished
    ran = Ran(url=url, folder=folder, specification=specification)
    states = {trial.state for trial in ran.trials()}
    assert {TrialState.COMPLETE, TrialState.PRUNED} <= states
    return ran


@pytest.fixture(scope="module")
def exported(ran: Ran, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Export a published method, once per method."""

    @cache
    def export(method: str) -> Path:
        folder = tmp_path_factory.mktemp(method) / "away"
        assert main(["export", STUDY, str(ran.number(method)), str(folder), "--storage", ran.url]) == 0
        return folder

    return export


@pytest.fixture(autouse=True)
def _surroundings(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTASPACE_STORAGE", ran.url)


def test_moved_study_is_exported_from_its_new_place(ran, tmp_path):
    for name in ("ledger.db", "artefacts"):
        source = ran.folder / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    study = Study.open(STUDY, f"sqlite:///{tmp_path / 'ledger.db'}")
    number = ran.number("lora_qv")
    [file] = [file for file in study.trial(number).artefacts if file.kind == "delta"]
    assert Path(file.path).is_relative_to(tmp_path / "artefacts" / STUDY)
    assert study.export(tmp_path / "taken", number).trial == number
    Path(file.path).unlink()
    with pytest.raises(StudiesError, match="is missing or damaged"):
        study.export(tmp_path / "again", number)


def validation_loss(ran: Ran, folder: Path) -> float:
    """Mean loss of an export on the validation split."""
    import torch

    from studies.launch.preparation import prepared
    from trial_runner.export import open_delta

    loaded, task = open_delta(folder), prepared(ran.specification)
    batch = task.splits["validation"].batch(range(32), 1)
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(loaded.logits(batch), torch.from_numpy(batch.labels))
    assert loaded.labels == ("none", "some")
    loaded.detach()
    return float(loss)


def last_loss(ran: Ran, number: int) -> float:
    return ran.readings(number)[-1].metrics["validation_loss"]


@pytest.mark.parametrize("method", [point.partition(":")[0] for point in POINTS])
def test_export_has_the_validation_loss_of_the_trial(ran, method, exported):
    assert validation_loss(ran, exported(method)) == pytest.approx(last_loss(ran, ran.number(method)), rel=1e-5)


def test_the_best_trial_goes_by_its_name(ran, tmp_path, capsys):
    complete = [trial for trial in ran.trials() if trial.state is TrialState.COMPLETE]
    best = max(complete, key=lambda trial: (trial.score or 0.0, -trial.number))
    assert main(["export", STUDY, "best", str(tmp_path / "away"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["trial"], printed["score"], printed["metric"]) == (best.number, best.score, "accuracy")
    assert printed["files"] == ["README.md", "delta.json", "delta.safetensors"]
    assert printed["stored_parameters"] == best.stored_parameters <= 900


def test_facts_name_backbone_counts_and_scores(ran, exported):
    number = ran.number("lora_qv")
    facts = json.loads((exported("lora_qv") / "delta.json").read_text())
    trial = ran.trials()[number]
    assert facts["backbone"]["name"] == ran.specification.backbone.name
    assert re.fullmatch("[0-9a-f]{64}", facts["backbone"]["weights_sha256"])
    assert facts["labels"] == ["none", "some"]
    assert facts["counts"]["stored"] == trial.stored_parameters
    assert facts["counts"]["head"] == trial.head_parameters == 34
    assert (facts["scores"]["split"], facts["scores"]["score"]) == ("validation", trial.score)
    assert facts["scores"]["steps"] == 8
    assert (facts["study"], facts["trial"], facts["method"]) == (STUDY, number, "lora_qv")
    assert facts["tokenizer"]["additions"] == []
    assert facts["precision"] == "fp32"
    assert "have a licence of their own" in facts["licence"]
    assert facts["trained_as"] is None


def test_folded_prefix_is_reported(ran, tmp_path, capsys):
    number = ran.number("prefix_tuning")
    assert main(["export", STUDY, str(number), str(tmp_path / "away")]) == 0
    assert "were folded into tables; outputs agree within 1e-6" in capsys.readouterr().out
    facts = json.loads((tmp_path / "away" / "delta.json").read_text())
    assert facts["configuration"]["edits"][0]["form"]["reparameterization"] is None
    assert facts["trained_as"]["edits"][0]["form"]["reparameterization"] == 6
    assert facts["counts"]["stored"] < facts["counts"]["trained"]


def test_card_has_formula_budget_curve_and_nearest_methods(ran, exported):
    number, folder = ran.number("lora_qv"), exported("lora_qv")
    card = (folder / "README.md").read_text()
    trial = ran.trials()[number]
    assert f"# Trial {number} of {STUDY}" in card
    assert "of the budget of 900" in card
    assert f"{trial.stored_parameters:,} (" in card
    assert "| attn | 2 | q <- q + " in card
    readings = ran.readings(number)
    assert len(readings) == 3
    for one in readings:
        assert f"| {one.step} | {one.score:.4f} | {one.train_loss:.4f} |" in card
    assert "* `lora_qv`: nothing differs but sizes" in card
    assert f"Not confirmed. It was chosen among {len(ran.trials())} trials" in card
    assert str(folder.parent) not in card


def test_unmergeable_edits_are_named_and_not_written(ran, tmp_path, capsys):
    number = str(ran.number("mam_adapter"))
    for options in (["--merge"], ["--format", "peft"]):
        assert main(["export", STUDY, number, str(tmp_path / "away"), *options]) == 2
        printed = capsys.readouterr().err
        assert "edit 0 (softmax_memory at attn from q to head, gate lse_convex)" in printed
        assert "edit 1 (bottleneck at ffn" in printed
        assert printed.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    """Return the single line with which a command is refused."""
    assert main(["export", *arguments]) == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1), printed
    return printed.err


def test_export_that_computes_something_else_is_refused_whole(ran, tmp_path, capsys, monkeypatch):
    add = LinearSlice.add

    def subtracted(self, other):
        before = self.matrix
        add(self, other)
        self.matrix = 2 * before - self.matrix

    monkeypatch.setattr(LinearSlice, "add", subtracted)
    assert main(["export", STUDY, str(ran.number("lora_qv")), str(tmp_path / "away"), "--merge"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"deltaspace: cannot export as merged: its outputs differ .* report this\.\n", printed.err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [["--merge"], ["--format", "peft"]])
def test_verified_export_leaves_no_folders(ran, tmp_path, options):
    assert main(["export", STUDY, str(ran.number("lora_qv")), str(tmp_path / "away"), *options]) == 0
    assert not any(path.is_dir() for path in (tmp_path / "away").iterdir())


def test_incomplete_trial_is_refused_with_a_remedy(ran, tmp_path, capsys):
    pruned = next(trial for trial in ran.trials() if trial.state is TrialState.PRUNED)
    message = refusal(capsys, STUDY, str(pruned.number), str(tmp_path / "away"))
    assert f"it is pruned after {pruned.steps} steps (rung " in message
    assert "Use --retrain to train it to the end first." in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_retrained_trial_equals_that_of_the_study(ran, tmp_path, capsys):
    pruned = next(trial for trial in ran.trials() if trial.state is TrialState.PRUNED)
    before = ran.trials()
    assert main(["export", STUDY, str(pruned.number), str(tmp_path / "pruned"), "--retrain"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["step 2", "step 4", "step 8"]
    assert ran.trials() == before
    first = ran.readings(pruned.number)[0]
    card = (tmp_path / "pruned" / "README.md").read_text()
    assert f"| {first.step} | {first.score:.4f} | {first.train_loss:.4f} |" in card
    number = ran.number("lora_qv")
    assert main(["export", STUDY, str(number), str(tmp_path / "complete"), "--retrain"]) == 0
    assert validation_loss(ran, tmp_path / "complete") == pytest.approx(last_loss(ran, number), rel=1e-4)


def test_an_unknown_number_study_or_word_is_refused(ran, tmp_path, capsys):
    away = str(tmp_path / "away")
    assert "99" in refusal(capsys, STUDY, "99", away, code=2)
    assert "no study 'other'" in refusal(capsys, "other", "1", away, code=2)
    assert "a trial is a number or 'best'; got 'worst'" in refusal(capsys, STUDY, "worst", away, code=2)
    assert "takes NUMBER|best and DIR" in refusal(capsys, STUDY, away, code=2)
    assert "exclude each other" in refusal(capsys, STUDY, "1", away, "--merge", "--format", "peft", code=2)
    assert list(tmp_path.iterdir()) == []


def test_existing_folder_is_refused_and_kept(ran, tmp_path, capsys):
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "mine").write_text("mine")
    for options in ([], ["--merge"], ["--format", "peft"], ["--retrain"]):
        assert "is there already" in refusal(capsys, STUDY, "best", str(tmp_path / "away"), *options, code=2)
    assert [path.name for path in tmp_path.rglob("*")] == ["away", "mine"]


def test_a_file_outside_the_studys_folder_is_not_read(ran, tmp_path, capsys):
    number = ran.number("bitfit")
    (recorded,) = query_study(ran.url, STUDY, lambda ledger, study: ledger.artefacts(study.id, number))
    file, outside = Path(recorded.path), tmp_path / "elsewhere"
    outside.write_bytes(file.read_bytes())
    try:
        file.unlink()
        file.symlink_to(outside)
        message = refusal(capsys, STUDY, str(number), str(tmp_path / "away"))
    finally:
        file.unlink()
        file.write_bytes(outside.read_bytes())
    assert f"{file} lies outside the study's folder. Use --retrain" in message
    assert not (tmp_path / "away").exists()


def test_card_contains_the_confirmation(ran, tmp_path, capsys):
    shutil.copy(ran.folder / "ledger.db", tmp_path / "ledger.db")
    shutil.copytree(ran.folder / "artefacts", tmp_path / "artefacts")
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    fleet = {"artefacts": str(tmp_path / "artefacts")}
    request = ConfirmationRequest(study=STUDY, top=1, seeds=2, against=("lora_qv",), fleet=fleet)
    assert confirm(request, storage_url=url).finished
    assert main(["export", STUDY, "best", str(tmp_path / "away"), "--storage", url]) == 0
    card = (tmp_path / "away" / "README.md").read_text()
    assert "Not confirmed" not in card
    (result,) = query_study(url, STUDY, lambda ledger, study: confirmation_results(ledger, study.name))
    assert f"* Test accuracy over 2 fresh seeds: mean {result.winner.spread.mean:.4f}" in card
    assert all(f"* {sentence}" in card for sentence in verdict_sentences(result))
    assert main(["export", result.name, "0", str(tmp_path / "child"), "--storage", url]) == 0
    child = (tmp_path / "child" / "README.md").read_text()
    assert "| step | test accuracy | training loss |" in child
    assert "* It is a trial of a confirmation itself." in child
    capsys.readouterr()
    message = refusal(capsys, result.name, "0", str(tmp_path / "retrained"), "--retrain", "--storage", url, code=2)
    assert "must be a study that searches; it is a confirmation" in message
