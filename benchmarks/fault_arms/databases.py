"""Databases that restart, are unreachable, locked, full, deleted, replaced, or of another version."""

import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from support.killed_study import finish, wait_for_ends
from support.postgres import SESSIONS

from fault_arms.bench import (
    Bench,
    Case,
    Outcome,
    count_training,
    fault_outcome,
    kill_launch,
    seconds_to_end,
    wrong_error,
)

_TRIALS = {"inline": 42, "ray": 28}
_KILLS = {"killed": 10, "one session killed": 50}
_AWAY_SECONDS = 6.0
_SHORT_LEASE = "4"
_SUMS = ("lost", "twice", "violations", "steps", "repeated", "training")
_FUTURE_VERSION = "1000"


def _restarted(bench: Bench, *, backend: str, how: str) -> Outcome:
    """Restart or kill a server, or drop or kill its connections; the study must continue."""
    times = _KILLS.get(how, 3)
    study = bench.launched_study("postgres", backend, _TRIALS[backend] + 5 * times)
    process, seconds = study.launches[-1], []
    for _ in range(times):
        count_training(study)
        began_at = time.monotonic()
        match how:
            case "connections":
                bench.server.run_sql(f"SELECT pg_terminate_backend(pid) FROM (SELECT {SESSIONS}) AS sessions")
            case "one session killed":
                bench.server.kill_session()
            case _:
                bench.server.kill() if how == "killed" else bench.server.stop(how)
                bench.server.start()
        wait_for_ends(study, process)
        seconds.append(time.monotonic() - began_at)
    finish(study, process)
    return fault_outcome(study, seconds)


@contextmanager
def _server_away(bench: Bench) -> Iterator[None]:
    bench.server.stop()
    try:
        yield
    finally:
        bench.server.start()


