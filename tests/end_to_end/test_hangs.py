"""Hanging processes, and the loss of Ray: every wait has an end, Ctrl-C works, and no process is left.

A process that is stopped (SIGSTOP) hangs: it neither responds nor dies.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support import rotation
from support.killed_study import PATIENCE_SECONDS, LaunchedStudy, actors, check_at_rest, wait_for
from support.killed_study import finish as finish_launch
from support.ray_parts import driver, freeze, is_gone, left, live_processes, named

pytestmark = pytest.mark.slow


@pytest.fixture
def study(tmp_path: Path) -> Iterator[LaunchedStudy]:
    options = {"lease": "8", "brake": str(tmp_path / "brake")}
    study = LaunchedStudy(f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "artefacts", "ray", 14, 0.03, options)
    yield study
    study.stop()


@pytest.fixture
def running(study: LaunchedStudy) -> subprocess.Popen[str]:
    """Launch the study until some trials have ended, and slow it until `finish`."""
    process = study.launch()
    wait_for(lambda: study.ended() > 2, process, study)
    Path(study.options["brake"]).touch()
    assert process.poll() is None, study.log()
    return process


def finish(study: LaunchedStudy, process: subprocess.Popen[str] | None = None) -> None:
    """Let the study come to its end; whoever continues it does so without Ray."""
    study.release()
    study.backend = "inline"
    finish_launch(study, process)


def ends(process: subprocess.Popen[str], study: LaunchedStudy, pids: list[int]) -> int:
    """Return the exit code of a launch, all of whose processes must end."""
    code = process.wait(PATIENCE_SECONDS)
    assert left(pids) == []
    assert "Traceback" not in study.log()
    return code


def test_a_worker_that_hangs_is_replaced(study, running):
    frozen = freeze(actors(running, "worker", study)[0])
    finish(study, running)
    assert is_gone(frozen)
    check_at_rest(study)


def test_a_keeper_that_hangs_is_replaced(study, running):
    frozen = freeze(actors(running, "keeper", study)[0])
    wait_for(lambda: is_gone(frozen), running, study)
    finish(study, running)
    check_at_rest(study)


@pytest.mark.parametrize("hung", rotation.parts(["worker", "keeper", "driver"]))
def test_a_signal_ends_a_launch_of_which_a_part_hangs(study, running, hung):
    started = live_processes(running)
    freeze(driver(running) if hung == "driver" else actors(running, hung, study)[0])
    os.killpg(running.pid, signal.SIGTERM)
    assert ends(running, study, started) == 0
    assert "stopped by SIGTERM" in study.log()
    finish(study)
    check_at_rest(study)


def test_sigterm_to_all_processes_ends_a_continuable_launch(study, running):
    started = live_processes(running)
    for pid in [running.pid, *started]:
        with suppress(ProcessLookupError):  # it has ended with one that was told before
            os.kill(pid, signal.SIGTERM)
    assert ends(running, study, started) == 0
    assert "stopped by SIGTERM" in study.log()
    finish(study)
    check_at_rest(study)


@pytest.mark.parametrize("lost", rotation.parts(["raylet", "gcs_server"]))
def test_a_ray_that_is_lost_ends_the_launch_with_one_line(study, running, lost):
    started = live_processes(running)
    os.kill(named(running, lost), signal.SIGKILL)
    assert running.wait(PATIENCE_SECONDS) == 1
    # where the machine is slow, the driver may have noticed it before and be gone too
    last_line = [line for line in study.log().splitlines() if " ended, " not in line][-1]
    assert last_line.startswith("studies.errors.LaunchError: Ray stopped during the launch: its ")
    assert last_line.endswith("Nothing is lost: launch again to continue.")
    assert left(started) == []
    finish(study)
    check_at_rest(study)
