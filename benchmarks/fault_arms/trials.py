"""What one trial, or what it left on disk, does to its study."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from support.killed_study import Study, finish, wait_for, wait_for_ends

from fault_arms.bench import Bench, Case, Outcome, met, not_refused, seconds_to_end
from studies.ledger.ledger import Ledger
from studies.records import TrialState

_TRIALS = {"inline": 24, "ray": 14}
_FAULTY = 3
_GROUPS, _ROOM_BYTES = Path("/sys/fs/cgroup/memory"), {"inline": 900_000_000, "ray": 3_500_000_000}
_KILLS = 3


def _failed_alone(study: Study, reason: str) -> list[str]:
    """What is wrong where one trial alone must have failed, for a reason."""
    failed = [(one.number, one.reason or "") for one in study.recorded() if one.state is TrialState.FAILED]
    is_right = [number for number, _ in failed] == [_FAULTY] and reason in failed[0][1]
    return [] if is_right else [f"trial {_FAULTY} alone must fail with {reason!r}; failed: {failed}"]


def _diverging(bench: Bench, *, backend: str) -> Outcome:
    """A trial that meets what is not finite fails alone, at once."""
    study = bench.study("sqlite", backend, _TRIALS[backend], diverging=str(_FAULTY))
    finish(study)
    return met(study, [], _failed_alone(study, "the loss is nan"), times=1)


def _raising(bench: Bench, *, backend: str) -> Outcome:
    """A trial for which memory does not suffice fails alone, after three tries."""
    study = bench.study("sqlite", backend, _TRIALS[backend], raising=str(_FAULTY))
    finish(study)
    return met(study, [], _failed_alone(study, "lost 3 times in a row"), times=3, given_up=1)


def _deadly(bench: Bench, *, backend: str) -> Outcome:
    """A trial for which the system kills its process fails alone, after three tries."""
    study, seconds = bench.study("sqlite", backend, _TRIALS[backend], deadly=str(_FAULTY)), []
    process = study.launch()
    while backend == "inline" and len(seconds) < _KILLS:
        process.wait(300)
        killed_at = time.monotonic()
        process = study.launch()
        wait_for(study.said, process, study)
        seconds.append(time.monotonic() - killed_at)
    finish(study, process)
    return met(study, seconds, _failed_alone(study, "lost 3 times in a row"), times=3, given_up=1)


def _starved(bench: Bench, *, backend: str) -> Outcome:
    """A trial for which the kernel ends its process, in a control group with little memory, fails alone, too."""
    (group := _GROUPS / bench.folder.name).mkdir()
    began_at = time.monotonic()
    (group / "memory.limit_in_bytes").write_text(str(_ROOM_BYTES[backend]))
    study = bench.study("sqlite", backend, _TRIALS[backend], hungry=str(_FAULTY))
    while not study.launches or study.launches[-1].poll():
        (group / "cgroup.procs").write_text(str(study.launch().pid))
        study.launches[-1].wait(300)
    killed = int((group / "memory.oom_control").read_text().split()[-1])
    wrong = _failed_alone(study, "lost 3 times in a row")
    wrong += [] if killed >= _KILLS else [f"the kernel must end {_KILLS} processes; it ended {killed}"]
    return met(study, [time.monotonic() - began_at], wrong, times=killed, given_up=1)


def _read_only(bench: Bench, *, backend: str) -> Outcome:
    """A folder of snapshots that turns read-only ends the launch with a line; once it is not, the next one goes on."""
    folder = str(bench.folder / "artefacts")
    Path(folder).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    try:
        study = bench.begun("sqlite", backend, 2 * _TRIALS[backend])
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        seconds = seconds_to_end(study.launches[-1])
        wrong = not_refused(study, "snapshots must be written", "Read-only file system")
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
        finish(study)
        return met(study, [seconds], wrong)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _empty(file: Path, other: Path) -> None:
    file.write_bytes(b"")


def _cut(file: Path, other: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _flipped(file: Path, other: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def _of_another(file: Path, other: Path) -> None:
    shutil.copy(other, file)


def _deleted(file: Path, other: Path) -> None:
    file.unlink()


def _folder_instead(file: Path, other: Path) -> None:
    file.unlink()
    (file / "inside").mkdir(parents=True)


def _pipe_instead(file: Path, other: Path) -> None:
    file.unlink()
    os.mkfifo(file)


DAMAGES: tuple[Callable[[Path, Path], None], ...] = (
    _empty, _cut, _flipped, _of_another, _deleted, _folder_instead, _pipe_instead,
)  # fmt: skip


def _snapshots(study: Study) -> list[list[Path]]:
    """Of every trial that has not ended, its snapshots, the newest last."""
    with Ledger.open(study.url, read_only=True) as ledger:
        record = ledger.study(study.name)
        open_trials = [one.number for one in ledger.trials(record.id) if not one.state.is_terminal]
        found = [ledger.artefacts(record.id, number) for number in open_trials]
    ordered = [sorted(artefacts, key=lambda one: one.step) for artefacts in found]
    return [[Path(one.path) for one in artefacts] for artefacts in ordered if artefacts]


def _another(bench: Bench, open_trials: list[list[Path]]) -> Path:
    """A copy of a file that no open trial has."""
    used = {file for files in open_trials for file in files}
    files = sorted(set((bench.folder / "artefacts").glob("trivial/trial-*/*/*")) - used)
    return Path(shutil.copy(files[0], bench.folder / "another"))


def _damaged(bench: Bench, *, damage: Callable[[Path, Path], None], which: int) -> Outcome:
    """Of a launch that was killed, snapshots are damaged: the newest of each trial, or all."""
    study, seconds, times = bench.study("sqlite", "inline", 3 * _TRIALS["inline"]), [], 0
    process = study.launch()
    for _ in range(_KILLS):
        wait_for_ends(study, process, 4)
        wait_for(lambda: _snapshots(study), process, study)
        process.kill()
        process.wait()
        open_trials = _snapshots(study)
        others = _another(bench, open_trials)
        for snapshots in open_trials:
            for file in snapshots[-which:]:
                damage(file, others)
                times += 1
        killed_at = time.monotonic()
        process = study.launch()
        wait_for_ends(study, process)
        seconds.append(time.monotonic() - killed_at)
    finish(study, process)
    for folder in (bench.folder / "artefacts").glob("trivial/trial-*/attempt-*/*/inside"):
        shutil.rmtree(folder.parent)  # a folder that somebody has put there is not the study's to delete
    return met(study, seconds, [] if times else ["there was no snapshot to damage"], times=times)


_BACKENDS = ("inline", "ray")
DIVERGING = tuple(Case(f"NaN, {one}, sqlite", partial(_diverging, backend=one)) for one in _BACKENDS)
MEMORY = (
    *(Case(f"in a trial, {one}, sqlite", partial(_raising, backend=one)) for one in _BACKENDS),
    *(Case(f"of a trial's process, {one}, sqlite", partial(_deadly, backend=one)) for one in _BACKENDS),
    *(Case(f"ended by the kernel, {one}, sqlite", partial(_starved, backend=one)) for one in _BACKENDS),
)
READ_ONLY = tuple(Case(f"read-only, {one}, sqlite", partial(_read_only, backend=one)) for one in _BACKENDS)
SNAPSHOTS = tuple(
    Case(
        f"{damage.__name__.strip('_').replace('_', ' ')}, {'all' if which else 'the newest'}, inline, sqlite",
        partial(_damaged, damage=damage, which=which),
    )
    for damage in DAMAGES
    for which in (1, 0)
)
