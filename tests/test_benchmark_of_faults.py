"""The benchmarks of faults and of damage: what they count and print, and a small share of what they try."""

from dataclasses import replace
from pathlib import Path

import pytest
from support import bounded_inputs, rotation

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "ledger-and-crashes.md"
SHARE = {"files": 60, "lines": 20, "exports": 15, "snapshots": 15, "databases": 10}


def test_fault_scenarios_and_results_page_agree(load):
    matrix = load("faults").scenarios(9)
    assert [one.name for one in matrix] == [f"F{number}" for number in range(1, 23)]
    for one in matrix:
        assert bool(one.cases) != bool(one.lacks), one.name
        assert len({case.name for case in one.cases}) == len(one.cases)
        assert f"\n| {one.name} |" in PAGE.read_text()


def test_table_has_losses_and_missing_resources(load):
    faults, bench = load("faults"), load("fault_arms.bench")
    case = bench.Case("a case", lambda _: bench.Outcome())
    matrix = [bench.Scenario("F1", "killed", (case,)), bench.Scenario("F21", "memory", (), lacks="a GPU")]
    outcome = bench.Outcome(
        scenario="F1", case="a case", times=3, training=2, lost=1, steps=200, repeated=10, seconds=(1.0, 2.0, 6.0)
    )
    found = {("F1", "a case"): replace(outcome, violations=("it broke",))}
    lines = [line.split() for line in faults.table(matrix, found)]
    assert lines[1] == ["F1", "killed", "3", "2", "1", "0", "1", "5.0%", "2.0", "6.0"]
    assert lines[2] == ["!", "a", "case:", "it", "broke"]
    assert lines[3] == ["F21", "memory", "needs", "a", "GPU"]
    assert not outcome.is_held
    assert replace(outcome, lost=0).is_held


@pytest.mark.slow
def test_studies_survive_a_fault_of_the_benchmark(load):
    faults = load("faults")
    scenario = next(one for one in faults.scenarios(9) if one.name == "F13")
    for case in rotation.parts(scenario.cases):
        outcome = faults.run_case(scenario, case)
        assert outcome.is_held, outcome
        assert outcome.times >= 1


@pytest.mark.parametrize("kind", SHARE)
def test_damage_at_random_ends_in_words(kind, load, tmp_path, monkeypatch, capsys):
    fuzz = load("fuzz")
    monkeypatch.chdir(tmp_path)
    make, _ = fuzz.KINDS[kind]
    case = make(tmp_path)
    capsys.readouterr()
    for number in range(SHARE[kind]):
        seed = f"{rotation.seed()}/{kind}/{number}"
        assert fuzz.problem(case, seed) == "", f"seed {rotation.seed()}, case {number}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["number of 4,301 digits", "query beyond its timeout", "Ctrl-C in a query"])
def test_bounded_input_ends_in_one_line(name):
    found = bounded_inputs.outcome_of(name)
    assert (found.code, found.has_traceback) == (130 if name.startswith("Ctrl-C") else 2, False)
    assert found.last_line.startswith("deltaspace: ")
    assert 20 < found.megabytes < 500
