"""Concurrent launches of a study, changed study files and weights, and changed clocks."""

import os
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from support.killed_study import LaunchedStudy, finish, wait_for_ends
from support.ray_parts import freeze

from fault_arms.bench import BEFORE, Bench, Case, Outcome, fault_outcome, kill_launch, seconds_to_end, wrong_error
from studies.ledger.invariants import lost_weights
from studies.ledger.ledger import Ledger

_TRIALS = {"inline": 60, "ray": 28}
_DAY_SECONDS = 86_400


def _refused(bench: Bench, *, database: str, backend: str) -> Outcome:
    """Launch a second time; the second launch must be refused, the first one must continue."""
    brake = bench.folder / "brake"  # while the file exists, the study does not end
    study = bench.launched_study(database, backend, _TRIALS[backend], brake=str(brake))
    brake.touch()
    seconds = seconds_to_end(study.launch())
    problems = wrong_error(study, "is run by ")
    brake.unlink()
    finish(study, study.launches.pop(0))
    return fault_outcome(study, [seconds], problems)


def _taken_over(bench: Bench, *, database: str, backend: str) -> Outcome:
    """Take over by a second launch; the first one must be fenced and end with an error."""
    brake = bench.folder / "brake"
    study = bench.launched_study(database, backend, _TRIALS[backend], brake=str(brake))
    brake.touch()
    second = study.launch(if_running="take over")
    seconds = seconds_to_end(study.launches[0])
    problems = wrong_error(study, "was taken over by keeper 2", launch=0)
    brake.unlink()
    finish(study, second)
    return fault_outcome(study, [seconds], problems)


def _resumed(bench: Bench, *, database: str) -> Outcome:
    """Stop a launch during a takeover and resume it; it must write nothing."""
    study = bench.launched_study(database, "inline", _TRIALS["inline"], lease="3")
    first = study.launches[0]
    freeze(first.pid)
    second = study.launch(if_running="take over")
    wait_for_ends(study, second, 2 * BEFORE)
    os.kill(first.pid, signal.SIGCONT)
    seconds = seconds_to_end(first)
    problems = wrong_error(study, "was taken over by keeper 2", launch=0)
    finish(study, second)
    return fault_outcome(study, [seconds], problems)


def _together(bench: Bench, *, database: str) -> Outcome:
    """Start launches at the same time without a database; one must run, the others must be refused."""
    study = bench.study(database, "inline", _TRIALS["inline"])
    began_at = time.monotonic()
    launches = [study.launch() for _ in range(4)]
    while sum(launch.poll() is not None for launch in launches) < len(launches) - 1:
        time.sleep(0.05)
    seconds = time.monotonic() - began_at
    running = [number for number, launch in enumerate(launches) if launch.poll() in (None, 0)]
    problems = [f"{len(running)} of {len(launches)} launches run"] if len(running) != 1 else []
    for number in range(len(launches)):
        if number not in running:
            problems += wrong_error(study, "is run by ", launch=number)
    study.launches = [launches[number] for number in running]
    for number in running:
        launches[number].wait()
    if not running or launches[running[0]].poll() != 0:
        problems.append("the launch that was not refused did not finish")
    return fault_outcome(study, [seconds], problems, times=len(launches) - 1)


def _changed(bench: Bench) -> Outcome:
    """Change the study file; the launch must be refused with the difference and write nothing."""
    study = bench.launched_study("sqlite", "inline", _TRIALS["inline"])
    kill_launch(study)
    before, problems, seconds = study.recorded(), [], []
    for name, value, differs in (("sampler", "random", "search.sampler"), ("replicates", "2", "search.replicates")):
        seconds.append(seconds_to_end(study.launch(**{name: value})))
        output = study.log()
        if study.launches[-1].poll() != 1 or "StudyChangedError" not in output or differs not in output:
            problems.append(f"a changed {name} must be refused; got {output[-200:]!r}")
    if study.recorded() != before:
        problems.append("a refused launch has written")
    finish(study)
    return fault_outcome(study, seconds, problems)


def _weights(bench: Bench) -> Outcome:
    """Delete or change weights of complete trials; exactly these must be found."""
    study = bench.study("sqlite", "inline", _TRIALS["inline"])
    finish(study)
    with Ledger.open(study.url, read_only=True) as ledger:
        record = ledger.study(study.name)
        deltas = [one for one in ledger.artefacts(record.id) if one.kind == "delta"][:2]
        outcome = fault_outcome(study, [])
        for artefact, content in zip(deltas, (None, b"{}"), strict=True):
            path = Path(artefact.path)
            path.unlink()
            if content is not None:
                path.write_bytes(content)
        lost = [artefact.trial for artefact in lost_weights(ledger, record)]
    expected = [artefact.trial for artefact in deltas]
    problems = [] if lost == expected else [f"lost weights must be those of trials {expected}; got {lost}"]
    return replace(outcome, violations=(*outcome.violations, *problems), times=len(deltas))


def _clock(bench: Bench, *, database: str) -> Outcome:
    """Move the wall clock between launches; nothing must end before it begins."""
    study = bench.study(database, "inline", _TRIALS["inline"])
    process, seconds = study.launch(clock=str(_DAY_SECONDS)), []
    for offset in (-_DAY_SECONDS, 2 * _DAY_SECONDS, -3 * _DAY_SECONDS):
        wait_for_ends(study, process, BEFORE)
        kill_launch(study)
        killed_at = time.monotonic()
        process = study.launch(clock=str(offset), if_running="take over")
        wait_for_ends(study, process)
        seconds.append(time.monotonic() - killed_at)
    finish(study, process)
    return fault_outcome(study, seconds, _negative_times(study))


def _negative_times(study: LaunchedStudy) -> list[str]:
    """Return trials and attempts that ended before they began, and events in a wrong order."""
    with Ledger.open(study.url, read_only=True) as ledger:
        record = ledger.study(study.name)
        spans = [(f"trial {one.number}", one.created_at, one.ended_at) for one in ledger.trials(record.id)]
        attempts = ledger.attempts(record.id)
        spans += [(f"attempt {one.attempt} of trial {one.trial}", one.started_at, one.ended_at) for one in attempts]
        times = [event.at for event in ledger.events(record.id)]
    problems = [f"{title} ended before it began" for title, begin, end in spans if end is None or end < begin]
    return problems if times == sorted(times) else [*problems, "the events are out of order"]


_BOTH = ("sqlite", "postgres")
TWO = (
    Case("refused, inline, sqlite", partial(_refused, database="sqlite", backend="inline")),
    Case("refused, ray, sqlite", partial(_refused, database="sqlite", backend="ray")),
    *(Case(f"taken over, inline, {one}", partial(_taken_over, database=one, backend="inline")) for one in _BOTH),
    Case("taken over, ray, postgres", partial(_taken_over, database="postgres", backend="ray")),
    *(Case(f"woken up later, inline, {one}", partial(_resumed, database=one)) for one in _BOTH),
    *(Case(f"four at once, inline, {one}", partial(_together, database=one)) for one in _BOTH),
)
CHANGED = (Case("study file, inline, sqlite", _changed), Case("weights, inline, sqlite", _weights))
CLOCKS = tuple(Case(f"clock, inline, {one}", partial(_clock, database=one)) for one in _BOTH)
