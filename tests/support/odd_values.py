"""Odd values for every column of a ledger, and every command that reads one."""

import contextlib
import io
import os
import random
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, Column
from support.corruptions import LEFT_OUT, PLANTED_IN, Damage
from support.trivial_runner import TrivialFactory

from deltaspace.commands.main import main
from studies.errors import StudiesError
from studies.launch.launch import launch
from studies.ledger.tables import METADATA
from studies.ledger.views import VIEWS
from studies.study_file import Specification

ODD = {
    "1e18": "1e18",
    "the largest integer": "9223372036854775807",
    "a negative number": "-1",
    "infinity": "9e999",
    "negative infinity": "-9e999",
    "null": "NULL",
    "a word": "'song'",
    "no text": "''",
    "NUL": "char(0)",
    "bytes": "x'00ff41'",
    "no UTF-8": "CAST(x'ff41' AS TEXT)",
    "a long text": "printf('%.*c', 1000000, 'x')",
}
ODD_JSON = {
    "a number": "'7'",
    "a list": "'[]'",
    "no JSON": "'{'",
    "not a number": "'NaN'",
    "an unknown key": "json_set({column}, '$.no_such_key', 'song')",
    "a list under an unknown key": "json_set({column}, '$.no_such_key', json('[1]'))",
    "many levels": "printf('%.*c', 100000, '[')",
    "values that are words": "(SELECT json_group_object(key, 'song') FROM json_each({column}))",
    "values that are too large": "(SELECT json_group_object(key, 1e18) FROM json_each({column}))",
    "values that are lists": "(SELECT json_group_object(key, json('[]')) FROM json_each({column}))",
    "values that are null": "(SELECT json_group_object(key, NULL) FROM json_each({column}))",
}


HUGE = {
    "50 MB of text": "printf('%.*c', 50000000, 'x')",
    "50 MB of digits": "printf('%.*c', 50000000, '9')",
    "50 MB of bytes": "zeroblob(50000000)",
    "50 MB of levels": "printf('%.*c', 50000000, '[')",
    "50 MB of JSON": "'[' || replace(printf('%.*c', 16000000, 'x'), 'x', '1, ') || '1]'",
}


def damages() -> Iterator[Damage]:
    """Yield all damages but the huge ones."""
    for column in _columns():
        values = ODD | (ODD_JSON if isinstance(column.type, JSON) else {})
        for name, value in values.items():
            yield _damage(column, name, value)


def huge_damages(draw: random.Random) -> list[Damage]:
    """Return each of the huge values in a column of each type."""
    by_type: dict[type, list[Column[Any]]] = {}
    for column in _columns():
        by_type.setdefault(type(column.type), []).append(column)
    return [_damage(draw.choice(some), *value) for some in by_type.values() for value in HUGE.items()]


def _columns() -> Iterator[Column[Any]]:
    for table in METADATA.sorted_tables:
        if table.name not in LEFT_OUT:
            yield from table.columns


def _damage(column: Column[Any], name: str, value: str) -> Damage:
    table, shown = column.table.name, value.replace("{column}", column.name)
    return Damage(
        f"{table}.{column.name}: {name}", f"UPDATE {table} SET {column.name} = {shown} WHERE {PLANTED_IN[table]}"
    )


def bounded(seconds: int, size: int, ask: Callable[[], str]) -> str:
    """Run a check in a process with limits on processor seconds and additional memory; return its finding."""
    with warnings.catch_warnings(action="ignore"):  # of threads, which it does not need
        child = os.fork()
    if child == 0:
        found = "it raised"
        try:
            resource.setrlimit(resource.RLIMIT_AS, (_address_space() + size,) * 2)
            resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + seconds,) * 2)
            found = ask()
        finally:
            sys.__stderr__.write(found)
            os._exit(1 if found else 0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"it ended with {ended}" if ended else ""


@contextlib.contextmanager
def limited_memory(size: int) -> Iterator[None]:
    """Limit the address space of this process to ``size`` bytes more than it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def readers(url: str, folder: Path, study: Specification) -> dict[str, Callable[[], object]]:
    """Return every command that reads a ledger, and a launch that continues its study."""
    lines = {
        "show": ["show", "trivial"],
        "show of a confirmation": ["show", "trivial-confirm"],
        "trial": ["trial", "trivial", "3"],
        "best": ["best", "trivial"],
        "studies": ["studies"],
        "discover": ["discover", "trivial"],
        "report": ["report", "trivial", str(folder / "report.html")],
        "verify": ["verify", "trivial"],
        "verify of a confirmation": ["verify", "trivial-confirm"],
        "export": ["export", "trivial", str(folder / "optuna.db"), "--format", "optuna"],
        "merge": ["merge", url, "--storage", f"sqlite:///{folder / 'merged.db'}"],
    }
    calls = {name: _call_of(line, url) for name, line in lines.items()}
    for view in VIEWS:
        calls[f"query of {view}"] = _call_of(["query", f"SELECT * FROM {view}"], url)
    return {**calls, "launch": lambda: launch(study, storage_url=url, factory=TrivialFactory())}


SLOW = ("show of a confirmation", "discover", "report", "export")
"""Readers that take seconds."""


def _call_of(line: list[str], url: str) -> Callable[[], object]:
    return lambda: main([*line, *([] if "--storage" in line else ["--storage", url])])


def problem_of(ask: Callable[[], object]) -> str:
    """Return the problem with how a command ends; empty if it succeeds or is refused in one line."""
    errors_file = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors_file):
            ask()
    except StudiesError as error:
        errors_file.write(f"deltaspace: {error}\n")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    errors = [line for line in errors_file.getvalue().splitlines() if line.startswith("deltaspace: ")]
    return "" if len(errors) <= 1 and all(len(line) < 2000 for line in errors) else str(errors)[:500]
