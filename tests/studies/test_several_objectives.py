"""Studies that want a high score with few parameters: sizes are searched, and launches in parts make the same study."""

from pathlib import Path

import optuna
import pytest
from support.small_study import small_study
from support.trivial_runner import TrivialFactory

from studies.analysis.fronts import front_of
from studies.exports.optuna import optuna_study
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.records import TrialState
from studies.study_file import Specification
from studies.verification import verify

PUBLISHED = ["head_only", "lora_qv", "bitfit"]


def _specification(folder: Path, trials: int, search: dict[str, object]) -> Specification:
    pruning = {"first_rung_steps": 4, "rule": "median"}
    return small_study(folder, trials=trials, pruning=pruning, search=search, fleet={"pack": 1})


def _search(sampler: str, second: str) -> dict[str, object]:
    return {"objectives": ["score", second], "sampler": sampler, "published": PUBLISHED}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "second"),
    [
        ("factored", "parameters"),
        pytest.param("factored", "extra_flops", marks=pytest.mark.slow),
        ("tpe", "parameters"),
        pytest.param("nsga2", "extra_flops", marks=pytest.mark.slow),
    ],
)
def test_two_objective_study_is_independent_of_launch_count(tmp_path, sampler, second):
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("one", "two")]
    search = _search(sampler, second)
    launch(_specification(tmp_path, 26, search), storage_url=urls[0], factory=TrivialFactory())
    for trials in (5, 17, 26):
        launch(_specification(tmp_path, trials, search), storage_url=urls[1], factory=TrivialFactory())
    found = []
    for url in urls:
        with Ledger.open(url, read_only=True) as ledger:
            study = ledger.study("trivial")
            found.append([(one.fingerprint, one.seed, one.state, one.score) for one in ledger.trials(study.id)])
            assert verify(ledger, "trivial") == []
            assert {one.state for one in ledger.trials(study.id)} >= {TrialState.COMPLETE, TrialState.PRUNED}
            sizes = {one.stored_parameters / study.budget_parameters for one in ledger.trials(study.id)}
            assert min(size for size in sizes if size) < 0.5 < max(sizes) <= 1
            stored = optuna_study(ledger, "trivial")
            assert stored.directions == [optuna.study.StudyDirection.MAXIMIZE, optuna.study.StudyDirection.MINIMIZE]
            front = front_of(ledger, study)
            assert (front.objective, front.points[0].size) == (second, 0)
            complete = [one for one in ledger.trials(study.id) if one.state is TrialState.COMPLETE]
            assert [one.values for one in stored.get_trials(states=[optuna.trial.TrialState.COMPLETE])] == [
                [one.score, one.stored_parameters if second == "parameters" else one.extra_flops] for one in complete
            ]
    assert found[0] == found[1]
    assert len(found[0]) == 26
