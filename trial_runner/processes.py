"""Identity of processes, by which any other process can decide whether one still runs; names and sessions."""

import os
import socket
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

_START_FIELD = 19  # of /proc/PID/stat, counted from its state


def machine_mark() -> str:
    """Return 12 hex digits that identify this machine since its start, and this container."""
    return _machine_mark_of(os.getpid())


@lru_cache(maxsize=1)
def _machine_mark_of(_process: int) -> str:
    parts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            parts.append(Path(path).readlink().name if path.endswith("pid") else Path(path).read_text().strip())
        except OSError:
            continue
    return sha256(" ".join(parts).encode()).hexdigest()[:12]


def start_of(process: int) -> str | None:
    """Return the start time of a local process in clock ticks; empty if it is hidden, None if it has ended."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except (OSError, OverflowError):
        pass
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return None if state in "ZX" else fields[_START_FIELD - 1]


def name_of(process: int) -> str:
    """Return the name of a local process's program; empty if it is hidden or has ended."""
    with suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text().strip()
    return ""


def session_of(leader: int) -> list[int]:
    """Return the live processes of a session; empty without ``/proc``."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == leader and start_of(pid) is not None:
                pids.append(pid)
    return pids


def has_ended(machine: str, process: int, start: str) -> bool:
    """Return whether a process has certainly ended; false for one of another machine."""
    if machine != machine_mark():
        return False
    found = start_of(process)
    # where a process of another user is hidden, nobody is told when it started
    return found is None or ("" not in (found, start) and found != start)
