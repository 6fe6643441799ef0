"""A PostgreSQL of the tests' own: a new cluster in a temporary folder, reached over a socket in it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.killed_study import children
from support.missing_programs import skip_without

SESSIONS = "pid FROM pg_stat_activity WHERE application_name = 'deltaspace' AND pid <> pg_backend_pid()"


class PostgresServer:
    """A PostgreSQL of the tests' own: a new cluster in a temporary folder, reached over a socket in it."""

    def __init__(self) -> None:
        self.programs = postgres_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="dspg-", dir="/tmp"))  # A socket's path must be short.
        self.before: list[str] = []
        if os.geteuid() == 0:  # The server refuses to run as root.
            self.before = ["runuser", "-u", "postgres", "--"]
            shutil.chown(self.folder, "postgres")
        self.count = 0
        self.call("initdb", "-U", "deltaspace", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D", self.data)
        self.start()

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def call(self, program: str, *arguments: str) -> None:
        command = [*self.before, str(self.programs / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            pytest.fail(f"{program} failed: {done.stderr.strip()} {done.stdout.strip()}", pytrace=False)

    def start(self) -> None:
        # Without fsync a database is made and dropped quickly; only a crash of the machine could tell.
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=40 -c fsync=off"
        log = str(self.folder / "log")
        self.call("pg_ctl", "-D", self.data, "-l", log, "-o", options, "-w", "start")

    def stop(self, how: str = "fast") -> None:
        self.call("pg_ctl", "-D", self.data, "-m", how, "-w", "stop")

    def kill(self) -> None:
        """End all processes of the server as a machine without power does."""
        pid = int((Path(self.data) / "postmaster.pid").read_text().split()[0])
        for one in (pid, *(child for child, _ in children(pid))):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        while Path(f"/proc/{pid}").exists():  # the next server takes the number of an ended process for a running one
            time.sleep(0.01)

    def kill_session(self) -> None:
        """Kill the process of a session of this library; the server then ends all sessions and recovers."""
        with self.connect() as connection:
            for (pid,) in connection.execute(f"SELECT {SESSIONS} LIMIT 1").fetchall():
                os.kill(pid, signal.SIGKILL)

    def url(self, database: str) -> str:
        return f"postgresql://deltaspace@/{database}?host={self.folder}"

    def connect(self, database: str = "postgres") -> Any:
        import psycopg

        return psycopg.connect(self.url(database), autocommit=True)

    def run_sql(self, statement: str) -> None:
        with self.connect() as connection:
            connection.execute(statement)

    def new_database(self) -> str:
        self.count += 1
        self.run_sql(f"CREATE DATABASE test_{self.count}")
        return f"test_{self.count}"

    def drop_database(self, name: str) -> None:
        self.run_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def postgres_programs() -> Path:
    """Return the folder of initdb and pg_ctl; without one skip the test, or fail where all must run."""
    folders = [Path(found).resolve().parent for found in [shutil.which("pg_ctl")] if found]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    skip_without("PostgreSQL", "apt-get install postgresql")
