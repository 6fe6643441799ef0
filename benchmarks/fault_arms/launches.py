"""Launches of one study that meet, study files and weights that were changed, and clocks that are set."""

import os
import signal
import time
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from support.killed_study import Study, finish, wait_for_ends
from support.ray_parts import freeze

from fault_arms.bench import BEFORE, Bench, Case, Outcome, kill_launch, met, not_refused, seconds_to_end
from studies.ledger.invariants import lost_weights
from studies.ledger.ledger import Ledger

_TRIALS = {"inline": 60, "ray": 28}
_DAY_SECONDS = 86_400


def _refused(bench: Bench, *, database: str, backend: str) -> Outcome:
    """A second launch is refused, and the first one goes on."""
    brake = bench.folder / "brake"  # while it is there, the study does not come to its end
    study = bench.begun(database, backend, _TRIALS[backend], brake=str(brake))
    brake.touch()
    seconds = seconds_to_end(study.launch())
    wrong = not_refused(study, "is run by ")
    brake.unlink()
    finish(study, study.launches.pop(0))
    return met(study, [seconds], wrong)


def _taken_over(bench: Bench, *, database: str, backend: str) -> Outcome:
    """A second launch takes over: the first one is fenced, and ends with a line."""
    brake = bench.folder / "brake"
    study = bench.begun(database, backend, _TRIALS[backend], brake=str(brake))
    brake.touch()
    second = study.launch(if_running="take over")
    seconds = seconds_to_end(study.launches[0])
    wrong = not_refused(study, "was taken over by keeper 2", launch=0)
    brake.unlink()
    finish(study, second)
    return met(study, [seconds], wrong)


def _woken(bench: Bench, *, database: str) -> Outcome:
    """A launch that stood still while another one took its study over writes nothing when it wakes up."""
    study = bench.begun(database, "inline", _TRIALS["inline"], lease="3")
    first = study.launches[0]
    freeze(first.pid)
    second = study.launch(if_running="take over")
    wait_for_ends(study, second, 2 * BEFORE)
    os.kill(first.pid, signal.SIGCONT)
    seconds = seconds_to_end(first)
    wrong = not_refused(study, "was taken over by keeper 2", launch=0)
    finish(study, second)
    return met(study, [seconds], wrong)


def _together(bench: Bench, *, database: str) -> Outcome:
    """Launches that begin at the same moment, before there is a database: one runs, the others are refused."""
    study = bench.study(database, "inline", _TRIALS["inline"])
    began_at = time.monotonic()
    launches = [study.launch() for _ in range(4)]
    while sum(one.poll() is not None for one in launches) < len(launches) - 1:
        time.sleep(0.05)
    seconds = time.monotonic() - began_at
    running = [number for number, one in enumerate(launches) if one.poll() in (None, 0)]
    wrong = [f"{len(running)} of {len(launches)} launches run"] if len(running) != 1 else []
    for number in range(len(launches)):
        if number not in running:
            wrong += not_refused(study, "is run by ", launch=number)
    study.launches = [launches[number] for number in running]
    for number in running:
        launches[number].wait()
    if not running or launches[running[0]].poll() != 0:
        wrong.append("the launch that was not refused did not finish")
    return met(study, [seconds], wrong, times=len(launches) - 1)


def _changed(bench: Bench) -> Outcome:
    """A study file that was changed is refused with what differs, and nothing is written."""
    study = bench.begun("sqlite", "inline", _TRIALS["inline"])
    kill_launch(study)
    before, wrong, seconds = study.recorded(), [], []
    for name, value, differs in (("sampler", "random", "search.sampler"), ("replicates", "2", "search.replicates")):
        seconds.append(seconds_to_end(study.launch(**{name: value})))
        said = study.said()
        if study.launches[-1].poll() != 1 or "StudyChangedError" not in said or differs not in said:
            wrong.append(f"a changed {name} must be refused; it said {said[-200:]!r}")
    if study.recorded() != before:
        wrong.append("a launch that was refused has written")
    finish(study)
    return met(study, seconds, wrong)


def _weights(bench: Bench) -> Outcome:
    """Weights of complete trials that are gone or changed are noticed, each of them, and nothing else is."""
    study = bench.study("sqlite", "inline", _TRIALS["inline"])
    finish(study)
    with Ledger.open(study.url, read_only=True) as ledger:
        record = ledger.study(study.name)
        deltas = [one for one in ledger.artefacts(record.id) if one.kind == "delta"][:2]
        outcome = met(study, [])
        for artefact, content in zip(deltas, (None, b"{}"), strict=True):
            path = Path(artefact.path)
            path.unlink()
            if content is not None:
                path.write_bytes(content)
        noticed = [artefact.trial for artefact in lost_weights(ledger, record)]
    wrong = [] if noticed == [one.trial for one in deltas] else [f"weights of {len(deltas)}; noticed: {noticed}"]
    return replace(outcome, violations=(*outcome.violations, *wrong), times=len(deltas))


def _clock(bench: Bench, *, database: str) -> Outcome:
    """The wall clock is set forth and back, while launches run and between them: nothing ends before it began."""
    study = bench.study(database, "inline", _TRIALS["inline"])
    process, seconds = study.launch(clock=str(_DAY_SECONDS)), []
    for by in (-_DAY_SECONDS, 2 * _DAY_SECONDS, -3 * _DAY_SECONDS):
        wait_for_ends(study, process, BEFORE)
        process.kill()
        process.wait()
        killed_at = time.monotonic()
        process = study.launch(clock=str(by), if_running="take over")
        wait_for_ends(study, process)
        seconds.append(time.monotonic() - killed_at)
    finish(study, process)
    return met(study, seconds, _negative_times(study))


def _negative_times(study: Study) -> list[str]:
    """Whatever has ended before it began, and events that are not in their order."""
    with Ledger.open(study.url, read_only=True) as ledger:
        record = ledger.study(study.name)
        spans: list[tuple[str, datetime, datetime | None]] = [
            (f"trial {one.number}", one.created_at, one.ended_at) for one in ledger.trials(record.id)
        ]
        attempts = ledger.attempts(record.id)
        spans += [(f"attempt {one.attempt} of trial {one.trial}", one.started_at, one.ended_at) for one in attempts]
        times = [event.at for event in ledger.events(record.id)]
    wrong = [f"{what} ended before it began" for what, begun, ended in spans if ended is None or ended < begun]
    return wrong if times == sorted(times) else [*wrong, "events are not in their order"]


_BOTH = ("sqlite", "postgres")
TWO = (
    Case("refused, inline, sqlite", partial(_refused, database="sqlite", backend="inline")),
    Case("refused, ray, sqlite", partial(_refused, database="sqlite", backend="ray")),
    *(Case(f"taken over, inline, {one}", partial(_taken_over, database=one, backend="inline")) for one in _BOTH),
    Case("taken over, ray, postgres", partial(_taken_over, database="postgres", backend="ray")),
    *(Case(f"woken up later, inline, {one}", partial(_woken, database=one)) for one in _BOTH),
    *(Case(f"four at once, inline, {one}", partial(_together, database=one)) for one in _BOTH),
)
CHANGED = (Case("study file, inline, sqlite", _changed), Case("weights, inline, sqlite", _weights))
CLOCKS = tuple(Case(f"clock, inline, {one}", partial(_clock, database=one)) for one in _BOTH)
