"""The benchmark of discover: what it counts, and a small seeded version of what it shows."""

import importlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.simulated_search import whole_space

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("discover")


@pytest.fixture
def found(benchmark: Any) -> list[Any]:
    one = benchmark.Checked(arm="a", seed=0, contrast="c", is_null=False, value=1.0, reach=0.4, truth=1.3)
    return [
        one,
        replace(one, truth=1.6),  # missed
        replace(one, value=-0.6, truth=1.2),  # missed, resolved, the sign is wrong and the true effect is clear
        replace(one, seed=1, is_null=True, value=0.3, truth=0.0),
        replace(one, seed=1, is_null=True, value=0.6, truth=0.2),  # resolved where there is nothing
    ]


def test_the_table_counts_coverage_and_false_rules(benchmark: Any, found: list[Any]) -> None:
    (row,) = [line.split() for line in benchmark.table(found) if line.startswith("a ")]
    # contrasts; covered 1 of 3; resolved 4 of 5, half of null
    assert (row[1], row[2]) == ("5", "0.333")
    assert row[5:7] == ["80.0%", "50.0%"]


def test_signs_are_counted_by_what_is_said_by_clear_estimates_and_by_clear_truths(
    benchmark: Any, found: list[Any]
) -> None:
    (row,) = [re.split(r"  +", line) for line in benchmark.signs(found) if line.startswith("a ")]
    # three are resolved and have an effect, two of them above two half-widths; three true effects are
    assert [group.split(",")[0] for group in row[1:4]] == ["1 of 3", "0 of 2", "1 of 3"]
    assert next(benchmark.signs(found[3:4])).startswith("wrong signs")
    assert "0 of 0" in list(benchmark.signs(found[3:4]))[1]


def test_even_an_exact_posterior_has_the_wrong_sign_where_trials_tell_nothing(benchmark: Any) -> None:
    one = benchmark.Checked(arm="a", seed=0, contrast="c", is_null=False, value=0.0, reach=1.0, truth=0.0)
    assert one.chance(has_sign=True) == pytest.approx(one.chance(has_sign=False)) == pytest.approx(5.01e-4, rel=1e-2)
    # with an estimate of two half-widths every other truth is clear, hardly one of the other sign
    clear = replace(one, value=-2.0)
    assert clear.chance(has_sign=True) == pytest.approx(0.5)
    assert clear.chance(has_sign=False) < 1e-10
    assert "0.0 of 0, 50.0%" in list(benchmark.signs([one]))[1]


def test_results_are_read_as_they_were_written_and_told_once(benchmark: Any) -> None:
    one = benchmark.Checked(arm="a", seed=0, contrast="c", is_null=False, value=1.0, reach=0.5, truth=1.4)
    asked = benchmark.Seen(arm="a", seed=0, trials=20, contrasts=(one, replace(one, truth=3.0)), gap=2e-12)
    ranks = [benchmark.Seen(arm="a", seed=seed, trials=20, rank=0.7 + seed / 10) for seed in range(2)]
    assert [benchmark.Seen.of(one.line()) for one in (asked, *ranks)] == [asked, *ranks]
    lines = list(benchmark.told([asked], 20))
    assert "0.500" in lines[1]
    assert lines[-1] == "Shapley values miss the difference by at most 2.0e-12 points."
    (line,) = benchmark.told(ranks, 20)
    assert line.endswith("after 20 trials: mean 0.75, least 0.70, 2 tasks")


def test_a_report_runs_nothing(
    benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.jsonl"
    ranks = [benchmark.Seen(arm="factored", seed=seed, trials=20, rank=0.5 + seed / 10) for seed in range(4)]
    file.write_text("".join(one.line() for one in ranks))
    monkeypatch.setattr(benchmark, "seen", None)  # whoever runs a study fails
    words = ["--report", "--results", str(file), "--importance", "--trials", "20", "--first-seed", "1", "--tasks", "2"]
    monkeypatch.setattr("sys.argv", ["discover.py", *words])
    benchmark.main()
    assert capsys.readouterr().out.endswith("after 20 trials: mean 0.65, least 0.60, 2 tasks\n")


def test_a_task_without_effects_has_none(benchmark: Any) -> None:
    space = whole_space()
    plain, without = benchmark.PlantedTruth(space, 5), benchmark.WithoutEffects(space, 5)
    assert plain._effect("ffn", "insertion", "parallel") != 0
    assert without._effect("ffn", "insertion", "parallel") == 0
    assert without._effect("ffn", "form", "lowrank") == plain._effect("ffn", "form", "lowrank")


@pytest.mark.slow
def test_intervals_hold_the_planted_truth(benchmark: Any) -> None:
    """Four tasks of 60 trials, 256 contrasts; the whole benchmark has 200 tasks."""
    space, asked = whole_space(), benchmark.Asked()
    found = []
    for seed in range(4):
        knowledge, truth = benchmark.studied("random + repairs", space, seed, 60)
        found += list(benchmark.checked("random + repairs", knowledge, truth, asked))
    assert len(found) > 200
    assert 0.8 < sum(one.is_covered for one in found) / len(found) <= 1.0
    assert sum(one.is_resolved for one in found if one.is_null) <= 0.1 * sum(one.is_null for one in found)
    said = [one for one in found if one.is_resolved and not one.is_null]
    assert said
    assert sum(not one.has_sign for one in said) <= 0.05 * len(said)
    # a posterior that is too sure of itself is noticed
    assert sum(replace(one, reach=one.reach / 4).is_covered for one in found) / len(found) < 0.6
