"""The benchmark of packs: its trials are as unlike as it says, its figures follow from the times, and it works."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import rotation
from support.processes import ROOT, printed_by, run_python

from trial_runner.backbones.locate import embedded_folder

BENCHMARKS = ROOT / "benchmarks"


def test_rates_are_those_of_the_whole_machine(load):
    """Test two workers and trials of 10 steps: 4 s alone, 2 s in our loop, and 2.5 s for a pack of 2."""
    rounds, processes = load("pack_arms.rounds"), load("pack_arms.processes")
    setting = replace(tiny_setting(load, embedded_folder()), steps=10)
    plan = rounds.Plan(setting=setting, workers=2, packs=(2,), alone_trials=1)

    def answer(**fields: Any) -> Any:
        return processes.ProcessResult(wall_seconds=6.0, ready={}, answer=fields)

    pack = answer(
        timings=[{"trials": [0, 1], "scores": [0.5, 0.7], "seconds": 2.5, "step_seconds": 0.2}],
        equal=[{"step_seconds": 0.1}],
    )
    one = rounds.Round(
        plan=plan,
        alone={0: answer(train_seconds=2.5, processor_seconds=4.0)},
        single={number: {"scores": [0.6], "seconds": 2.0, "step_seconds": 0.125} for number in range(2)},
        singles=[],
        packs={2: [pack, pack]},
    )
    assert one.alone_rate(2, with_all=True) == pytest.approx(5.0)
    assert one.alone_rate(2, with_all=False) == pytest.approx(8.0)
    assert one.single_rate(2, with_all=True) == pytest.approx(10.0)
    assert one.single_rate(2, with_all=False) == pytest.approx(16.0)
    assert one.pack_rate(2, with_all=True) == pytest.approx(16.0)
    assert (one.to_alone(2), one.to_single(2)) == pytest.approx((3.2, 1.6))
    assert one.efficiency(2) == pytest.approx(0.5)
    assert one.score_difference(2) == pytest.approx(0.1)


class Clock:
    """Clock of a pack with fixed durations: 1 s an admission, 2 s a step, 5 s an evaluation at the end."""

    def __init__(self, steps: int) -> None:
        self.seconds, self.step, self.steps = 0.0, 0, steps

    def open_pack(self, runner: Any, trials: Any) -> "Clock":
        self.seconds += len(trials)
        return self

    def advance(self, pack: Any, steps: int) -> dict[int, float]:
        self.step += steps
        self.seconds += 2 * steps + (5 if self.step == self.steps else 0)
        return {0: 0.5, 1: 0.75} if self.step == self.steps else {}


@pytest.mark.parametrize("goals", [(9,), (2, 4, 9), (3, 8, 9), (1, 1, 2, 3, 4, 5, 6, 7, 8, 9)])
def test_time_of_a_pack_is_that_of_its_parts(load, goals, monkeypatch):
    own, setting = load("pack_arms.own"), tiny_setting(load, embedded_folder())
    clock = Clock(setting.steps)
    monkeypatch.setattr(own, "open_pack", clock.open_pack)
    monkeypatch.setattr(own, "advance", clock.advance)
    monkeypatch.setattr(own, "now", lambda device: clock.seconds)
    job = load("pack_arms.setting").Job(setting=setting, packs=((0, 1),))
    training = own.PackTraining(job, "mixed", (0, 1), None)
    for goal in goals:
        training.train(goal)
        clock.seconds += 100  # others' turns
    timing = training.timing()
    assert (timing.seconds, timing.step_seconds, timing.scores) == (2 + 9 * 2 + 5, 2, (0.5, 0.75))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--steps 7", "--steps must be at least 8"),
        ("--alone 0", "--alone must be at least 1; got 0"),
        ("--packs 1", "sizes of at least 2"),
        ("--quick --packs 8", "at most 4; got 8"),
    ],
)
def test_incomparable_options_are_refused_in_a_line(load, options, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        load("packs").arguments_of(options.split())
    assert message in capsys.readouterr().err.splitlines()[-1]


def tiny_setting(load: Any, folder: Path) -> Any:
    return load("pack_arms.setting").Setting(
        device="cpu", backbone=str(folder), embedded_task=False, tokens=8, batch_size=2, steps=9, threads=1
    )


@pytest.mark.slow
@pytest.mark.parametrize("dropout", rotation.parts([0, 0.1]))
def test_the_benchmark_of_packs_runs(dropout):
    options = "--quick --device cpu --backbone random --width 64 --layers 1 --tokens 8 --batch 2 --packs 2"
    done = run_python(BENCHMARKS / "packs.py", *options.split(), "--dropout", dropout)
    assert done.returncode == 0, done.stderr
    assert "turn 2 of 2 done" in done.stderr
    for words in (
        f"dropout {dropout},",
        "(a) alone",
        "(b) own loop",
        "(c) pack of 2",
        "never below",
        "vs equal",
        "by at most",
    ):
        assert words in done.stdout


@pytest.mark.slow
def test_the_plan_of_memory_is_held_against_the_allocator():
    options = "--width 64 --layers 2 --tokens 32 --packs 2"
    printed = printed_by(BENCHMARKS / "memory.py", *options.split())
    assert printed.count("planned") == 2
    assert "MISSED" not in printed


@pytest.mark.slow
def test_gpu_benchmark_begins_with_pack_equality():
    first, second = printed_by(BENCHMARKS / "gpu.py", "--quick", "--equality").splitlines()
    assert ("fp64" in first, "bf16" in second) == (True, True)
