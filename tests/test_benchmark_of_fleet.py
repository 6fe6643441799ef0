"""The benchmark of large fleets: its workers keep the keeper's rules, and its figures follow from what was seen."""

from pathlib import Path
from typing import Any

import pytest
from support.violations import violations

from studies.ledger.ledger import Ledger

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def fleet(load: Any) -> Any:
    """Import the benchmark."""
    return load("fleet")


def test_simulated_workers_train_a_study_that_is_whole(fleet, tmp_path):
    setting = fleet.SimulatedFleet(workers=3, slots=2, interval=60.0, call_seconds=0.0, intervals=2, real_seconds=120.0)
    url, clock = f"sqlite:///{tmp_path / 'ledger.db'}", fleet.SimulatedTime()
    with fleet.kept_study(url, tmp_path, "random", clock) as (keeper, plan):
        tally, is_whole = fleet.simulate(setting, keeper, plan, clock)
    assert is_whole
    assert 200 < clock.now <= 240  # 4 intervals, of which 2 are measured
    assert 5 <= len(tally.waits) <= 8
    assert tally.readings == 2 * len(tally.waits)
    with Ledger.open(url, read_only=True) as ledger:
        study = ledger.study("fleet").id
        found = violations(ledger, study, rung_steps=plan.rungs.steps)
        assert [one for one in found if "must exist" not in one] == []
        assert ledger.losses(study) == {}
        assert len(ledger.readings(study)) >= 6 * 3


@pytest.mark.parametrize(("wait", "idle", "is_too_long"), [(1.2, "1.96%", False), (1.3, "2.12%", True)])
def test_idle_is_the_share_of_a_worker_s_time_that_it_waits(fleet, wait, idle, is_too_long):
    setting = fleet.SimulatedFleet(
        workers=10, slots=32, interval=60.0, call_seconds=0.0, intervals=3, real_seconds=60.0
    )
    tally = fleet.Tally(waits=[wait] * 50, readings=1600, begun=400, busy=25.0, processor=20.0, passed=200.0)
    line = fleet.line("sqlite", "random", setting, tally, is_whole=True)
    assert idle in line
    assert line.endswith("> 2%") == is_too_long
    assert line.split()[4:8] == ["0.25", "2.0", "8.0", "2.0"]  # exchanges in a second, the most, readings, new trials
    assert "10.0%" in line
