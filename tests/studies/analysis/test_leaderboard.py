"""Leaderboards, summaries and trials, read from a ledger."""

from dataclasses import replace

import pytest

from studies.analysis.leaderboard import leaderboard
from studies.analysis.readings import scored_by
from studies.analysis.summaries import study_summaries, summary_of
from studies.ledger.ledger import Ledger
from studies.records import TrialState
from studies.study import Study


@pytest.fixture
def ledger(sample_storage: str):
    with Ledger.open(sample_storage, read_only=True) as ledger:
        yield ledger


def test_complete_trials_come_first_by_score_then_pruned_then_failed(ledger):
    rows = leaderboard(ledger, "sample").rows
    assert [row.number for row in rows] == [3, 0, 1, 2]
    assert [row.place for row in rows] == [1, 2, 3, 4]
    assert [row.state.value for row in rows] == ["complete", "complete", "pruned", "failed"]


def test_a_pruned_trial_shows_its_newest_score_and_the_step_of_it(ledger):
    pruned = leaderboard(ledger, "sample").rows[2]
    assert (pruned.score, pruned.steps) == (0.55, 25)
    assert pruned.reason == "rung 0 (25 steps): 0.55 below the cut 0.6"


def test_published_methods_stay_on_a_short_leaderboard(ledger):
    board = leaderboard(ledger, "sample", top=1)
    assert [row.method for row in board.rows] == ["discovered", "mam_adapter", "lora_qv", "bitfit"]
    assert board.hidden == 0


def test_a_summary_counts_every_state_and_names_the_best(ledger):
    summary = summary_of(ledger, ledger.study("sample"))
    assert summary.counts == dict.fromkeys(TrialState, 1) | {TrialState.COMPLETE: 2}
    assert summary.trials == 6
    assert summary.planned == 8
    assert summary.task == "docstrings"
    assert summary.best.number == 3
    assert study_summaries(ledger) == (summary,)


def test_a_trial_holds_attempts_readings_files_and_its_own_events(sample_storage):
    study = Study.open("sample", sample_storage)
    trial = study.trial(0)
    assert [attempt.ending for attempt in trial.attempts] == ["complete"]
    assert [reading.step for reading in trial.reading_records] == [25, 200]
    assert [artefact.kind for artefact in trial.artefacts] == ["delta"]
    assert "worker-0 was lost" not in [event.text for event in trial.events]
    assert [event.text for event in study.trial(4).events] == ["worker-0 was lost"]


@pytest.mark.parametrize(
    ("task", "metric", "early"),
    [
        ({"kind": "translation"}, "bleu", "loss"),
        ({"kind": "translation"}, "perplexity", "perplexity"),
        ({"kind": "classification"}, "accuracy", "accuracy"),
        ({"name": "docstrings"}, "accuracy", "accuracy"),
    ],
)
def test_until_a_trial_is_complete_the_loss_may_stand_in_for_the_metric(ledger, task, metric, early):
    study = ledger.study("sample")
    changed = replace(study, specification={**study.specification, "task": task}, metric=metric)
    found = {trial.state: scored_by(trial, changed) for trial in ledger.trials(study.id)}
    assert found[TrialState.COMPLETE] == metric
    assert found[TrialState.PRUNED] == found[TrialState.RUNNING] == early
