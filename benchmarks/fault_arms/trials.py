"""Faults of one trial and damage to its files."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from support.killed_study import LaunchedStudy, finish, wait_for, wait_for_ends

from fault_arms.bench import Bench, Case, Outcome, failed_alone, fault_outcome, kill_launch, seconds_to_end, wrong_error
from studies.ledger.ledger import Ledger

_TRIALS = {"inline": 24, "ray": 14}
_FAULTY = 3
_GROUPS, _ROOM_BYTES = Path("/sys/fs/cgroup/memory"), {"inline": 900_000_000, "ray": 3_500_000_000}
_KILLS = 3


def _diverging(bench: Bench, *, backend: str) -> Outcome:
    """Let the loss of a trial be NaN; it alone must fail, at once."""
    study = bench.study("sqlite", backend, _TRIALS[backend], diverging=str(_FAULTY))
    finish(study)
    return fault_outcome(study, [], failed_alone(study, _FAULTY, "the loss is nan"), times=1)


def _raising(bench: Bench, *, backend: str) -> Outcome:
    """Let a trial run out of memory; it alone must fail, after three attempts."""
    study = bench.study("sqlite", backend, _TRIALS[backend], raising=str(_FAULTY))
    finish(study)
    study.in_training = _KILLS  # the trial raises in a step
    problems = failed_alone(study, _FAULTY, "lost 3 times in a row")
    return fault_outcome(study, [], problems, times=_KILLS, given_up=1)


def _deadly(bench: Bench, *, backend: str) -> Outcome:
    """Let a trial kill its process; it alone must fail, after three attempts."""
    study, seconds = bench.study("sqlite", backend, _TRIALS[backend], deadly=str(_FAULTY)), []
    process = study.launch()
    while backend == "inline" and len(seconds) < _KILLS:
        process.wait(300)
        killed_at = time.monotonic()
        process = study.launch()
        wait_for(study.log, process, study)
        seconds.append(time.monotonic() - killed_at)
    finish(study, process)
    study.in_training = _KILLS  # the trial ends its process itself
    problems = failed_alone(study, _FAULTY, "lost 3 times in a row")
    return fault_outcome(study, seconds, problems, times=_KILLS, given_up=1)


def _killed_by_kernel(bench: Bench, *, backend: str) -> Outcome:
    """Let the kernel kill the process of a trial in a small control group; it alone must fail."""
    (group := _GROUPS / bench.folder.name).mkdir()
    began_at = time.monotonic()
    (group / "memory.limit_in_bytes").write_text(str(_ROOM_BYTES[backend]))
    study = bench.study("sqlite", backend, _TRIALS[backend], leaks_memory=str(_FAULTY))
    while not study.launches or study.launches[-1].poll():
        (group / "cgroup.procs").write_text(str(study.launch().pid))
        study.launches[-1].wait(300)
    study.in_training = killed = int((group / "memory.oom_control").read_text().split()[-1])
    problems = failed_alone(study, _FAULTY, "lost 3 times in a row")
    problems += [] if killed >= _KILLS else [f"the kernel must kill {_KILLS} processes; got {killed}"]
    return fault_outcome(study, [time.monotonic() - began_at], problems, times=killed, given_up=1)


def _read_only(bench: Bench, *, backend: str) -> Outcome:
    """Make the folder of snapshots read-only; the launch must end with an error, the next one must continue."""
    folder = str(bench.folder / "artefacts")
    Path(folder).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    try:
        study = bench.launched_study("sqlite", backend, 2 * _TRIALS[backend])
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        seconds = seconds_to_end(study.launches[-1])
        problems = wrong_error(study, "cannot write a snapshot", "Read-only file system")
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
        finish(study)
        return fault_outcome(study, [seconds], problems)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _flip(file: Path, _: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _replace_by_folder(file: Path, _: Path) -> None:
    file.unlink()
    (file / "inside").mkdir(parents=True)


def _replace_by_pipe(file: Path, _: Path) -> None:
    file.unlink()
    os.mkfifo(file)


DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "empty": lambda file, _: file.write_bytes(b""),
    "cut": lambda file, _: os.truncate(file, file.stat().st_size // 2),
    "flipped": _flip,
    "of another": lambda file, other: shutil.copy(other, file),
    "deleted": lambda file, _: file.unlink(),
    "folder instead": _replace_by_folder,
    "pipe instead": _replace_by_pipe,
}


def _snapshots(study: LaunchedStudy) -> list[list[Path]]:
    """Return the snapshots of each open trial, the newest last."""
    with Ledger.open(study.url, read_only=True) as ledger:
        record = ledger.study(study.name)
        open_trials = [trial.number for trial in ledger.trials(record.id) if not trial.state.is_terminal]
        by_trial = [ledger.artefacts(record.id, number) for number in open_trials]
    ordered = [sorted(artefacts, key=lambda artefact: artefact.step) for artefacts in by_trial]
    return [[Path(artefact.path) for artefact in artefacts] for artefacts in ordered if artefacts]


def _foreign_file(bench: Bench, open_trials: list[list[Path]]) -> Path:
    """Copy a file that belongs to no open trial."""
    used = {file for files in open_trials for file in files}
    files = sorted(set((bench.folder / "artefacts").glob("trivial/trial-*/*/*")) - used)
    return Path(shutil.copy(files[0], bench.folder / "another"))


def _damaged(bench: Bench, *, damage: Callable[[Path, Path], object], which: int) -> Outcome:
    """Kill a launch and damage the newest snapshot of each trial, or all; the study must continue."""
    study, seconds, times = bench.study("sqlite", "inline", 3 * _TRIALS["inline"]), [], 0
    process = study.launch()
    for _ in range(_KILLS):
        wait_for_ends(study, process, 4)
        wait_for(lambda: _snapshots(study), process, study)
        kill_launch(study)
        open_trials = _snapshots(study)
        other = _foreign_file(bench, open_trials)
        for snapshots in open_trials:
            for file in snapshots[-which:]:
                damage(file, other)
                times += 1
        killed_at = time.monotonic()
        process = study.launch()
        wait_for_ends(study, process)
        seconds.append(time.monotonic() - killed_at)
    finish(study, process)
    for folder in (bench.folder / "artefacts").glob("trivial/trial-*/attempt-*/*/inside"):
        shutil.rmtree(folder.parent)  # the study does not delete foreign folders
    return fault_outcome(study, seconds, [] if times else ["there was no snapshot to damage"], times=times)


_BACKENDS = ("inline", "ray")
DIVERGING = tuple(Case(f"NaN, {one}, sqlite", partial(_diverging, backend=one)) for one in _BACKENDS)
MEMORY = (
    *(Case(f"in a trial, {one}, sqlite", partial(_raising, backend=one)) for one in _BACKENDS),
    *(Case(f"of a trial's process, {one}, sqlite", partial(_deadly, backend=one)) for one in _BACKENDS),
    *(Case(f"ended by the kernel, {one}, sqlite", partial(_killed_by_kernel, backend=one)) for one in _BACKENDS),
)
READ_ONLY = tuple(Case(f"read-only, {one}, sqlite", partial(_read_only, backend=one)) for one in _BACKENDS)
SNAPSHOTS = tuple(
    Case(f"{name}, {'all' if which else 'the newest'}, inline, sqlite", partial(_damaged, damage=damage, which=which))
    for name, damage in DAMAGES.items()
    for which in (1, 0)
)
