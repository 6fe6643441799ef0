"""Faults: studies of trivial trials lose processes, databases and files; their losses are counted.

    python benchmarks/faults.py                       all scenarios; about two hours on two cores, mostly waiting.
    python benchmarks/faults.py --scenario F1 F2      some scenarios.
    python benchmarks/faults.py --kills 2             kills of each kind of study; without Ray 5 times as many.
    python benchmarks/faults.py --results FILE        continue the results of a file.
    python benchmarks/faults.py --nodes 2             studies with Ray, on two nodes of this machine.
    python benchmarks/faults.py --list                list the scenarios.

Scenarios are those of docs/explanation/ledger-and-crashes.md. A trial is lost if it has no end or failed as lost. It is
there twice if its configuration, its number or its end is. Violations are findings of `deltaspace verify`, files
without an owner, scores that differ from those of an undisturbed trial, launches with a wrong end, and tracebacks in
their output. Kills in training come after a trial has begun and before it ends. Seconds are from the fault to the end
of the next trial, or to the end of the launch if it must end.
"""

import argparse
import json
import os
import statistics
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
for folder in (ROOT / "tests", ROOT, ROOT / "benchmarks"):
    sys.path.insert(0, str(folder))

from fault_arms import databases, launches, nodes, parts, trials, verbs  # noqa: E402
from fault_arms.bench import Case, Outcome, Scenario, new_bench  # noqa: E402
from fault_arms.kills import KEEPERS, LAUNCHES, WORKERS, kill_cases  # noqa: E402

KILLS = 9
_OWN_RAY = ("F4", "F19", "F21")
"""Scenarios with their own Ray, which they end or give a disk."""


def scenarios(kills: int) -> tuple[Scenario, ...]:
    """Return the scenarios."""
    return (
        Scenario("F1", "launch killed", kill_cases(LAUNCHES, kills)),
        Scenario("F2", "worker killed", kill_cases(WORKERS, kills)),
        Scenario("F3", "keeper killed", kill_cases(KEEPERS, kills)),
        Scenario("F4", "raylet or GCS killed", parts.LOST),
        Scenario("F5", "worker, keeper or driver stopped", parts.HUNG),
        Scenario("F6", "PostgreSQL restarted", databases.RESTARTED),
        Scenario("F7", "PostgreSQL away", databases.AWAY),
        Scenario("F8", "SQLite locked", databases.LOCKED),
        Scenario("F9", "SQLite's disk full", databases.FULL),
        Scenario("F10", "SQLite's file deleted or replaced", databases.GONE),
        Scenario("F11", "NaN in a trial", trials.DIVERGING),
        Scenario("F12", "out of memory in and of a trial", trials.MEMORY),
        Scenario("F13", "snapshots damaged in seven ways", trials.SNAPSHOTS),
        Scenario("F14", "two launches and more", launches.TWO),
        Scenario("F15", "study file or weights changed", launches.CHANGED),
        Scenario("F16", "clock set forth and back", launches.CLOCKS),
        Scenario("F17", "signals", parts.SIGNALS),
        Scenario("F18", "ledger of another release", databases.VERSIONS),
        Scenario("F19", "node lost", nodes.NODES),
        Scenario("F20", "GPU memory of dead workers", (), lacks="a GPU"),
        Scenario("F21", "folder of snapshots turns read-only", trials.READ_ONLY),
        Scenario("F22", "archive and merge killed, with links", verbs.LINKS),
    )


def _shared_cluster_cases(scenario: Scenario) -> tuple[Case, ...]:
    """Return the cases that can run on a shared cluster; kills by the kernel need a control group of the launch."""
    return tuple(case for case in scenario.cases if "ray" in case.name.split(", ") and "kernel" not in case.name)


def run_case(scenario: Scenario, case: Case) -> Outcome:
    """Run a case and return its outcome; an exception is a violation."""
    try:
        with new_bench() as bench:
            outcome = case.run(bench)
    except Exception as error:  # noqa: BLE001 - any exception is a violation
        traceback.print_exc(limit=-3)
        text = " ".join(str(error).split())
        outcome = Outcome(times=1, violations=(f"{type(error).__name__}: {text[-300:]}",))
    return replace(outcome, scenario=scenario.name, case=case.name)


def read_results(file: Path | None) -> dict[tuple[str, str], Outcome]:
    """Return the outcomes of earlier runs."""
    if file is None or not file.exists():
        return {}
    outcomes = [Outcome.from_json(json.loads(line)) for line in file.read_text().splitlines() if line]
    return {(outcome.scenario, outcome.case): outcome for outcome in outcomes}


def table(matrix: Sequence[Scenario], outcomes: dict[tuple[str, str], Outcome]) -> Iterator[str]:
    """Yield a line for each scenario, followed by its violations."""
    yield f"{'':4} {'fault':<42} times training lost twice broken repeated seconds max"
    for scenario in matrix:
        keys = [(scenario.name, case.name) for case in scenario.cases]
        own = [outcomes[key] for key in keys if key in outcomes]
        if own:
            yield _line(scenario.name, scenario.title, own)
        elif scenario.lacks:
            yield f"{scenario.name:4} {scenario.title:<42} needs {scenario.lacks}"
        yield from (f"       ! {outcome.case}: {problem}" for outcome in own for problem in outcome.violations)
    if len(outcomes) > 1:
        yield _line("", "all", [*outcomes.values()])


def _line(name: str, title: str, outcomes: Sequence[Outcome]) -> str:
    names = ("steps", "repeated", "times", "training", "lost", "twice")
    steps, repeated, times, training, lost, twice = (sum(getattr(one, name) for one in outcomes) for name in names)
    share = f"{repeated / steps:.1%}" if steps else "-"
    seconds = [each for outcome in outcomes for each in outcome.seconds]
    duration = f"{statistics.median(seconds):7.1f} {max(seconds):.1f}" if seconds else "      -"
    broken = sum(len(outcome.violations) for outcome in outcomes)
    counts = f"{times:5} {training or '-':>8} {lost:4} {twice:5} {broken:6} {share:>8}"
    return f"{name:4} {title:<42} {counts} {duration}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", nargs="*", default=[], metavar="F", help="scenarios (default: all)")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"kills per kind of study, F1 to F3 (default {KILLS})")
    parser.add_argument("--results", type=Path, help="file of results to continue")
    parser.add_argument("--nodes", type=int, default=0, help="run only studies with Ray, on one cluster of N nodes")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    matrix = [each for each in scenarios(arguments.kills) if not arguments.scenario or each.name in arguments.scenario]
    if arguments.nodes:
        matrix = [replace(each, cases=_shared_cluster_cases(each)) for each in matrix if each.name not in _OWN_RAY]
    if arguments.list:
        for each in matrix:
            print(f"{each.name:4} {each.title}: {f'needs {each.lacks}' if each.lacks else f'{len(each.cases)} cases'}")
        return 0
    outcomes = read_results(arguments.results)
    cases = {(scenario.name, case.name): (scenario, case) for scenario in matrix for case in scenario.cases}
    missing = {key: value for key, value in cases.items() if key not in outcomes}
    with nodes.shared_cluster(arguments.nodes if missing else 0):
        for key, (scenario, case) in missing.items():
            outcome = outcomes[key] = run_case(scenario, case)
            verdict = "held" if outcome.is_held else "BROKEN"
            print(f"{scenario.name} {case.name}: {verdict}", file=sys.stderr, flush=True)
            if arguments.results is not None:
                with arguments.results.open("a") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
    print("\n".join(table(matrix, outcomes)))
    return 0 if all(outcomes[key].is_held for key in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
