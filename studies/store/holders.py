"""Who holds what somebody waits for: the processes that have locked a database, as far as the system tells."""

from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from studies.store.address import StorageAddress

_LOCKS = Path("/proc/locks")
_SESSIONS = text(
    "SELECT DISTINCT a.pid, a.application_name, host(a.client_addr) AS host, a.state, "
    "extract(epoch FROM now() - a.xact_start) AS seconds "
    "FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid JOIN pg_class AS c ON c.oid = l.relation "
    "WHERE c.relname = 'studies' AND l.granted AND l.pid <> pg_backend_pid() AND a.datname = current_database() "
    "AND l.mode NOT IN ('AccessShareLock') ORDER BY a.pid"
)


def holders(engine: Engine, address: StorageAddress) -> str:
    """A phrase that names them, such as ``process 4711 (sqlite3)``; empty if nobody can be named."""
    if address.file is not None:
        return _who_locks(address.file)
    with suppress(SQLAlchemyError), engine.connect() as connection:
        return _sessions(connection)
    return ""


def _sessions(connection: Connection) -> str:
    """Sessions of PostgreSQL that hold rows of the studies."""
    found = []
    for row in connection.execute(_SESSIONS):
        name, where = row.application_name or "a program", row.host or "this machine"
        age = "" if row.seconds is None else f", {row.state} since {max(0, round(row.seconds))} s"
        found.append(f"{name} on {where} (session {row.pid}{age})")
    return ", ".join(found)


def _who_locks(file: Path) -> str:
    """Processes of this machine that have locked an SQLite database or the index of its log; Linux tells."""
    inodes, pids = set(), []
    for path in (file, file.with_name(f"{file.name}-shm")):
        with suppress(OSError):
            inodes.add(path.stat().st_ino)
    with suppress(OSError, ValueError, IndexError):
        for line in _LOCKS.read_text().splitlines():
            fields = line.split()
            if "WRITE" in fields and int(fields[5].rpartition(":")[2]) in inodes:
                pids.append(int(fields[4]))
    return ", ".join(f"process {pid}{_name(pid)}" for pid in dict.fromkeys(pids) if pid > 0)


def _name(pid: int) -> str:
    with suppress(OSError):
        return f" ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    return ""
