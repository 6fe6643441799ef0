"""Faults: studies of trivial trials lose processes, databases and files, and what became of them is counted.

    python benchmarks/faults.py                       all of it; about two hours on two cores, most of it waiting
    python benchmarks/faults.py --scenario F1 F2      some of it
    python benchmarks/faults.py --kills 2             so many kills of each kind of study; without Ray 5 times as many
    python benchmarks/faults.py --results FILE        continues what the file holds, and adds to it
    python benchmarks/faults.py --nodes 2             studies with Ray, on two nodes of this machine
    python benchmarks/faults.py --list                what there is

Scenarios are those of docs/explanation/ledger-and-crashes.md. A trial is lost that has no end, or that failed because
it was lost; it is there twice when its configuration, its number or its end is. Violations are what
`deltaspace verify` finds, files that belong to nobody, scores that an undisturbed trial would not have, and launches
that end in another way than they must. Seconds are from the fault until the next trial ended, or, where the launch must
end, until it had.
"""

import argparse
import json
import os
import statistics
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
for folder in (ROOT / "tests", ROOT, ROOT / "benchmarks"):
    sys.path.insert(0, str(folder))

from fault_arms import databases, launches, nodes, parts, trials  # noqa: E402
from fault_arms.bench import Case, Outcome, Scenario, new_bench  # noqa: E402
from fault_arms.kills import KEEPERS, LAUNCHES, WORKERS, kill_cases  # noqa: E402

KILLS = 9
_OWN_RAY = ("F4", "F19", "F21")
"""Scenarios that end a Ray of their own, or give it a disk."""


def scenarios(kills: int) -> tuple[Scenario, ...]:
    """The matrix."""
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
    )


def _elsewhere(scenario: Scenario) -> tuple[Case, ...]:
    """Cases that nodes can run which outlive them; whom the kernel ends is in a control group of the launch."""
    return tuple(one for one in scenario.cases if "ray" in one.name.split(", ") and "kernel" not in one.name)


def run_case(scenario: Scenario, case: Case) -> Outcome:
    """What became of one case; whatever it raises is a violation."""
    try:
        with new_bench() as bench:
            found = case.run(bench)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not be
        traceback.print_exc(limit=-3)
        told = " ".join(str(error).split())
        found = Outcome(times=1, violations=(f"{type(error).__name__}: {told[-300:]}",))
    return replace(found, scenario=scenario.name, case=case.name)


def read_results(file: Path | None) -> dict[tuple[str, str], Outcome]:
    """What earlier runs have found."""
    if file is None or not file.exists():
        return {}
    read = [json.loads(line) for line in file.read_text().splitlines() if line]
    tuples = ("violations", "seconds")
    found = [Outcome(**{key: tuple(it) if key in tuples else it for key, it in one.items()}) for one in read]
    return {(one.scenario, one.case): one for one in found}


def table(matrix: Sequence[Scenario], found: dict[tuple[str, str], Outcome]) -> Iterator[str]:
    """One line a scenario, and its violations below it."""
    yield f"{'':4} {'fault':<42} times lost twice broken repeated seconds max"
    for one in matrix:
        outcomes = [found[one.name, case.name] for case in one.cases if (one.name, case.name) in found]
        if outcomes:
            yield _line(one, outcomes)
        elif one.lacks:
            yield f"{one.name:4} {one.what:<42} needs {one.lacks}"
        yield from (f"       ! {o.case}: {problem}" for o in outcomes for problem in o.violations)


def _line(scenario: Scenario, run: Sequence[Outcome]) -> str:
    steps, repeated = sum(o.steps for o in run), sum(o.repeated for o in run)
    share = f"{repeated / steps:.1%}" if steps else "-"
    seconds = [second for o in run for second in o.seconds]
    spent = f"{statistics.median(seconds):7.1f} {max(seconds):.1f}" if seconds else "      -"
    times, lost, twice = (sum(getattr(o, name) for o in run) for name in ("times", "lost", "twice"))
    broken = sum(len(o.violations) for o in run)
    return f"{scenario.name:4} {scenario.what:<42} {times:5} {lost:4} {twice:5} {broken:6} {share:>8} {spent}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", nargs="*", default=[], metavar="F", help="only these")
    parser.add_argument(
        "--kills", type=int, default=KILLS, help=f"of each kind of study in F1, F2 and F3 (default {KILLS})"
    )
    parser.add_argument("--results", type=Path, help="continue what it holds, and add to it")
    parser.add_argument("--nodes", type=int, default=0, help="studies with Ray alone, on so many nodes that are there")
    parser.add_argument("--list", action="store_true", help="what there is")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    matrix = [one for one in scenarios(given.kills) if not given.scenario or one.name in given.scenario]
    if given.nodes:
        matrix = [replace(one, cases=_elsewhere(one)) for one in matrix if one.name not in _OWN_RAY]
    if given.list:
        for one in matrix:
            print(f"{one.name:4} {one.what}: {f'needs {one.lacks}' if one.lacks else f'{len(one.cases)} cases'}")
        return 0
    found = read_results(given.results)
    left = [(one, case) for one in matrix for case in one.cases if (one.name, case.name) not in found]
    with nodes.shared_cluster(given.nodes if left else 0):
        for one, case in left:
            outcome = found[one.name, case.name] = run_case(one, case)
            said = "held" if outcome.is_held else "BROKEN"
            print(f"{one.name} {case.name}: {said}", file=sys.stderr, flush=True)
            if given.results is not None:
                with given.results.open("a") as file:
                    file.write(json.dumps(outcome.as_json()) + "\n")
    print("\n".join(table(matrix, found)))
    shown = [found[one.name, case.name] for one in matrix for case in one.cases]
    return 0 if all(outcome.is_held for outcome in shown) else 1


if __name__ == "__main__":
    sys.exit(main())
