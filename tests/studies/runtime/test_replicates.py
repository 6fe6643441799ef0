"""Replicates: how many, in which rounds, of whom, and that they run to the end."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import text
from support.kept_study import KeptStudy, report

from studies.records import TrialReport, TrialState
from studies.runtime.messages import Decision
from studies.runtime.replicates import ReplicateRound, finalists_of, replicate_count, rounds
from studies.search.initial_design import InitialDesign


@pytest.mark.parametrize(("trials", "count"), [(25, 0), (95, 0), (96, 12), (100, 12), (320, 40), (500, 40), (896, 112)])
def test_by_default_an_eighth_of_the_trials_at_most_is_repeated(trials, count):
    assert replicate_count("auto", trials) == count


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, []),
        (1, [(1, 1)]),
        (6, [(6, 2)]),
        (12, [(4, 4), (8, 2)]),
        (15, [(4, 4), (11, 2)]),
        (40, [(8, 8), (16, 4), (16, 2)]),
    ],
)
def test_finalists_are_halved_and_their_seeds_doubled(count, expected):
    found = rounds(count, target_trials=100)
    assert [(one.trials, one.finalists) for one in found] == expected
    ends = [one.begins_at + one.trials for one in found]
    assert [one.begins_at for one in found] + ends[-1:] == [100 - count, *ends][: len(found) + bool(found)]


# ---- in a keeper


def run_one_by_one(study: KeptStudy, scores: Sequence[float]) -> dict[int, int]:
    """End trials one after another and return the replicates and their originals."""
    requests = study.take(1)
    for score in scores:
        requests = study.keeper.exchange("w/1", [report(requests[0], 16, score)], 0).requests
    return {trial.number: trial.replicate_of for trial in study.trials if trial.replicate_of is not None}


@pytest.mark.parametrize("trials", [14, 40])
def test_early_replicates_repeat_the_best_trials_with_edits(begin, trials):
    design = InitialDesign(published=("head_only", "lora_qv", "mam_adapter"))
    study = begin(target_trials=trials, repeats_early=True, initial_design=design)
    # after four and after eight searched trials, however many are to come
    scores = [0.9, 0.8, 0.3, 0.2, 0.4, 0.5, 0.6, 0.7, 0.1, 0.1, 0.1, 0.1, 0.1]
    assert run_one_by_one(study, scores) == {7: 1, 12: 6}
    assert study.trials[7].seed != study.trials[1].seed


def test_early_trials_are_repeated_under_auto_alone(begin):
    study = begin(target_trials=14, initial_design=InitialDesign(published=("lora_qv",)))
    assert run_one_by_one(study, [0.5] * 13) == {}


def test_early_replicates_wait_for_four_complete_trials(begin):
    study = begin(target_trials=20, repeats_early=True, initial_design=InitialDesign(published=("lora_qv", "bitfit")))
    requests = study.take(8)
    study.keeper.exchange("w/1", [report(request, 16, 0.1 * request.trial) for request in requests[:4]], 3)
    assert [trial.replicate_of for trial in study.trials[:10]] == [None] * 8 + [3, None]


@pytest.fixture
def searched(begin):
    """Begin a study whose eight trials are about to end, number 5 the best, 2 the next; six replicates follow."""

    def make(**fields: object) -> tuple[KeptStudy, list[TrialReport]]:
        study = begin(target_trials=14, replicates=6, **fields)
        requests = study.take(14)
        assert [request.trial for request in requests] == list(range(8))
        scores = [0.1, 0.2, 0.8, 0.3, 0.4, 0.9, 0.5, 0.6]
        return study, [report(request, 16, score) for request, score in zip(requests, scores, strict=True)]

    return make


def test_replicates_wait_until_every_trial_before_has_ended(searched):
    study, ending = searched()
    answer = study.keeper.exchange("w/1", ending[:-1], 1)
    assert answer.requests == ()
    assert not answer.is_over
    answer = study.keeper.exchange("w/1", ending[-1:], 8)
    assert [request.trial for request in answer.requests] == list(range(8, 14))


def test_replicates_are_their_originals_with_other_seeds(searched):
    study, ending = searched()
    study.keeper.exchange("w/1", ending, 8)
    trials = study.trials
    assert [trial.replicate_of for trial in trials[8:]] == [5, 2, 5, 2, 5, 2]
    assert {trial.origin for trial in trials[8:]} == {"replicate"}
    assert len({trial.seed for trial in trials}) == len({trial.fingerprint for trial in trials}) == 14
    for trial in trials[8:]:
        original = trials[trial.replicate_of]
        assert (trial.configuration, trial.attention, trial.ffn) == (
            original.configuration,
            original.attention,
            original.ffn,
        )


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        ((None, None, None, "lora_qv", "bitfit"), [0, 1, 3]),
        ((None, "lora_qv", None, "bitfit"), [0, 1]),
        (("lora_qv", "bitfit", None), [0, 1]),
        ((None, None, None), [0, 1]),
        ((None,), [0]),
        ((), []),
    ],
)
def test_the_best_published_method_is_among_finalists(searched, methods, expected):
    study, _ = searched()
    trial = study.trials[0]
    ranked = [replace(trial, number=number, method=method) for number, method in enumerate(methods)]
    found = finalists_of(ReplicateRound(begins_at=9, trials=6, finalists=2), ranked)
    assert [trial.number for trial in found] == expected


def test_keeper_replicates_best_published_and_two_discoveries(searched):
    study, ending = searched(initial_design=InitialDesign(published=("lora_qv", "mam_adapter")))
    study.keeper.exchange("w/1", ending, 8)
    assert [trial.replicate_of for trial in study.trials[8:]] == [5, 2, 1, 5, 2, 1]


def test_replicates_are_never_pruned_and_hold_no_rung(searched):
    study, ending = searched()
    requests = study.keeper.exchange("w/1", ending, 8).requests
    poor = [report(request, step, 0.01) for step in (4, 8) for request in requests]
    assert {*study.keeper.exchange("w/1", poor, 0).decisions} == {Decision.GO_ON}
    study.keeper.exchange("w/1", [report(request, 16, 0.5) for request in requests], 0)
    assert study.keeper.progress().best.number == 5
    assert [trial.state for trial in study.trials[8:]] == [TrialState.COMPLETE] * 6


def test_a_keeper_that_takes_over_among_replicates_continues_the_round(searched):
    study, ending = searched()
    # eight slots come free, but six of them are taken
    first = study.keeper.exchange("w/1", ending, -6).requests
    assert [request.trial for request in first] == [8, 9]
    study.keeper.exchange("w/1", [report(request, 16, 0.01) for request in first], 0)
    study.take_over()
    study.take(8, "w/2")
    # what the first two scored is of the next round, of which there is none
    assert [trial.replicate_of for trial in study.trials[8:]] == [5, 2, 5, 2, 5, 2]


def test_without_a_complete_trial_the_search_goes_on(begin):
    study = begin(target_trials=4, replicates=2)
    failed = [TrialReport(trial=one.trial, attempt=1, state=TrialState.FAILED, reason="no") for one in study.take(4)]
    study.keeper.exchange("w/1", failed, 4)
    assert [trial.origin for trial in study.trials] == ["proposed"] * 4


def test_published_methods_come_before_replicates(begin):
    study = begin(target_trials=3, replicates=2, initial_design=InitialDesign(published=("lora_qv", "mam_adapter")))
    assert [request.trial for request in study.take(3)] == [0, 1]
    assert [trial.method for trial in study.trials] == ["lora_qv", "mam_adapter"]


def test_verification_finds_invalid_replicates(searched):
    study, ending = searched()
    study.keeper.exchange("w/1", ending, 8)
    assert study.broken() == []
    with study.opened() as (ledger, _), ledger.database.once(writes=True) as link:
        link.execute(text("UPDATE trials SET replicate_of = 8 WHERE number = 9"))
        link.execute(text("UPDATE trials SET replicate_of = 0 WHERE number = 10"))
    found = "\n".join(study.broken())
    original = "a replicate must be its original but for the seed"
    assert f"trial 9: {original}, a complete trial that repeats none; got 8" in found
    assert f"trial 10: {original}, 0; got another" in found
    study.is_checked = False
