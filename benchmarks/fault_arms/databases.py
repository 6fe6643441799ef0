"""Databases that restart, are away, locked, full, deleted, replaced, or of another version."""

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from support.killed_study import finish, wait_for_ends

from fault_arms.bench import Bench, Case, Outcome, kill_launch, met, not_refused, seconds_to_end

_TRIALS = {"inline": 42, "ray": 28}
_AWAY_SECONDS = 6.0
_SHORT_LEASE = "4"
_FUTURE_VERSION = "1000"
_CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'deltaspace' "
    "AND pid <> pg_backend_pid()"
)


def _restarted(bench: Bench, *, backend: str, how: str) -> Outcome:
    """A server that restarts, or drops its connections, is waited for."""
    study = bench.begun("postgres", backend, _TRIALS[backend])
    process, seconds = study.launches[-1], []
    for _ in range(3):
        began_at = time.monotonic()
        if how == "connections":
            bench.server.run_sql(_CUT)
        else:
            bench.server.stop(how)
            bench.server.start()
        wait_for_ends(study, process)
        seconds.append(time.monotonic() - began_at)
    finish(study, process)
    return met(study, seconds)


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
    """A database that cannot be used is waited for as long as a lease lasts; after that the launch ends with a line."""
    study = bench.begun(database, backend, _TRIALS[backend], **({} if is_short else {"lease": _SHORT_LEASE}))
    process, wrong = study.launches[-1], []
    began_at = time.monotonic()
    with (_server_away if database == "postgres" else _file_locked)(bench):
        if is_short:
            time.sleep(_AWAY_SECONDS)
        else:
            seconds = seconds_to_end(process, began_at)
            wrong = not_refused(study, "cannot reach" if database == "postgres" else "is locked by another process")
    if is_short:
        wait_for_ends(study, process)
        seconds = time.monotonic() - began_at
    finish(study, process if is_short else None)
    return met(study, [seconds], wrong)


def _full(bench: Bench) -> Outcome:
    """A disk that is full ends the launch with a line; with more space the next one goes on."""
    study, seconds, wrong = bench.study("sqlite", "inline", _TRIALS["inline"]), [], []
    wait_for_ends(study, study.launch(), 1)
    kill_launch(study)
    with closing(sqlite3.connect(bench.folder / "ledger.db")) as link:
        pages = int(link.execute("PRAGMA page_count").fetchone()[0])
    for more in (2, 5, 8):
        seconds.append(seconds_to_end(study.launch(pages=str(pages + more))))
        wrong += not_refused(study, "database or disk is full")
    finish(study)
    return met(study, seconds, wrong)


def _files(file: Path) -> list[Path]:
    """A database and what SQLite keeps beside it."""
    return [one for one in (file, *file.parent.glob(f"{file.name}-*")) if one.exists()]


def _move(file: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for one in _files(file):
        one.rename(folder / one.name)


def _gone(bench: Bench, *, backend: str, replaced: bool) -> Outcome:
    """A file that is deleted or replaced takes nothing more: the launch ends, and the next one goes on."""
    study = bench.begun("sqlite", backend, _TRIALS[backend])
    process, file, aside = study.launches[-1], bench.folder / "ledger.db", bench.folder / "aside"
    copy = bench.folder / "copy.db"
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    began_at = time.monotonic()
    _move(file, aside)
    if replaced:
        shutil.copy(copy, file)
    seconds = seconds_to_end(process, began_at)
    wrong = not_refused(study, "replaced by another file" if replaced else "it was deleted")
    if replaced and [one.read_bytes() for one in _files(file)] != [copy.read_bytes()]:
        wrong.append("something was written into the file that was put in its place, or beside it")
    if not replaced:
        wrong += [f"{one} was made anew" for one in _files(file)]
        _move(aside / file.name, file.parent)
    finish(study)
    return met(study, [seconds], wrong)


def _newer(bench: Bench) -> Outcome:
    """Tables of the future are refused in a line, and nothing is written to them."""
    from studies.ledger.migrations import NEWEST

    study = bench.begun("sqlite", "inline", _TRIALS["inline"])
    kill_launch(study)
    with closing(sqlite3.connect(bench.folder / "ledger.db", isolation_level=None)) as link:
        link.execute("UPDATE deltaspace_version SET version_num = ?", [_FUTURE_VERSION])
        before = list(link.iterdump())
        seconds = seconds_to_end(study.launch())
        wrong = not_refused(study, "must be of version", "Use the release that made them.")
        if list(link.iterdump()) != before:
            wrong.append("something was written to tables of the future")
        link.execute("UPDATE deltaspace_version SET version_num = ?", [NEWEST])
    finish(study)
    return met(study, [seconds], wrong)


def _cases(name: str, run: Callable[..., Outcome], *given: dict[str, object]) -> tuple[Case, ...]:
    """One case for each of the settings."""
    return tuple(Case(", ".join((name, *map(str, one.values()))), partial(run, **one)) for one in given)


RESTARTED = _cases(
    "restarted",
    _restarted,
    *({"backend": "inline", "how": how} for how in ("fast", "immediate", "connections")),
    {"backend": "ray", "how": "immediate"},
)


def _waited_for(what: str, database: str) -> tuple[Case, ...]:
    both = [{"database": database, "backend": backend} for backend in ("inline", "ray")]
    short = _cases(f"{what} for less than a lease", partial(_unusable, is_short=True), *both)
    return short + _cases(f"{what} for longer than a lease", partial(_unusable, is_short=False), *both)


AWAY, LOCKED = _waited_for("away", "postgres"), _waited_for("locked", "sqlite")
FULL = (Case("full, inline, sqlite", _full),)
GONE = _cases("deleted", partial(_gone, replaced=False), {"backend": "inline"}, {"backend": "ray"}) + _cases(
    "replaced", partial(_gone, replaced=True), {"backend": "inline"}, {"backend": "ray"}
)
VERSIONS = (Case("newer, inline, sqlite", _newer),)
