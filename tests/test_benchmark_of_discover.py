"""The benchmark of discover: a small seeded version of what it shows."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from support.simulated_search import whole_space

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("discover")


@pytest.mark.slow
def test_shares_rank_as_the_truth_does_and_values_sum_to_the_difference(benchmark: Any) -> None:
    found = [benchmark.seen("random + repairs", 90, 60, whole_space())]
    assert found[0].rank > 0.3
    assert found[0].gap < 1e-9
    lines = benchmark.lines(found, 60)
    assert lines[0].startswith("random + repairs")
    assert f"mean {found[0].rank:.2f}, least {found[0].rank:.2f}, 1 tasks" in lines[0]
