"""Parts of a launch that are lost or hang, and signals to all or some of them."""

import os
import signal
import time
from contextlib import suppress
from functools import partial

from support.killed_study import Study, actors, finish, wait_for, wait_for_ends
from support.ray_parts import driver, everybody, freeze, left, named

from fault_arms.bench import Bench, Case, Outcome, met, not_refused, seconds_to_end

_TRIALS = {"ray": 70, "inline": 42}
_LEASE = "8"
_SIGNALS = {"SIGINT": "interrupted by Ctrl-C", "SIGTERM": "told to stop by SIGTERM"}


def _lost(bench: Bench, *, part: str) -> Outcome:
    """A part of Ray without which nothing goes on: the launch ends with a line, and the next one goes on."""
    study = bench.begun("sqlite", "ray", _TRIALS["ray"], lease=_LEASE)
    process, started = study.launches[-1], everybody(study.launches[-1])
    os.kill(named(process, part), signal.SIGKILL)
    seconds = seconds_to_end(process)
    wrong = not_refused(study, "Ray must ", "Nothing is lost: launch again to continue.")
    wrong += [f"process {pid} is left" for pid in left(started)]
    finish(study)
    return met(study, [seconds], wrong)


def _hung(bench: Bench, *, part: str) -> Outcome:
    """A worker or a keeper that hangs is replaced within the same launch."""
    study = bench.begun("sqlite", "ray", _TRIALS["ray"], lease=_LEASE)
    process = study.launches[-1]
    began_at = time.monotonic()
    frozen = freeze(actors(process, part, study)[0])
    wait_for(lambda: not left([frozen]), process, study)
    wait_for_ends(study, process)
    seconds = time.monotonic() - began_at
    finish(study, process)
    return met(study, [seconds])


def _hung_and_told(bench: Bench, *, part: str) -> Outcome:
    """A launch of which a part hangs ends all the same when it is told to."""
    study = bench.begun("sqlite", "ray", _TRIALS["ray"], lease=_LEASE)
    process, started = study.launches[-1], everybody(study.launches[-1])
    freeze(driver(process) if part == "driver" else actors(process, part, study)[0])
    return _ended(study, started, [process.pid], "SIGTERM")


def _told(bench: Bench, *, backend: str, name: str, everyone: bool) -> Outcome:
    """A signal to the launch alone, or to all of its processes at once."""
    study = bench.begun("sqlite", backend, _TRIALS[backend])
    process, started = study.launches[-1], everybody(study.launches[-1])
    return _ended(study, started, [process.pid, *(started if everyone else ())], name)


def _ended(study: Study, started: list[int], pids: list[int], name: str) -> Outcome:
    """Send a signal and see that the launch ends as it must, leaves nothing, and is continued."""
    process = study.launches[-1]
    for pid in pids:
        with suppress(ProcessLookupError):  # it has ended with one that was told before
            os.kill(pid, signal.Signals[name])
    seconds = seconds_to_end(process)
    said, code = study.said(), process.poll()
    wrong = [f"process {pid} is left" for pid in left(started)]
    if name in _SIGNALS and (code != 0 or _SIGNALS[name] not in said or "Traceback" in said):
        wrong.append(f"{name} ended the launch with {code}: {said[-200:]!r}")
    finish(study)
    return met(study, [seconds], wrong)


LOST = tuple(Case(f"{part} killed, ray, sqlite", partial(_lost, part=part)) for part in ("raylet", "gcs_server"))
HUNG = (
    *(Case(f"{part} stopped, ray, sqlite", partial(_hung, part=part)) for part in ("worker", "keeper")),
    Case("driver stopped, then SIGTERM, ray, sqlite", partial(_hung_and_told, part="driver")),
    Case("worker stopped, then SIGTERM, ray, sqlite", partial(_hung_and_told, part="worker")),
)
SIGNALS = tuple(
    Case(
        f"{name} to {'all processes' if everyone else 'the launch'}, {backend}, sqlite",
        partial(_told, backend=backend, name=name, everyone=everyone),
    )
    for backend, everyone in (("inline", False), ("ray", True))
    for name in (*_SIGNALS, "SIGHUP")
)
