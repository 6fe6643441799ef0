"""The driver as the launching process has it: nothing of its session is left, and nobody else's is touched."""

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from studies.backends.driver_process import DriverProcess
from trial_runner.processes import start_of

SCRIPT = """#!/bin/sh
sleep 600 &
echo $! >{child}
echo it is over
exit 3
"""


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DriverProcess:
    """Return a driver that leaves a child process behind and ends."""
    program = tmp_path / "driver"
    program.write_text(SCRIPT.format(child=tmp_path / "child"))
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    order: Any = SimpleNamespace(folder=tmp_path, address=None, factory=None)
    return DriverProcess(order, {})


def test_drivers_children_are_ended_only_while_pid_is_theirs(process, tmp_path):
    with process:
        assert process.exit_description == "exit code 3; last line: it is over"
        child = int((tmp_path / "child").read_text())
        driver = os.getsid(child)
        assert start_of(child)
        assert start_of(driver) is None
        assert Path(f"/proc/{driver}").exists()
    assert start_of(child) is None
    assert not Path(f"/proc/{driver}").exists()


def test_unpicklable_order_starts_no_process(tmp_path):
    order: Any = SimpleNamespace(folder=tmp_path, address=None, factory=threading.Lock())
    with pytest.raises(TypeError, match="cannot pickle"):
        DriverProcess(order, {}).__enter__()
    assert not (tmp_path / "driver.log").exists()
