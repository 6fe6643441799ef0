"""Launching a study in one process: begin, continue, finish, refuse."""

import math
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from sqlalchemy import create_engine
from support.ledger_query import query_study
from support.small_study import small_study
from support.trivial_runner import TrivialFactory, TrivialRunner
from support.violations import violations
from support.work_clock import STEP_SECONDS, WorkClock

from search_space.errors import BudgetError, UnsupportedBackboneError
from studies.errors import StudyChangedError, StudyHeldError
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.records import TrialRecord, TrialState
from studies.runtime.progress import Progress
from studies.runtime.study_plan import StudyPlan
from studies.runtime.workload import hold_study
from studies.study_file import Specification
from trial_runner.errors import BackboneError, RunnerError


def specification(tmp_path: Path, **given: Any) -> Specification:
    return small_study(tmp_path, **({"trials": 14, "search": {"sampler": "random"}} | given))


def trials_of(url: str) -> list[TrialRecord]:
    return query_study(url, "trivial", lambda ledger, study: ledger.trials(study.id))


def broken(url: str, study: Specification) -> list[str]:
    steps = study.rung_plan().steps
    return query_study(url, "trivial", lambda ledger, found: violations(ledger, found.id, rung_steps=steps))


def no_weights(threads: int) -> TrivialRunner:
    raise BackboneError("weights of backbone x must be readable; there are none.")


def test_study_without_trials_is_replaced_by_other_settings(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with pytest.raises(BackboneError):
        launch(specification(tmp_path), storage_url=url, factory=no_weights)
    announced: list[str] = []
    other = specification(tmp_path, training={"steps": 20}, trials=3)
    assert launch(other, storage_url=url, factory=TrivialFactory(), announce=announced.extend).finished
    (line,) = [line for line in announced if "replaced" in line]
    assert line.startswith("study 'trivial' had no trials and was replaced: training.steps: 16 -> 20")
    assert broken(url, other) == []
    with pytest.raises(StudyChangedError) as refused:
        launch(specification(tmp_path, training={"steps": 24}), storage_url=url, factory=TrivialFactory())
    first, *changes = str(refused.value).splitlines()
    assert first == (
        "Study 'trivial' exists (3 trials) with other settings, below. Delete it (deltaspace delete trivial) or pass "
        "--set name=…:"
    )
    assert "  training.steps: 20 -> 24" in changes


def test_launch_opens_its_ledger_once_from_its_checks_to_its_end(tmp_path, monkeypatch):
    engines = Mock(wraps=create_engine)
    monkeypatch.setattr("studies.ledger.engine.create_engine", engines)
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    for launches, trials in enumerate((2, 3, 3), start=1):  # begun, continued, already finished
        study = specification(tmp_path, trials=trials)
        assert launch(study, storage_url=url, factory=TrivialFactory(), observers=[Mock()]).finished
        assert engines.call_count == launches


def test_study_without_trials_is_kept_while_another_launch_runs_it(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with pytest.raises(BackboneError):
        launch(specification(tmp_path), storage_url=url, factory=no_weights)
    other = specification(tmp_path, training={"steps": 20})
    with Ledger.open(url) as ledger:
        begun = ledger.study("trivial")
        with (
            hold_study(begun, ledger, seconds=60, instead_of=None),
            pytest.raises(StudyHeldError, match=r"^study 'trivial' is run by "),
        ):
            launch(other, storage_url=url, factory=TrivialFactory())
        assert ledger.study("trivial").specification == begun.specification


class ShownError(Exception):
    """Carrier of the plan that workers would receive."""


@pytest.mark.slow
def test_rungs_have_example_count_and_guessing_loss(tmp_path, monkeypatch):
    def show(specification: Specification, study: object, plan: StudyPlan, ledger: Ledger, **options: object) -> None:
        raise ShownError(plan.rungs)

    monkeypatch.setattr("studies.launch.launch.run_fleet", show)
    study = specification(tmp_path, backbone="embedded", seed=3, training={"steps": 200}, pruning={})
    with pytest.raises(ShownError) as shown:
        launch(study, storage_url=f"sqlite:///{tmp_path / 'ledger.db'}")
    (rungs,) = shown.value.args
    assert (rungs.steps, rungs.examples, rungs.seed, rungs.stops_collapsed) == ((50, 100), 750, 3, True)
    # six labels, about as many of each
    assert rungs.guessing_loss == pytest.approx(math.log(6), abs=0.01)
    assert rungs.guessing_loss <= math.log(6)


def test_more_trials_and_another_pack_continue_a_finished_study(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    launch(specification(tmp_path), storage_url=url, factory=TrivialFactory())
    before = trials_of(url)
    more = specification(tmp_path, trials=17, fleet={"pack": 7})
    assert launch(more, storage_url=url, factory=TrivialFactory()).finished
    assert trials_of(url)[:14] == before
    assert len(trials_of(url)) == 17


def test_a_study_runs_to_the_end_published_methods_first(tmp_path, storage_url):
    study = specification(tmp_path)
    result = launch(study, storage_url=storage_url, factory=TrivialFactory())
    assert (result.finished, result.reason) == (True, "finished: all 14 trials have ended")
    trials = trials_of(storage_url)
    published = study.space_options.published_points
    assert [trial.method for trial in trials] == [*published, *[None] * (14 - len(published))]
    # the task head alone goes on, and so do the three that were best at the first rung when they came to it
    assert sum(trial.state is TrialState.COMPLETE for trial in trials[: len(published)]) >= 4
    assert all(trial.state.is_terminal for trial in trials)
    assert all(trial.stored_parameters <= result.study.budget_parameters for trial in trials)
    assert broken(storage_url, study) == []


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"budget": 5}, BudgetError),
        ({"backbone": "no/such/folder"}, RunnerError),
        ({"backbone": "embedded", "task": {"folder": "missing", "text": "text", "label": "label"}}, RunnerError),
    ],
)
def test_a_study_that_cannot_run_is_refused_before_anything_is_created(tmp_path, given, error):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    study = specification(tmp_path).model_copy(update={})
    study = Specification.model_validate(study.model_dump() | given)
    with pytest.raises(error):
        launch(study, storage_url=url)
    assert list(tmp_path.iterdir()) == []


