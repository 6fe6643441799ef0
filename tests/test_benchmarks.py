"""The benchmark of packs: its trials are as unlike as it says, its figures follow from the times, and it works."""

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support import rotation

from search_space.backbones import shape_of
from trial_runner.backbones.locate import embedded_folder

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
ROBERTA_BASE = ROOT / "tests" / "data" / "backbones" / "roberta_base"


@pytest.fixture
def arms(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the arms, which are found beside the benchmark."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(f"pack_arms.{name}")

    return load


def shape_in(folder: Path) -> Any:
    return shape_of(json.loads((folder / "config.json").read_text()))


@pytest.mark.parametrize("folder", [embedded_folder(), ROBERTA_BASE], ids=["embedded", "roberta_base"])
def test_the_trials_of_a_mixed_pack_are_unlike(arms: Any, folder: Path) -> None:
    mix = arms("mix")
    shape = shape_in(folder)
    trials = [mix.mixed_configuration(number, shape) for number in range(len(mix.MIX))]
    assert len(trials) == 32
    edits = [edit for one in trials[:8] for edit in one.edits]
    widths = [edit.sized_form.width for edit in edits if edit.sized_form is not None]
    assert (min(widths), max(widths)) == (1, 256)
    assert len({edit.form.name for edit in trials[0].edits + trials[1].edits + trials[2].edits + trials[3].edits}) == 4
    assert len({edit.insertion for edit in edits}) == 2
    assert len({edit.gate.name for edit in edits}) >= 3


def test_trials_of_one_number_have_one_seed_and_rates_differ(arms: Any) -> None:
    mix, setting = arms("mix"), tiny_setting(arms, embedded_folder())
    shape = shape_in(embedded_folder())
    asked = [mix.request(number, mix.mixed_configuration(number, shape), setting) for number in (0, 1, 0)]
    assert asked[0] == asked[2]
    assert asked[0].seed != asked[1].seed
    rates = {mix.request(number, mix.mixed_configuration(0, shape), setting).learning_rates for number in range(8)}
    assert len(rates) == 5


def test_what_misses_its_aim_says_so(arms: Any) -> None:
    tables = arms("tables")
    assert tables.aim("a pack", 1.9, 2).endswith("≥ 2  MISSED")
    assert tables.aim("a pack", 2.0, 2).endswith("≥ 2")
    assert tables.aim("a pack", float("nan"), 2).endswith("MISSED")


def test_rates_are_those_of_the_whole_machine(arms: Any) -> None:
    """Two workers, trials of 10 steps: 4 s alone, 2 s in our loop, a pack of 2 in 2.5 s."""
    rounds, processes = arms("rounds"), arms("processes")
    setting = replace(tiny_setting(arms, embedded_folder()), steps=10)
    plan = rounds.Plan(setting=setting, workers=2, packs=(2,), alone_trials=1)

    def answer(**said: Any) -> Any:
        return processes.Answer(wall_seconds=4.0, ready={}, answer=said)

    pack = answer(
        timings=[{"trials": [0, 1], "scores": [0.5, 0.7], "seconds": 2.5, "step_seconds": 0.2}],
        equal=[{"step_seconds": 0.1}],
    )
    one = rounds.Round(
        plan=plan,
        alone={0: answer(train_seconds=2.5)},
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
    """Tells the seconds that a pack says to have worked: 1 an admission, 2 a step, 5 an evaluation at the end."""

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
def test_a_pack_takes_what_its_parts_take(arms: Any, goals: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    own, setting = arms("own"), tiny_setting(arms, embedded_folder())
    clock = Clock(setting.steps)
    monkeypatch.setattr(own, "open_pack", clock.open_pack)
    monkeypatch.setattr(own, "advance", clock.advance)
    monkeypatch.setattr(own, "now", lambda device: clock.seconds)
    job = arms("setting").Job(setting=setting, packs=((0, 1),))
    training = own.Training(job, "mixed", (0, 1), None)
    for goal in goals:
        training.train(goal)
        clock.seconds += 100  # others' turns
    timing = training.timing()
    assert (timing.seconds, timing.step_seconds, timing.scores) == (2 + 9 * 2 + 5, 2, (0.5, 0.75))


def test_arms_take_turns_backwards_every_other_time(arms: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    processes, rounds = arms("processes"), arms("rounds")
    said: list[str] = []

    class Process:
        def __init__(self, command: list[str], environment: Any) -> None:
            self.name = f"pack of {len(json.loads(command[-1])['packs'][0])}"

        def hear(self, word: str) -> dict[str, Any]:
            said.append(f"{self.name} {word}")
            timing = {"trials": [0]}
            return {"name": self.name, "timings": [timing]}

        def tell(self) -> None:
            pass

        def end(self) -> float:
            return 1.0

    def alone(numbers: Any, setting: Any, at_once: int) -> list[int]:
        said.append(f"alone {list(numbers)}")
        return list(numbers)

    monkeypatch.setattr(processes, "Process", Process)
    monkeypatch.setattr(rounds, "run_alone", alone)
    setting = tiny_setting(arms, embedded_folder())
    plan = rounds.Plan(setting=setting, workers=1, packs=(2, 3), alone_trials=2, turns=2)
    done = rounds.run_round(plan, lambda line: None)
    sizes = [f"pack of {size}" for size in (1, 2, 3)]
    assert said == [
        *(f"{size} ready" for size in sizes),
        *(f"{size} rested" for size in sizes),
        "alone [0]",
        *(f"{size} answer" for size in reversed(sizes)),
        "alone [1]",
    ]
    assert done.alone == {0: 0, 1: 1}
    assert {size: one.answer["name"] for size, (one,) in done.packs.items()} == {2: "pack of 2", 3: "pack of 3"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--steps 7", "--steps must be at least 8"),
        ("--alone 0", "--alone must be at least 1; got 0"),
        ("--packs 1", "sizes of at least 2"),
        ("--quick --packs 8", "at most 4; got 8"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(
    options: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    with pytest.raises(SystemExit, match="2"):
        importlib.import_module("packs").arguments_of(options.split())
    assert said in capsys.readouterr().err.splitlines()[-1]


def tiny_setting(arms: Any, folder: Path) -> Any:
    return arms("setting").Setting(
        device="cpu", backbone=str(folder), embedded_task=False, tokens=8, batch_size=2, steps=9, threads=1
    )


def test_every_arm_has_the_dropout_that_is_asked_for(arms: Any, tmp_path: Path) -> None:
    folder = arms("material").dropping(ROBERTA_BASE, tmp_path / "dropping", 0.3)
    config, own = (json.loads((one / "config.json").read_text()) for one in (ROBERTA_BASE, folder))
    changed = {name for name in own if own[name] != config[name]}
    assert own["hidden_dropout_prob"] == own["attention_probs_dropout_prob"] == 0.3
    assert changed == {"hidden_dropout_prob", "attention_probs_dropout_prob"}
    assert shape_in(folder) == shape_in(ROBERTA_BASE)


@pytest.mark.slow
def test_a_worker_trains_a_mixed_pack_and_measures_it(arms: Any, tmp_path: Path) -> None:
    material, own = arms("material"), arms("own")
    setting = tiny_setting(arms, material.new_backbone(tmp_path, width=64, layers=1, tokens=8, vocabulary=200))
    job = arms("setting").Job(setting=setting, packs=((0, 1, 2, 3),), has_equal=True, turns=4)
    runner = material.own_runner(setting)
    rests: list[None] = []
    answer = own.answer(arms("setting").Job.from_json(job.to_json()), runner, lambda: rests.append(None))
    at_once = own.answer(replace(job, turns=1, has_equal=False), runner, pytest.fail)
    runner.close()
    assert len(rests) == 3
    assert at_once["timings"][0]["scores"] == answer["timings"][0]["scores"]
    (timing,) = answer["timings"]
    assert timing["trials"] == (0, 1, 2, 3)
    assert len(timing["scores"]) == 4
    assert timing["seconds"] > timing["step_seconds"] > 0
    assert [one["step_seconds"] > 0 for one in answer["equal"]] == [True]
    assert json.loads(json.dumps(answer))


def test_all_arms_run_without_dropout_and_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    assert importlib.import_module("packs").arguments_of([]).dropout == (0.0, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("dropout", rotation.parts([0, 0.1]))
def test_the_benchmark_of_packs_runs(dropout: float) -> None:
    options = "--quick --device cpu --backbone random --width 64 --layers 1 --tokens 8 --batch 2 --packs 2"
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "packs.py", *options.split(), "--dropout", str(dropout)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
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
def test_the_plan_of_memory_is_held_against_the_allocator() -> None:
    options = "--width 64 --layers 2 --tokens 32 --packs 2"
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "memory.py"), *options.split()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("planned") == 2
    assert "MISSED" not in done.stdout


@pytest.mark.slow
def test_what_is_measured_on_a_gpu_begins_with_packed_trials_that_equal_trials_alone() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "gpu.py"), "--quick", "--equality"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert ("fp64" in first, "bf16" in second) == (True, True)
