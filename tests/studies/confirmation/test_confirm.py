"""Confirming a study with the trivial runner: what is trained, what is recorded, what continues and what is refused."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from support.ledger_query import query_study
from support.small_study import small_study
from support.trivial_runner import TrivialFactory, TrivialRunner, score_at
from support.violations import violations
from support.work_clock import STEP_SECONDS, WorkClock

from studies.analysis.leaderboard import leaderboard
from studies.analysis.sql import run_query
from studies.analysis.summaries import study_summaries
from studies.confirmation.execution import confirm
from studies.confirmation.request import AGAINST, ConfirmationRequest
from studies.confirmation.results import ConfirmationResult, confirmation_result, confirmation_results
from studies.errors import ConfirmationError, FencedError, InvalidRequestError, StudyChangedError
from studies.launch.execution import LaunchResult
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.records import ConfirmationRecord, StudyKind, StudyRecord, TrialRecord, TrialState
from studies.runtime.artefacts import study_folder
from studies.runtime.progress import Progress
from studies.study_file import Specification
from studies.verification import verify
from trial_runner.requests import TrialRequest

STEPS = 16
VALIDATION = {0: 0.5, 1: 0.4} | {number: 0.6 + number / 100 for number in range(2, 10)}
"""Scores of the search: mam_adapter, bitfit, and discoveries of which each is better than the one before."""


def specification(tmp_path: Path, **given: object) -> Specification:
    search = {"sampler": "random", "published": ["mam_adapter", "bitfit"]}
    own = {"name": "reviews", "trials": 10, "search": search, "fleet": {"time_budget": "1h"}}
    return small_study(tmp_path, steps=STEPS, **(own | given))


@dataclass
class Watching:
    """Factory of runners that record their requests and measure the given scores."""

    scores: dict[int, float] = field(default_factory=dict)
    fails_at: dict[int, int] = field(default_factory=dict)
    requests: dict[int, TrialRequest] = field(default_factory=dict)
    runners: list[TrivialRunner] = field(default_factory=list)
    step_seconds: float = 0.0
    at_step: Callable[[TrialRequest, int], None] = lambda request, step: None

    def __call__(self, threads: int) -> TrivialRunner:
        def note(request: TrialRequest, step: int) -> None:
            self.requests[request.trial] = request
            self.at_step(request, step)

        runner = TrivialRunner(scores=self.scores, fails_at=self.fails_at, on_step=note, step_seconds=self.step_seconds)
        self.runners.append(runner)
        return runner


@dataclass
class Study:
    """A study that was launched to its end, and its ledger."""

    url: str
    specification: Specification

    def confirm(self, factory: Callable[[int], TrivialRunner] | None = None, **given: object) -> LaunchResult:
        request = ConfirmationRequest(study="reviews", **{"top": 2, "seeds": 3, **given})
        return confirm(request, storage_url=self.url, factory=factory or TrivialFactory())

    def record(self, name: str = "reviews-confirm") -> StudyRecord:
        return query_study(self.url, name, lambda ledger, study: study)

    def confirmation(self, name: str = "reviews-confirm") -> ConfirmationRecord:
        return query_study(self.url, name, lambda ledger, study: ledger.confirmation(study))

    def trials(self, name: str = "reviews-confirm") -> list[TrialRecord]:
        return query_study(self.url, name, lambda ledger, study: ledger.trials(study.id))

    def result(self) -> ConfirmationResult:
        return query_study(self.url, "reviews-confirm", lambda ledger, study: confirmation_result(ledger, study.name))

    def broken(self, name: str = "reviews-confirm", rungs: tuple[int, ...] = ()) -> list[str]:
        """Return every broken invariant, and every file that no trial has."""
        with Ledger.open(self.url, read_only=True) as ledger:
            record = ledger.study(name)
            found = violations(ledger, record.id, rung_steps=rungs)
            named = {artefact.path for artefact in ledger.artefacts(record.id)}
        files = study_folder(self.specification.artefact_folder(), record).glob("trial-*/attempt-*/*")
        return found + [f"nobody's file {path}" for path in files if str(path) not in named]


@pytest.fixture
def study(tmp_path: Path, storage_url: str) -> Study:
    """Launch a study; the test runs on both databases."""
    return launched(tmp_path, storage_url)


@pytest.fixture
def local(tmp_path: Path) -> Study:
    """Launch a study on SQLite."""
    return launched(tmp_path, f"sqlite:///{tmp_path / 'ledger.db'}")


def launched(tmp_path: Path, url: str, **given: object) -> Study:
    own = specification(tmp_path, **given)
    assert launch(own, storage_url=url, factory=Watching(scores=VALIDATION)).finished
    return Study(url, own)


def best_of(trials: list[TrialRecord]) -> TrialRecord:
    return max(trials, key=lambda trial: (trial.score if trial.score is not None else -1, -trial.number))


def test_the_winners_and_the_baselines_are_trained_again_on_the_test_split(study):
    before = study.trials("reviews")
    factory = Watching()
    launched = study.confirm(factory)
    assert (launched.finished, launched.reason) == (True, "finished: all 15 trials have ended")
    record = study.confirmation()
    assert [contender.label for contender in record.contenders][2:] == list(AGAINST)
    assert sorted(factory.requests) == list(range(15))
    expected = replace(study.specification.training_plan(), evaluate_at_steps=(STEPS,), measured_split="test")
    assert {request.plan for request in factory.requests.values()} == {expected}
    winner = best_of(before)
    assert record.winner.trial == winner.number
    for seed, number in enumerate(record.numbers_of(0)):
        request = factory.requests[number]
        assert request.seed == record.seeds[seed]
        assert winner.configuration == study.trials()[number].configuration
        for side, rate in zip((winner.attention, winner.ffn), request.learning_rates, strict=False):
            assert rate == (0.0 if side is None else side.learning_rate)
    assert not set(record.seeds) & {trial.seed for trial in before}
    again = study.trials()
    for place in range(len(record.contenders)):  # so that runs are paired
        assert [again[number].seed for number in record.numbers_of(place)] == list(record.seeds)
    assert all(trial.state is TrialState.COMPLETE for trial in again)
    assert [trial.score for trial in again] == [score_at(trial.seed, STEPS) for trial in again]


def test_the_study_does_not_notice(study):
    with Ledger.open(study.url, read_only=True) as ledger:
        board, events = leaderboard(ledger, "reviews"), ledger.events(ledger.study("reviews").id)
    before = study.trials("reviews")
    study.confirm()
    with Ledger.open(study.url, read_only=True) as ledger:
        assert leaderboard(ledger, "reviews") == board
        assert ledger.events(ledger.study("reviews").id) == events
        summaries = {summary.name: summary for summary in study_summaries(ledger)}
    assert study.trials("reviews") == before
    assert study.broken("reviews", study.specification.rung_plan().steps) == []
    assert (summaries["reviews"].confirms, summaries["reviews-confirm"].confirms) == (None, "reviews")
    again = launch(study.specification, storage_url=study.url, factory=TrivialFactory())
    assert again.reason == "already finished: all 10 trials have ended"


def test_a_confirmation_keeps_every_invariant_of_a_study(study):
    study.confirm()
    record = study.record()
    assert (record.kind, record.parent_id) == (StudyKind.CONFIRMATION, study.record("reviews").id)
    assert study.broken() == []


def test_finished_trials_are_not_trained_again(local):
    local.confirm()
    before = local.trials()
    factory = Watching()
    result = local.confirm(factory)
    assert (result.finished, result.reason) == (True, "already finished: all 15 trials have ended")
    assert factory.runners == []
    assert local.trials() == before
    assert local.record().epoch == 1


@pytest.mark.slow
def test_sql_differences_equal_printed_ones_and_are_verified(study):
    query = "SELECT label, difference, low, high, p_value, adjusted_p, pairs, verdict FROM confirmation_results"

    def answers() -> dict[object, tuple[object, ...]]:
        return {label: tuple(values) for label, *values in run_query(study.url, query).rows}

    study.confirm(Watching(), fleet={"time_budget": 1e-9})
    assert {values for one in answers().values() for values in one} == {None}
    study.confirm()
    expected = {one.baseline: tuple(one.entry().values()) for one in study.result().comparisons}
    assert len(expected) == 3
    assert answers() == dict.fromkeys((one.label for one in study.result().contenders), (None,) * 7) | expected
    with Ledger.open(study.url) as ledger:
        assert verify(ledger, "reviews-confirm") == []
        key, contenders = study.record().id, study.confirmation().contenders
        changed = [replace(one, comparison=one.comparison and {**one.comparison, "low": -1.0}) for one in contenders]
        ledger.set_contenders(key, changed)
        assert len(verify(ledger, "reviews-confirm")) == 3
        ledger.set_contenders(key, [replace(one, comparison=None) for one in contenders])  # as if killed at the end
    study.confirm()
    assert study.confirmation().contenders == contenders


def continued(study: Study) -> list[TrialRecord]:
    """Run a stopped confirmation to its end and return its trials; check that ended ones did not change."""
    ended = [trial for trial in study.trials() if trial.state.is_terminal]
    factory = Watching()
    assert study.confirm(factory).finished
    assert not {trial.number for trial in ended} & set(factory.requests)
    after = study.trials()
    assert [trial for trial in after if trial in ended] == ended
    assert [trial.score for trial in after] == [score_at(trial.seed, STEPS) for trial in after]
    assert study.broken() == []
    return after


def test_a_time_budget_stops_it_and_the_next_call_goes_on(study, monkeypatch):
    factory = Watching(at_step=WorkClock(monkeypatch))
    first = study.confirm(factory, fleet={"time_budget": 60 * STEP_SECONDS})
    assert not first.finished
    assert "of 15 trials: the time budget of 3 s is exhausted" in first.reason
    part = study.result()
    assert 0 < part.ended < 15
    assert (part.is_finished, part.comparisons) == (False, ())
    continued(study)


def test_confirmation_ignores_time_budget_of_the_search(local):
    assert local.specification.fleet.time_budget == 3600
    observed: list[Progress] = []
    request = ConfirmationRequest(study="reviews", top=1, seeds=2, against=())
    confirm(request, storage_url=local.url, factory=TrivialFactory(step_seconds=0.02), observer=observed.append)
    assert None in {one.left for one in observed}
    # a seed is no best trial: its score on the test split is one of those that the mean is of
    assert {one.best for one in observed} == {None}
    assert not any(trial.is_best for one in observed for trial in one.just_ended)


class Killed(BaseException):
    """End of a process that no code handles."""


def test_a_confirmation_that_died_continues_where_it_was(study):
    def die(request: TrialRequest, step: int) -> None:
        if request.trial == 7 and step == 9:
            raise Killed

    with pytest.raises(Killed):
        study.confirm(Watching(at_step=die))
    assert sum(trial.state.is_terminal for trial in study.trials()) >= 6
    assert continued(study)[7].attempt == 2


def test_a_confirmation_that_another_process_continues_stops_with_one_line(local):
    def steal(request: TrialRequest, step: int) -> None:
        if request.trial == 5 and step == 3:
            with Ledger.open(local.url) as ledger:
                ledger.take_over(ledger.study("reviews-confirm").id, "another process")

    with pytest.raises(FencedError, match="study 'reviews-confirm' was taken over by keeper 2") as stopped:
        local.confirm(Watching(at_step=steal))
    assert "\n" not in str(stopped.value)
    assert local.confirm().finished
    assert local.broken() == []


@pytest.mark.slow
def test_a_fleet_on_ray_gives_the_same_scores(local, monkeypatch):
    tests = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tests.parent), str(tests)]))  # for the workers
    local.confirm()
    local.confirm(name="on-ray", fleet={"backend": "ray", "workers": 2})
    trials = local.trials("on-ray")
    assert [trial.score for trial in trials] == [score_at(trial.seed, STEPS) for trial in trials]
    first, second = local.trials(), trials
    assert [one.configuration for one in first] == [one.configuration for one in second]
    assert not {one.seed for one in first} & {one.seed for one in second}
    assert local.broken("on-ray") == []


def test_changed_arguments_are_refused_with_their_difference(local):
    local.confirm()
    with pytest.raises(StudyChangedError) as refused:
        local.confirm(seeds=4, against=("mam_adapter",))
    first, *lines = str(refused.value).splitlines()
    assert first.startswith("confirmation 'reviews-confirm' exists with other arguments, below")
    assert lines == [
        "  seeds: 3 -> 4",
        '  against: ["mam_adapter", "lora_qv", "full_finetuning"] -> ["mam_adapter"]',
    ]
    assert local.confirm(seeds=4, name="another").finished
    assert len({*local.confirmation().seeds, *local.confirmation("another").seeds}) == 3 + 4
    with Ledger.open(local.url, read_only=True) as ledger:
        assert [one.name for one in confirmation_results(ledger, "reviews")] == ["reviews-confirm", "another"]


@pytest.mark.slow
def test_trials_added_later_are_reported_but_not_confirmed(tmp_path, local):
    local.confirm()
    winner = local.result().winner.trial
    assert local.result().newer_winner is None
    more = specification(tmp_path, trials=40)
    launch(more, storage_url=local.url, factory=Watching(scores=dict.fromkeys(range(10, 40), 0.99)))
    result = local.result()
    assert result.winner.trial == winner
    assert result.newer_winner in range(10, 40)  # which of equal scores leads is the estimates' to say
    assert local.confirm().reason.startswith("already finished")


def test_study_without_complete_trial_is_refused_unrecorded(tmp_path):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    own = specification(tmp_path, trials=2)
    launch(own, storage_url=url, factory=Watching(fails_at={0: 3, 1: 5}))
    with pytest.raises(ConfirmationError, match="study 'reviews' must have a complete trial; got none among 2"):
        Study(url, own).confirm()
    with Ledger.open(url, read_only=True) as ledger:
        assert [one.name for one in ledger.studies()] == ["reviews"]


def test_a_confirmation_is_not_confirmed_and_not_launched(tmp_path, local):
    local.confirm()
    with pytest.raises(ConfirmationError, match=r"got 'reviews-confirm', a confirmation of 'reviews'"):
        confirm(ConfirmationRequest(study="reviews-confirm"), storage_url=local.url)
    with pytest.raises(InvalidRequestError, match=r"must be unique; got 'reviews-confirm', a confirmation"):
        launch(specification(tmp_path, name="reviews-confirm"), storage_url=local.url, factory=TrivialFactory())
    with pytest.raises(ConfirmationError, match=r"must be unique; got 'reviews', another study's"):
        local.confirm(name="reviews")


def test_a_study_of_another_release_is_refused(local, sample_storage):
    with pytest.raises(ConfirmationError, match="cannot read the study file of 'sample': it is of another release"):
        confirm(ConfirmationRequest(study="sample"), storage_url=sample_storage, factory=TrivialFactory())


def test_files_stay_in_the_studys_folder_despite_database_path(local, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    other_folder = tmp_path / "elsewhere"
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as link, link:
        parameters = {"s": str(other_folder)}
        link.execute("UPDATE studies SET specification = json_set(specification, '$.fleet.artefacts', :s)", parameters)
    assert local.confirm(top=1, seeds=2).finished
    assert local.record().folder == tmp_path / "artefacts" / "reviews-confirm"
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as link, link:
        link.execute("UPDATE studies SET folder = :s WHERE name = 'reviews'", parameters)
    assert local.confirm(top=1, seeds=2, name="again").finished
    assert local.record("again").folder == here / "deltaspace-artefacts" / "again"
    assert not other_folder.exists()