def test_backbone_without_attention_function_is_refused(tmp_path):
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "mamba"}')
    with pytest.raises(UnsupportedBackboneError, match=r"^mamba backbones .* calls no attention function"):
        launch(specification(tmp_path, backbone=str(folder)), storage_url=f"sqlite:///{tmp_path / 'ledger.db'}")


@pytest.mark.slow
def test_time_budget_checkpoints_running_trials(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    study = specification(tmp_path, trials=60, fleet={"time_budget": 40 * STEP_SECONDS})
    clock = WorkClock(monkeypatch)
    result = launch(study, storage_url=url, factory=lambda threads: TrivialRunner(on_step=clock))
    assert not result.finished
    assert result.reason.endswith("of 60 trials: the time budget of 2 s is exhausted")
    states = {trial.state for trial in trials_of(url)}
    assert TrialState.RUNNING not in states
    assert TrialState.QUEUED in states
    assert broken(url, study) == []
    ended = [trial for trial in trials_of(url) if trial.state.is_terminal]
    assert launch(specification(tmp_path, trials=60), storage_url=url, factory=TrivialFactory()).finished
    assert [trial for trial in trials_of(url) if trial in ended] == ended
    assert broken(url, study) == []


@dataclass
class Sender:
    """An observer that sends this process a signal once a trial has ended: whoever hears it, the launch runs."""

    number: int
    has_sent: bool = False

    def __call__(self, progress: Progress) -> None:
        if progress.ended and not self.has_sent:
            self.has_sent = True
            os.kill(os.getpid(), self.number)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_cleanly_and_the_next_launch_goes_on(tmp_path, number):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    study = specification(tmp_path, trials=60)
    handler = signal.getsignal(number)
    sender = Sender(number)
    result = launch(study, storage_url=url, factory=TrivialFactory(step_seconds=0.01), observer=sender)
    assert sender.has_sent
    assert not result.finished
    assert result.is_interrupted
    assert "interrupted by Ctrl-C" in result.reason or "stopped by SIGTERM" in result.reason
    assert TrialState.RUNNING not in {trial.state for trial in trials_of(url)}
    assert broken(url, study) == []
    assert signal.getsignal(number) is handler
    assert launch(study, storage_url=url, factory=TrivialFactory()).finished
    assert broken(url, study) == []


@pytest.mark.slow
def test_the_observer_is_shown_the_progress_about_twice_a_second(tmp_path):
    observed: list[Progress] = []
    study = specification(tmp_path, trials=20, fleet={"time_budget": 600})
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    launch(study, storage_url=url, factory=TrivialFactory(step_seconds=0.01), observer=observed.append)
    assert 3 <= len(observed) <= 3 + 2 * observed[-1].seconds_elapsed
    assert [one.ended for one in observed] == sorted(one.ended for one in observed)
    assert observed[-1].ended == 20
    assert all(one.left is not None and one.left.seconds <= 600 for one in observed)
    assert any(one.running for one in observed)
    assert observed[-1].best is not None


def test_two_databases_may_have_studies_of_one_name(tmp_path):
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("one", "two")]
    study = specification(tmp_path)
    for url in (*urls, urls[0]):
        assert launch(study, storage_url=url, factory=TrivialFactory()).finished
    assert [broken(url, study) for url in urls] == [[], []]
    assert {folder.name for folder in (tmp_path / "artefacts").iterdir()} == {"trivial", "trivial-2"}


@pytest.mark.slow
def test_trials_do_not_depend_on_the_number_of_launches(tmp_path):
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("one", "two")]
    study = specification(tmp_path, search={"sampler": "tpe"}, fleet={"pack": 1}, trials=24)
    launch(study, storage_url=urls[0], factory=TrivialFactory())
    for trials in (5, 11, 17, 24):
        part = specification(tmp_path, search={"sampler": "tpe"}, fleet={"pack": 1}, trials=trials)
        launch(part, storage_url=urls[1], factory=TrivialFactory())
    whole, parts = ([(one.fingerprint, one.seed, one.state, one.score) for one in trials_of(url)] for url in urls)
    assert whole == parts


@pytest.mark.slow
def test_last_trials_replicate_the_best_deterministically(tmp_path):
    found = []
    for name in ("one", "other"):
        folder, url = tmp_path / name, f"sqlite:///{tmp_path / name}.db"
        study = specification(folder, search={"sampler": "random", "replicates": 12}, trials=30)
        assert launch(study, storage_url=url, factory=TrivialFactory()).finished
        found.append([(trial.fingerprint, trial.replicate_of, trial.score) for trial in trials_of(url)])
        assert broken(url, study) == []
    assert found[0] == found[1]
    assert [replicate_of is not None for _, replicate_of, _ in found[0]] == [False] * 18 + [True] * 12
