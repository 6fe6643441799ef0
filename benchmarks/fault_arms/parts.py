"""Processes of a launch that are killed or hang, and signals to all or some of them."""

import os
import signal
import time
from contextlib import suppress
from functools import partial

from support.killed_study import LaunchedStudy, actors, finish, wait_for, wait_for_ends
from support.ray_parts import driver, freeze, left, live_processes, named

from fault_arms.bench import BEFORE, Bench, Case, Outcome, count_training, fault_outcome, seconds_to_end, wrong_error

_TRIALS = {"ray": 70, "inline": 42}
_LEASE, _KILLS = "8", 10
_SIGNALS = {"SIGINT": "interrupted by Ctrl-C", "SIGTERM": "stopped by SIGTERM"}


def _lost(bench: Bench, *, part: str) -> Outcome:
    """Kill an essential process of Ray again and again; each launch must end with an error, the next must continue."""
    study, seconds, problems = bench.study("sqlite", "ray", _KILLS * _TRIALS["ray"] // 4, lease=_LEASE), [], []
    for _ in range(_KILLS):
        process = study.launch()
        wait_for_ends(study, process, BEFORE)
        started = live_processes(process)
        count_training(study)
        os.kill(named(process, part), signal.SIGKILL)
        seconds.append(seconds_to_end(process))
        problems += wrong_error(study, "Ray stopped", "Nothing is lost: launch again to continue.")
        problems += [f"process {pid} is left" for pid in left(started)]
    finish(study)
    return fault_outcome(study, seconds, problems)


def _hung(bench: Bench, *, part: str) -> Outcome:
    """Stop a worker or the keeper; the same launch must replace it."""
    study = bench.launched_study("sqlite", "ray", _TRIALS["ray"], lease=_LEASE)
    process = study.launches[-1]
    began_at = time.monotonic()
    frozen = freeze(actors(process, part, study)[0])
    wait_for(lambda: not left([frozen]), process, study)
    wait_for_ends(study, process)
    seconds = time.monotonic() - began_at
    finish(study, process)
    return fault_outcome(study, [seconds])


def _hung_then_stopped(bench: Bench, *, part: str) -> Outcome:
    """Stop a process and send SIGTERM; the launch must end."""
    study = bench.launched_study("sqlite", "ray", _TRIALS["ray"], lease=_LEASE)
    process, started = study.launches[-1], live_processes(study.launches[-1])
    freeze(driver(process) if part == "driver" else actors(process, part, study)[0])
    return _ended(study, started, [process.pid], "SIGTERM")


def _signalled(bench: Bench, *, backend: str, name: str, to_all: bool) -> Outcome:
    """Send a signal to the launch alone or to all of its processes."""
    study = bench.launched_study("sqlite", backend, _TRIALS[backend])
    process, started = study.launches[-1], live_processes(study.launches[-1])
    return _ended(study, started, [process.pid, *(started if to_all else ())], name)


def _ended(study: LaunchedStudy, started: list[int], pids: list[int], name: str) -> Outcome:
    """Send a signal; the launch must end, leave no process, and be continued by the next one."""
    process = study.launches[-1]
    for pid in pids:
        with suppress(ProcessLookupError):  # it has ended with another one
            os.kill(pid, signal.Signals[name])
    seconds = seconds_to_end(process)
    output, code = study.log(), process.poll()
    problems = [f"process {pid} is left" for pid in left(started)]
    if name in _SIGNALS and (code != 0 or _SIGNALS[name] not in output or "Traceback" in output):
        problems.append(f"{name} ended the launch with {code}: {output[-200:]!r}")
    finish(study)
    return fault_outcome(study, [seconds], problems)


LOST = tuple(Case(f"{part} killed, ray, sqlite", partial(_lost, part=part)) for part in ("raylet", "gcs_server"))
HUNG = (
    *(Case(f"{part} stopped, ray, sqlite", partial(_hung, part=part)) for part in ("worker", "keeper")),
    Case("driver stopped, then SIGTERM, ray, sqlite", partial(_hung_then_stopped, part="driver")),
    Case("worker stopped, then SIGTERM, ray, sqlite", partial(_hung_then_stopped, part="worker")),
)
SIGNALS = tuple(
    Case(
        f"{name} to {'all processes' if to_all else 'the launch'}, {backend}, sqlite",
        partial(_signalled, backend=backend, name=name, to_all=to_all),
    )
    for backend, to_all in (("inline", False), ("ray", True))
    for name in (*_SIGNALS, "SIGHUP")
)
