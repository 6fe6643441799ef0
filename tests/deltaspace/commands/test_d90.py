"""``deltaspace d90``: what it launches, prints and continues. The runner is trivial; its scores are made up."""

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.trivial_runner import TrivialFactory, TrivialRunner

import studies.launch.launch
from deltaspace.commands.d90 import _noise, command
from deltaspace.commands.main import main
from studies.intrinsic import DIMENSIONS, METHODS
from studies.launch.execution import LaunchResult
from studies.ledger.ledger import Ledger
from studies.records import TrialState

BACKBONES = Path(__file__).parents[2] / "data" / "backbones"
POINTS = ["full_finetuning", "intrinsic_said:dint=300", "intrinsic_said:dint=1000", "intrinsic_said:dint=3000"]

Run = Callable[..., tuple[int, str, str]]


class Factory(TrivialFactory):
    """Makes runners whose scores are told by the number of the trial."""

    scores = (0.8, 0.5, 0.73, 0.79)

    def __call__(self, threads: int) -> TrivialRunner:
        return TrivialRunner(scores=dict(enumerate(self.scores)))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs ``deltaspace d90`` on a study file, and returns exit code, stdout and stderr."""
    monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{tmp_path / 'ledger.db'}")
    monkeypatch.setattr(
        studies.launch.launch, "launch", functools.partial(studies.launch.launch.launch, factory=Factory())
    )
    path = tmp_path / "reviews.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "name": "reviews",
                "backbone": str(BACKBONES / "roberta_base"),
                "task": {"name": "docstrings"},
                "budget": "0.5%",
                "training": {"steps": 16},
                "fleet": {"backend": "inline", "pack": 2, "artefacts": str(tmp_path / "artefacts")},
            }
        )
    )

    def invoke(*arguments: str) -> tuple[int, str, str]:
        code = main(["d90", str(path), "--dimensions", "100,300,1000,3000", "--quiet", *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return invoke


def test_the_sweep_is_launched_and_d90_printed(run: Run, tmp_path: Path) -> None:
    code, out, err = run()
    assert code == 0, err
    assert "d90 of intrinsic_said: 1,000, the smallest dimension that reached 90% of full fine-tuning (0.7200)" in out
    assert "left out 100" in out
    assert "finished: all 4 trials have ended" in err
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", read_only=True) as ledger:
        (study,) = ledger.studies()
        trials = ledger.trials(study.id)
    assert study.name == "reviews-d90-said"
    assert [trial.method for trial in trials] == POINTS
    assert all(trial.state is TrialState.COMPLETE for trial in trials)
    assert [trial.stored_parameters for trial in trials[1:]] == [300, 1000, 3000]


def test_json_holds_every_point(run: Run) -> None:
    code, out, _ = run("--json")
    assert code == 0
    found = json.loads(out)
    assert (found["d90"], found["finished"], found["metric"]) == (1000, True, "accuracy")
    assert found["studies"] == ["reviews-d90-said"]
    assert list(found["left_out"]) == ["100"]
    assert [point["dimension"] for point in found["outcome"]["points"]] == [300, 1000, 3000]
    assert found["outcome"]["full"]["score"] == 0.8


def test_calling_it_again_only_prints(run: Run) -> None:
    first = run()
    second = run()
    assert "already finished" in second[2]
    assert second[:2] == first[:2]


def test_another_fraction_of_the_same_study_needs_no_new_trial(run: Run) -> None:
    run()
    code, out, err = run("--fraction", "0.95")
    assert code == 0
    assert "already finished" in err
    assert "d95 of intrinsic_said: 3,000" in out


def test_no_dimension_may_reach_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Factory, "scores", (0.8, 0.5, 0.6, 0.7))
    _, out, _ = run()
    assert "d90 of intrinsic_said: above 3,000; no dimension reached 90%" in out


def test_a_curve_that_is_not_monotone_is_said_to_be_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "monotone" not in run()[1]
    monkeypatch.setattr(Factory, "scores", (0.8, 0.75, 0.5, 0.76))
    _, out, _ = run("--tries", "1", "--set", "name=falling")
    words = " ".join(out.split())
    assert "The curve is not monotone: 1,000 scored 0.2500 less than 300 (noise: 0.0312)." in words
    _, out, _ = run("--set", "name=falling", "--json")
    (fall,) = json.loads(out)["outcome"]["falls"]
    assert (fall["dimension"], fall["below"], fall["by"]) == (1000, 300, 0.25)


def test_noise_is_that_of_the_examples_where_the_metric_is_a_share_of_them() -> None:
    assert _noise("accuracy", 500)(0.8) == pytest.approx(1.96 * (2 * 0.8 * 0.2 / 500) ** 0.5)
    assert _noise("accuracy", None)(0.8) == _noise("bleu", 500)(0.8) == pytest.approx(0.04)


def test_more_tries_run_the_new_ones(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    monkeypatch.setattr(Factory, "scores", (0.7, 0.75, 0.1, 0.1))
    code, out, err = run("--tries", "2", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["studies"] == ["reviews-d90-said", "reviews-d90-said-2"]
    assert found["d90"] == 300
    assert [point["trials"] for point in found["outcome"]["points"]] == [2, 2, 2]


def test_seeds_repeat_all_tries_and_are_told_alone_and_together(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    monkeypatch.setattr(Factory, "scores", (0.8, 0.75, 0.76, 0.79))
    code, out, err = run("--seeds", "2")
    assert code == 0, err
    words = " ".join(out.split())
    assert "full fine-tuning 0.8000 0.0000 - 2 0" in words
    assert "300 0.6250 0.1768 78.1% 2 0" in words
    assert "1,000 0.7450 0.0212 93.1% 2 0" in words
    assert "d90 of intrinsic_said: 1,000, the smallest" in words
    assert "By mean scores; the 2 seeds alone: 1,000; 300 (± is between seeds)." in words
    found = json.loads(run("--seeds", "2", "--json")[1])
    assert found["studies"] == ["reviews-d90-said", "reviews-d90-said-2"]
    assert ([seed["dimension"] for seed in found["seeds"]], found["d90"]) == ([1000, 300], 1000)


def test_seeds_and_tries_are_studies_side_by_side(run: Run) -> None:
    found = json.loads(run("--seeds", "2", "--tries", "2", "--json")[1])
    assert found["studies"] == [f"reviews-d90-said{mark}" for mark in ("", "-2", "-3", "-4")]
    assert [[point["trials"] for point in seed["points"]] for seed in found["seeds"]] == [[2, 2, 2]] * 2
    assert [point["trials"] for point in found["outcome"]["points"]] == [4, 4, 4]


def test_a_study_that_did_not_end_is_said_to_be_open(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("--set", "fleet.time_budget=0.0001s", "--tries", "2")
    code, out, err = run(*arguments)
    assert code == 0
    assert "not known, because full fine-tuning has no positive score yet" in out
    assert "reviews-d90-said: " in err
    code, out, _ = run()
    assert "d90 of intrinsic_said: 1,000," in out


def test_the_options_offer_what_sweeps_know() -> None:
    options = {option.name: option for option in command.params}
    assert options["dimensions"].default == ",".join(map(str, DIMENSIONS))
    assert tuple(options["method"].type.choices) == METHODS


def test_an_interrupted_sweep_begins_no_other_and_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = studies.launch.launch.launch

    def interrupted(*arguments: Any, **given: Any) -> LaunchResult:
        return replace(complete(*arguments, **given), finished=False, reason="stopped by Ctrl-C", is_interrupted=True)

    monkeypatch.setattr(studies.launch.launch, "launch", interrupted)
    code, out, _ = run("--tries", "2", "--json")
    assert code == 130
    found = json.loads(out)
    assert (found["studies"], found["finished"]) == (["reviews-d90-said"], False)
    assert not found["outcome"]["is_final"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--dimensions", "ten"), "must be whole numbers from 1"),
        (("--dimensions", "0"), "must be whole numbers from 1"),
        (("--fraction", "1.5"), "1.5"),
        (("--method", "lora_qv"), "lora_qv"),
        (("--seeds", "0"), "1<=x<=1000"),
        (("--tries", f"1{30 * '0'}"), "1<=x<=1000"),
    ],
)
def test_misuse_is_said_in_one_line(run: Run, arguments: tuple[str, ...], problem: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert problem in err


def test_a_sweep_that_the_backbone_does_not_allow_is_refused(run: Run) -> None:
    code, _, err = run("--dimensions", "10,30")
    assert code == 2
    assert "a sweep must have a dimension that the backbone allows" in err