@contextmanager
def _file_locked(bench: Bench) -> Iterator[None]:
    with closing(sqlite3.connect(bench.folder / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("COMMIT")


def _unusable(bench: Bench, *, database: str, backend: str, is_short: bool) -> Outcome:
    """Make a database unusable; the launch must wait as long as a lease lasts and then end with an error."""
    study = bench.launched_study(database, backend, _TRIALS[backend], **({} if is_short else {"lease": _SHORT_LEASE}))
    process, problems = study.launches[-1], []
    began_at = time.monotonic()
    with (_server_away if database == "postgres" else _file_locked)(bench):
        if is_short:
            time.sleep(_AWAY_SECONDS)
        else:
            seconds = seconds_to_end(process, began_at)
            problems = wrong_error(study, "cannot reach" if database == "postgres" else "is locked by another process")
    if is_short:
        wait_for_ends(study, process)
        seconds = time.monotonic() - began_at
    finish(study, process if is_short else None)
    return fault_outcome(study, [seconds], problems)


def _full(bench: Bench) -> Outcome:
    """Fill the disk; the launch must end with an error, the next one with more space must continue."""
    study, seconds, problems = bench.study("sqlite", "inline", _TRIALS["inline"]), [], []
    wait_for_ends(study, study.launch(), 1)
    kill_launch(study)
    with closing(sqlite3.connect(bench.folder / "ledger.db")) as link:
        pages = int(link.execute("PRAGMA page_count").fetchone()[0])
    for more in (2, 5, 8):
        seconds.append(seconds_to_end(study.launch(pages=str(pages + more))))
        problems += wrong_error(study, "database or disk is full")
    finish(study)
    return fault_outcome(study, seconds, problems)


def _disk_filled(bench: Bench) -> Outcome:
    """Fill the disk while two launches write; both must end with an error and continue once there is space."""
    (disk := bench.folder / "disk").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", disk], check=True)
    try:
        seconds, problems, trials = [], [], 10 * _TRIALS["inline"] // 3
        benches = [Bench(bench.folder / name) for name in ("one", "two")]
        url = f"sqlite:///{disk / 'ledger.db'}"
        bench.studies += [each.study(url, "inline", trials, name=each.folder.name) for each in benches]
        for _ in range(5):
            for study in bench.studies:
                study.launch()
            for study in bench.studies:
                wait_for_ends(study, study.launches[-1], 2)
                count_training(study)
            began_at = time.monotonic()
            with suppress(OSError), (disk / "other").open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
            for study in bench.studies:
                seconds.append(seconds_to_end(study.launches[-1], began_at))
                problems += wrong_error(study, "database or disk is full")
            (disk / "other").unlink()
        for study in bench.studies:
            finish(study)
        one, two = (fault_outcome(study, []) for study in bench.studies)
        sums = {name: getattr(one, name) + getattr(two, name) for name in _SUMS}
        return replace(one, **sums, times=len(seconds), seconds=tuple(seconds))
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def _files(file: Path) -> list[Path]:
    """Return the files of a database, those of SQLite's journal included."""
    return [path for path in (file, *file.parent.glob(f"{file.name}-*")) if path.exists()]


def _move(file: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for path in _files(file):
        path.rename(folder / path.name)


def _gone(bench: Bench, *, backend: str, replaced: bool) -> Outcome:
    """Delete or replace the file; the launch must end without a write, the next one must continue."""
    study = bench.launched_study("sqlite", backend, _TRIALS[backend])
    process, file, aside = study.launches[-1], bench.folder / "ledger.db", bench.folder / "aside"
    copy = bench.folder / "copy.db"
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    began_at = time.monotonic()
    _move(file, aside)
    if replaced:
        shutil.copy(copy, file)
    seconds = seconds_to_end(process, began_at)
    problems = wrong_error(study, "replaced by another file" if replaced else "was deleted while in use")
    if replaced and [path.read_bytes() for path in _files(file)] != [copy.read_bytes()]:
        problems.append("the replaced file was written, or one beside it")
    if not replaced:
        problems += [f"{path} was created again" for path in _files(file)]
        _move(aside / file.name, file.parent)
    finish(study)
    return fault_outcome(study, [seconds], problems)


def _newer(bench: Bench) -> Outcome:
    """Set a newer version of the tables; the launch must end with an error without a write."""
    from studies.ledger.migrations import NEWEST

    study = bench.launched_study("sqlite", "inline", _TRIALS["inline"])
    kill_launch(study)
    with closing(sqlite3.connect(bench.folder / "ledger.db", isolation_level=None)) as link:
        link.execute("UPDATE deltaspace_version SET version_num = ?", [_FUTURE_VERSION])
        before = list(link.iterdump())
        seconds = seconds_to_end(study.launch())
        problems = wrong_error(study, "must be of version", "Use the release that made them.")
        if list(link.iterdump()) != before:
            problems.append("the tables of a newer version were written")
        link.execute("UPDATE deltaspace_version SET version_num = ?", [NEWEST])
    finish(study)
    return fault_outcome(study, [seconds], problems)


def _cases(name: str, run: Callable[..., Outcome], *settings: dict[str, object]) -> tuple[Case, ...]:
    """Return a case for each of the settings."""
    return tuple(Case(", ".join((name, *map(str, each.values()))), partial(run, **each)) for each in settings)


RESTARTED = _cases(
    "restarted",
    _restarted,
    *({"backend": "inline", "how": how} for how in ("fast", "immediate", "connections", *_KILLS)),
    *({"backend": "ray", "how": how} for how in ("immediate", "killed")),
)


def _unusable_cases(state: str, database: str) -> tuple[Case, ...]:
    both = [{"database": database, "backend": backend} for backend in ("inline", "ray")]
    short = _cases(f"{state} for less than a lease", partial(_unusable, is_short=True), *both)
    return short + _cases(f"{state} for longer than a lease", partial(_unusable, is_short=False), *both)


AWAY, LOCKED = _unusable_cases("away", "postgres"), _unusable_cases("locked", "sqlite")
FULL = (Case("full, inline, sqlite", _full), Case("filled while two launches write, sqlite", _disk_filled))
GONE = _cases("deleted", partial(_gone, replaced=False), {"backend": "inline"}, {"backend": "ray"}) + _cases(
    "replaced", partial(_gone, replaced=True), {"backend": "inline"}, {"backend": "ray"}
)
VERSIONS = (Case("newer, inline, sqlite", _newer),)
