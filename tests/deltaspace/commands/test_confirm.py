"""``deltaspace confirm``: what it prints, continues and refuses. The runner is trivial; its scores are made up."""

import functools
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.small_study import small_study
from support.trivial_runner import TrivialFactory, TrivialRunner

import studies.confirmation.execution
from deltaspace.commands.confirmation import confirm as command
from studies.confirmation.request import AGAINST, ConfirmationRequest
from studies.launch.execution import LaunchResult
from studies.launch.launch import launch

Run = Callable[..., tuple[int, str, str]]


class Factory(TrivialFactory):
    """Factory of runners with scores by trial number: trial 2 of the search is the best."""

    scores = (0.60, 0.55, 0.90, 0.80)

    def __call__(self, threads: int) -> TrivialRunner:
        return TrivialRunner(scores=dict(enumerate(self.scores)), step_seconds=self.step_seconds)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the study ``reviews``."""
    folder = tmp_path_factory.mktemp("searched")
    search = {"sampler": "random", "published": ["mam_adapter", "bitfit"]}
    study = small_study(folder, name="reviews", trials=4, steps=4, first_rung=None, search=search, fleet={"pack": 4})
    launch(study, storage_url=f"sqlite:///{folder / 'ledger.db'}", factory=Factory())
    return folder


@pytest.fixture
def run(searched, tmp_path, monkeypatch, ran) -> Run:
    """Run ``deltaspace confirm`` in a storage of its own; return exit code, stdout and stderr."""
    shutil.copytree(searched, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{tmp_path / 'ledger.db'}")
    # the first contender is the winner, its runs above those of all others
    monkeypatch.setattr(Factory, "scores", tuple(0.87 - number / 1000 for number in range(40)))
    confirm = functools.partial(studies.confirmation.execution.confirm, factory=Factory())
    monkeypatch.setattr(studies.confirmation.execution, "confirm", confirm)
    return lambda *arguments, name="confirm": ran(name, *arguments)


def test_the_verdicts_are_printed(run):
    code, out, err = run("reviews", "--quiet")
    assert code == 0, err
    text = " ".join(out.split())
    assert "reviews-confirm: 6 configurations of reviews, 5 seeds each, accuracy on the test split" in text
    for baseline in AGAINST:
        assert f"The discovered variant (trial 2) beats {baseline} on test: " in text
    assert "Optimism of the search: trial 2 scored 0.9000 on validation and 0.8680 on test in the mean" in text
    assert "full_finetuning ignores the budget" in text
    assert "finished: all 30 trials have ended" in err


def test_json_holds_every_number(run):
    code, out, _ = run("reviews", "--top", "2", "--against", "mam_adapter,lora_qv:r=4,s=2", "--json", "--quiet")
    assert code == 0
    found = json.loads(out)
    assert (found["finished"], found["winner"]) == (True, "trial 2")
    result = found["confirmation"]
    assert [one["label"] for one in result["contenders"]] == ["trial 2", "trial 3", "mam_adapter", "lora_qv:r=4,s=2"]
    assert result["contenders"][0]["scores"] == pytest.approx([0.87, 0.869, 0.868, 0.867, 0.866])
    assert result["contenders"][0]["spread"]["mean"] == pytest.approx(0.868)
    comparison = result["comparisons"][0]
    assert (comparison["baseline"], comparison["verdict"], comparison["pairs"]) == ("mam_adapter", "beats", 5)
    assert comparison["difference"] == pytest.approx(0.01)
    assert len(found["sentences"]) == 3
    assert found["notes"]


def test_calling_it_again_only_prints(run, monkeypatch):
    first = run("reviews", "--quiet")
    monkeypatch.setattr(Factory, "scores", ())
    second = run("reviews", "--quiet")
    assert "already finished" in second[2]
    assert second[:2] == first[:2]


def test_stopped_confirmation_is_continued(run):
    code, out, err = run("reviews", "--top", "1", "--seeds", "4", "--time-budget", "0.0001s")
    assert code == 0
    assert "Call the command again to continue" in err
    assert "Comparisons need all of them." in " ".join(out.split())
    code, out, err = run("reviews", "--top", "1", "--seeds", "4", "--pack", "9")
    assert (code, "finished: all 16 trials have ended" in err) == (0, True)


def test_an_interrupted_confirmation_exits_as_one(run, monkeypatch):
    complete = studies.confirmation.execution.confirm

    def interrupted(*arguments: Any, **given: Any) -> LaunchResult:
        return replace(complete(*arguments, **given), finished=False, reason="stopped by Ctrl-C", is_interrupted=True)

    monkeypatch.setattr(studies.confirmation.execution, "confirm", interrupted)
    assert run("reviews", "--quiet")[0] == 130


def test_studies_lists_a_confirmation_as_one(run):
    run("reviews", "--quiet")
    code, out, _ = run(name="studies")
    assert code == 0
    assert "reviews-confirm (confirms reviews)" in " ".join(out.split())
    summaries = json.loads(run("--json", name="studies")[1])
    assert [(one["name"], one["confirms"]) for one in summaries] == [("reviews", None), ("reviews-confirm", "reviews")]
    assert "see 'show reviews-confirm'" in out


def test_show_prints_the_output_of_confirm(run):
    printed = run("reviews", "--quiet")[1]
    assert run("reviews-confirm", name="show") == (0, printed, "")
    shown = json.loads(run("reviews-confirm", "--json", name="show")[1])
    assert shown["confirmation"]["comparisons"]


def test_too_few_seeds_are_warned_of_before_anything_runs(run):
    code, out, err = run("reviews", "--top", "1", "--seeds", "3", "--quiet")
    assert code == 0
    message = "3 seeds are too few to show any difference to 3 baselines: --seeds 5."
    assert err.startswith(f"reviews-confirm: {message}")
    assert "3 seeds are too few for the test: --seeds 5." in " ".join(out.split())


def test_the_defaults_are_those_of_a_request():
    options = {option.name: option.default for option in command.params}
    plain = ConfirmationRequest(study="reviews")
    assert (options["top"], options["seeds"]) == (plain.top, plain.seeds)
    assert options["against"] == (",".join(plain.against),)
    assert plain.against == AGAINST


MISUSED = [
    (("reviews", "--against", "mam_adaptor"), "no published method 'mam_adaptor'. Did you mean 'mam_adapter'?"),
    (("reviews", "--against", "lora_qv:q=1"), "lora_qv"),
    (("reviews", "--seeds", "1"), "1 is not in the range 2<=x<=1000"),
    (("reviews", "--top", "0"), "0 is not in the range 1<=x<=1000"),
    (("reviews", "--pack", "0"), "fleet.pack"),
    (("reviews", "--backend", "mpi"), "fleet.backend"),
    (("reviews", "--name", "Up/Down"), "the name of a confirmation must be"),
    (("reviews", "--name", "reviews"), "must be unique; got 'reviews', another study's."),
    (("views",), "no study 'views'"),
    (("views", "--storage", "sqlite:///nowhere.db"), "no database at"),
]


def test_misuse_is_refused_and_not_recorded(run):
    for arguments, problem in MISUSED:
        code, out, err = run(*arguments, "--quiet")
        assert (code, out) == (2, ""), arguments
        assert problem in err
        assert "Traceback" not in err
    assert [one["name"] for one in json.loads(run("--json", name="studies")[1])] == ["reviews"]


def test_another_size_under_the_same_name_is_refused(run):
    mine = ("reviews", "--top", "1", "--seeds", "2", "--against", "none", "--name", "mine", "--quiet")
    most = 600_000  # of 0.5% of RoBERTa-base, 623,000
    assert run(*mine, "--size", str(most))[0] == 0
    for others, change in (
        (("--size", str(most - 1)), f"size: {most} -> {most - 1}"),
        ((), f"size: {most} -> (absent)"),
        (("--size", "0.4%"), f"size: {most} -> "),
    ):
        code, _, err = run(*mine, *others)
        assert code == 2
        assert change in err
    assert run(*mine, "--size", str(most))[0] == 0
    whole = ("reviews", "--top", "1", "--seeds", "2", "--against", "none", "--name", "whole", "--quiet")
    assert run(*whole)[0] == 0
    code, _, err = run(*whole, "--size", str(most))
    assert code == 2
    assert f"size: (absent) -> {most}" in err


def test_baselines_may_be_named_one_at_a_time(run):
    options = ("--against", "mam_adapter", "--against", "lora_qv:r=4,s=2,bitfit", "--against", "mam_adapter")
    code, out, _ = run("reviews", "--top", "1", "--seeds", "2", *options, "--json", "--quiet")
    assert code == 0
    comparisons = json.loads(out)["confirmation"]["comparisons"]
    assert [one["baseline"] for one in comparisons] == ["mam_adapter", "lora_qv:r=4,s=2", "bitfit"]
