"""``kill -9`` at random moments: no trial is lost, none is recorded twice, and every invariant holds.

The random moments are drawn from the seed of a run; what happens at them is up to the machine.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import rotation
from support.killed_study import (
    PATIENCE_SECONDS,
    LaunchedStudy,
    check_at_rest,
    check_log_lines,
    finish,
    kill_everyone,
    wait_for,
    wait_for_ends,
)
from support.storages import on_the_other_storage

from studies.analysis.ranks import ranking_of
from studies.ledger.ledger import Ledger
from studies.records import TrialState


@pytest.fixture
def new_study(tmp_path: Path) -> Iterator[Callable[..., LaunchedStudy]]:
    """Build studies whose steps are slow until they are released."""
    studies: list[LaunchedStudy] = []

    def make(url: str, backend: str, trials: int, step_seconds: float = 0.01, **options: str) -> LaunchedStudy:
        brake = tmp_path / "brake"
        brake.touch()
        options |= {"brake": str(brake), "braked": str(step_seconds)}
        studies.append(LaunchedStudy(url, tmp_path / "artefacts", backend, trials, 0.0, options))
        return studies[-1]

    yield make
    for study in studies:
        study.stop()


VICTIMS = ["worker", "keeper", "launch"]


@pytest.mark.slow
@on_the_other_storage
@pytest.mark.parametrize("searched", [{}, {"sampler": "factored", "rule": "median"}], ids=["tpe", "factored"])
def test_killed_inline_study_neither_loses_nor_repeats_trials(new_study, storage_url, searched):
    study = new_study(storage_url, "inline", 36, step_seconds=0.02, **searched)
    assert len(kill_everyone(study, ["launch"] * 3, rotation.seed())) == 3
    check_at_rest(study)


@pytest.mark.slow
def test_study_killed_among_replicates_repeats_the_same_trials(new_study, tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = new_study(url, "inline", 32, replicates="12")
    wait = study.launch()
    wait_for(lambda: study.ended() >= 20, wait, study)
    for _ in range(3):
        wait.kill()
        wait.wait()
        wait = study.launch()
        wait_for_ends(study, wait)
    study.release()
    finish(study, wait)
    check_at_rest(study)
    trials = study.recorded()
    assert [trial.origin == "replicate" for trial in trials] == [number >= 20 for number in range(32)]
    rounds = [[trial.replicate_of for trial in trials[begin:end]] for begin, end in ((20, 24), (24, 32))]
    assert all(trial.state is TrialState.COMPLETE for trial in trials[20:])
    # who was trained again follows from what came before, in any process
    with Ledger.open(url, read_only=True) as ledger:
        record = ledger.study("trivial")
        for begin, of, best in ((20, rounds[0], 4), (24, rounds[1], 2)):
            before = ranking_of(ledger, record, trials[:begin]).trials
            finalists = [trial.number for trial in before[:best]]
            if not any(trial.method for trial in before[:best]):
                finalists += [trial.number for trial in before[best:] if trial.method][:1]
            assert of == [finalists[place % len(finalists)] for place in range(len(of))]


@pytest.mark.slow
@on_the_other_storage
def test_ray_study_survives_kills_of_worker_keeper_and_launch(new_study, storage_url):
    study = new_study(storage_url, "ray", 14 * len(VICTIMS), step_seconds=0.03)
    assert len(kill_everyone(study, VICTIMS, rotation.seed())) == len(VICTIMS)
    check_at_rest(study)
    check_log_lines(study)


@pytest.mark.slow
def test_a_launch_that_was_fenced_stops_and_the_other_goes_on(new_study, tmp_path):
    study = new_study(f"sqlite:///{tmp_path / 'ledger.db'}", "inline", 60, step_seconds=0.05)
    first = study.launch()
    wait_for(lambda: study.ended() > 2, first, study)
    refused = study.launch()
    assert refused.wait(PATIENCE_SECONDS) == 1
    assert "StudyHeldError: study 'trivial' is run by process" in study.log()
    second = study.launch(if_running="take over")
    assert first.wait(PATIENCE_SECONDS) == 1
    assert "FencedError: study 'trivial' was taken over by keeper 2" in study.log(0)
    study.release()
    finish(study, second)
    check_at_rest(study)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["inline", pytest.param("ray", marks=pytest.mark.slow)])
def test_ctrl_c_in_the_terminal_stops_cleanly_and_the_next_launch_goes_on(new_study, tmp_path, backend):
    study = new_study(f"sqlite:///{tmp_path / 'ledger.db'}", backend, 30, step_seconds=0.02)
    process = study.launch()
    wait_for(lambda: study.ended() > 2, process, study)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the whole group
    assert process.wait(PATIENCE_SECONDS) == 0, study.log()
    assert "False: stopped after" in study.log()
    assert "interrupted by Ctrl-C" in study.log()
    assert "Traceback" not in study.log()
    assert study.ended() < 30
    assert "running" not in {trial.state.value for trial in study.recorded()}
    assert study.broken() == []
    study.release()
    study.backend = "inline"  # whoever continues it
    finish(study)
    check_at_rest(study)
