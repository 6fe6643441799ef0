"""Estimates in the cache folder, stored with the inputs that they depend on."""

import json
import math
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from support.planted_ledger import Planted

from studies.analysis import estimates
from studies.analysis.estimates import cache_mismatches
from studies.analysis.ranks import ranking_of
from studies.records import Reading, TrialState
from studies.study import Study
from studies.surrogate.posterior import EstimatePosterior
from trial_runner.files import default_cache_folder


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(f"sqlite:///{tmp_path / 'ledger.db'}", 16, noise=0.02)


def reloaded_estimates(planted: Planted) -> dict[object, object]:
    """Return the estimates as another process loads them."""
    estimates.cached_estimates.cache_clear()
    found = ranking_of(planted.ledger, planted.study).estimates
    return {"difference": found.difference(0, 1), **found.of}


def no_model(*_: object) -> None:
    raise AssertionError("the model must not be fitted again")


def test_the_model_is_not_fitted_again_while_a_study_gets_no_further(planted, monkeypatch):
    first = reloaded_estimates(planted)
    monkeypatch.setattr("studies.analysis.predictions.predictions_of", no_model)
    assert reloaded_estimates(planted) == first


def test_one_more_trial_changes_cached_estimates(planted):
    first = reloaded_estimates(planted)
    planted.replicate(3, 0.9)
    assert reloaded_estimates(planted)[3] != first[3]


def test_one_fitted_model_estimates_all_pruned_trials(planted, monkeypatch):
    monkeypatch.setattr(estimates, "BLOCK", 1)
    stopped = [replace(planted.trial(one, planted.candidates[one]), number=16 + one) for one in range(3)]
    stopped = [replace(one, fingerprint=f"{one.fingerprint}:{one.number}") for one in stopped]
    planted.ledger.add_trials(planted.study.id, planted.epoch, stopped, worker="w")
    for one in stopped:
        given = {"score": 0.5, "train_loss": 1.0, "seconds": 1.0, "attempt": 1, "rung": 0}
        reading, end = Reading(trial=one.number, step=4, **given), {"state": TrialState.PRUNED, "reason": "low"}
        planted.ledger.settle(planted.study.id, planted.epoch, one.number, 1, readings=[reading], **end)

    def estimate_of(number: int) -> object:
        estimates.cached_estimates.cache_clear()
        found = ranking_of(planted.ledger, planted.study).estimates
        return found.of[number]

    estimate_of(0)
    first = estimate_of(16)
    monkeypatch.setattr("studies.analysis.predictions.predictions_of", no_model)
    assert estimate_of(16) == first
    estimate_of(18)
    for fitted, has_estimate in ((19, True), (18, False)):
        monkeypatch.setattr("studies.trial.FITTED", fitted)
        study = Study.open("planted", planted.ledger.url)
        assert [study.trial(number).estimate is not None for number in (0, 16)] == [True, has_estimate]


predict = EstimatePosterior.predict


def newest_file() -> Path:
    return max((default_cache_folder() / "estimates").iterdir(), key=lambda file: file.stat().st_mtime_ns)


@pytest.mark.parametrize("damage", ["", "{", "[]", "[" * 100_000, '{"sha256": 1, "of": {}, "leads": {}}'])
def test_damaged_file_is_replaced(planted, damage):
    first = reloaded_estimates(planted)
    newest = newest_file()
    newest.write_text(damage)
    assert reloaded_estimates(planted) == first
    assert json.loads(newest.read_text())["of"]


def test_changed_cached_numbers_do_not_change_the_ranking(planted):
    first = reloaded_estimates(planted)
    kept = json.loads(newest_file().read_text())
    kept["of"] = {number: [9.0 - int(number), 0.0] for number in kept["of"]}
    newest_file().write_text(json.dumps(kept))
    assert reloaded_estimates(planted) == first


def fewer_seeds(posterior: EstimatePosterior) -> float:
    return 0.5 * math.sqrt(posterior.posteriors[0].process.trial_variance)


def shifted(*views: object) -> object:
    means, deviations = predict(*views)
    return means + deviations, deviations


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("seed_deviation", property(fewer_seeds), "cached deviation over seeds must be about"),
        ("predict", shifted, "cached estimates must be those of the records"),
    ],
)
def test_verify_names_cached_numbers_of_another_model(planted, monkeypatch, name, wrong, said):
    with monkeypatch.context() as during:
        during.setattr(EstimatePosterior, name, wrong)
        reloaded_estimates(planted)
    (line,) = cache_mismatches(planted.ledger, planted.study)
    assert line.startswith(said)
    assert line.endswith(f"Delete {newest_file()}.")
    newest_file().unlink()
    reloaded_estimates(planted)
    assert not [*cache_mismatches(planted.ledger, planted.study)]


def test_a_pipe_in_place_of_the_file_is_not_waited_for(planted):
    first = reloaded_estimates(planted)
    newest = newest_file()
    newest.unlink()
    os.mkfifo(newest)
    signal.alarm(60)  # ends the process that waits
    assert reloaded_estimates(planted) == first
    signal.alarm(0)


def test_unwritable_cache_is_ignored(planted, tmp_path, monkeypatch):
    first = reloaded_estimates(planted)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("DELTASPACE_CACHE", str(in_the_way / "cache"))
    assert reloaded_estimates(planted) == first
