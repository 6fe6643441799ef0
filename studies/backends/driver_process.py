"""The driver of Ray as the launching process has it: a process with a session of its own, and all that it started."""

import fcntl
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import Self

from studies.backends.backend import RunnerFactory, TorchRunnerFactory
from studies.backends.trial_files import FolderMark
from studies.errors import StudiesError
from studies.runtime.progress import Progress, Standing
from studies.runtime.study_plan import StudyPlan
from studies.study_file.sections import Fleet
from trial_runner.processes import start_of

_END_SECONDS = 5.0
_LEAVE_SECONDS = 10.0
_LOOK_SECONDS = 0.02
_LONGEST_WORD = 200
_NOT_OF_ITS_OWN = frozenset({"RAY_ADDRESS", "RAY_AUTH_TOKEN"})

_PREFIX = "dslaunch-"
_REMOVALS = 3
_LONGEST_PARENT = 20  # sockets of Ray lie below it, and their paths are limited to 107 bytes
_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

ORDER = "order"
"""The file in the launch's folder that holds the driver's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverOrder:
    """What the driver is to run, and where.

    Attributes:
        cores: Of this machine, for this launch.
        asked_threads: The most threads that the user lets a worker compute with; None if they do not say.
        address: Of a Ray that runs already; None for one of the launch's own.
        folder: Lives as long as the launch, and only its user can enter it.
        mark: Tells a worker on another node whether it sees the study's folder; None without other nodes.
    """

    plan: StudyPlan
    factory: RunnerFactory
    options: Fleet
    cores: int
    asked_threads: int | None
    address: str | None
    folder: Path
    mark: FolderMark | None = None


Processes = dict[str, int]
"""From the driver, once Ray runs: those of this machine without which it does not; none of a Ray that ran already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """From the driver, several times a second: it lives.

    Attributes:
        progress: Of the study; None before anything is known of it.
        waits_for: See `Progress.waits_for`.
    """

    progress: Progress | None
    waits_for: str


Ended = Standing | StudiesError
"""From the driver: the fleet has come to its end, and there the study stands; or what ended it."""

Said = Processes | Shown | Ended


def not_taken_in(address: str) -> str:
    """What is said of a cluster that this machine cannot work with, as half a sentence."""
    return (
        f"the cluster at {address} did not take this machine in (it must be one of its nodes, by 'ray start', and have "
        "its token, by RAY_AUTH_TOKEN_PATH)"
    )


class DriverProcess:
    """While entered, the driver runs; afterwards neither it nor anything that it started on this machine is left.

    Signals for the group of the launching process do not reach it: it is told to stop, and ended when it does not.
    """

    def __init__(self, order: DriverOrder, environment: Mapping[str, str]) -> None:
        """Get ready to start it, with some settings added to the environment."""
        self._order = order
        self._environment = environment
        self._log = order.folder / "driver.log"
        self._heard: queue.SimpleQueue[Said | None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        """Start it and give it its order."""
        order = _pickled(self._order)  # first: what cannot travel leaves no process behind
        (self._order.folder / ORDER).write_bytes(order)  # not through the pipe: nobody may read that
        self._connection, its = Pipe()
        # its modules are those of this process, not what lies in the folder where it was started
        command = [sys.executable, "-P", "-m", "studies.backends.driver", str(its.fileno()), str(os.getpid())]
        command.append(str(self._order.folder / ORDER))
        paths = [path or str(Path.cwd()) for path in sys.path]
        hidden = _NOT_OF_ITS_OWN if self._order.address is None else frozenset()
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        environment |= {**self._environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[its.fileno()],
                env=environment,
                start_new_session=True,
            )
        its.close()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        return self

    def _listen(self) -> None:
        """Take in what it says: a message of which only a part ever comes keeps this thread, and no other."""
        while True:
            try:
                self._heard.put(self._connection.recv())
            except (EOFError, OSError):
                self._heard.put(None)
                return

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        """End it, and whatever is left of its session."""
        if kind is None and self._order.address is not None:
            self._code(_LEAVE_SECONDS)  # it leaves the cluster
        until = time.monotonic() + _END_SECONDS
        while (left := _session(self._process.pid)) and time.monotonic() < until:
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_LOOK_SECONDS)
        with suppress(subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(_END_SECONDS)
        self._listener.join(_END_SECONDS)
        if not self._listener.is_alive():
            self._connection.close()

    def hear(self, seconds: float) -> Said | None:
        """What it says next; None when it says nothing for so long.

        Raises:
            EOFError: If it has ended.
        """
        try:
            said = self._heard.get(timeout=seconds) if seconds else self._heard.get_nowait()
        except queue.Empty:
            return None
        if said is None:
            self._heard.put(None)
            raise EOFError
        return said

    def stop(self, reason: str) -> None:
        """Tell it to send the workers away."""
        with suppress(ConnectionError):
            self._connection.send(reason)

    def ends_within(self, seconds: float) -> bool:
        """Whether it has ended, or does so soon; what it said before may still have to be taken in."""
        return self._code(seconds) is not None

    @property
    def last_words(self) -> str:
        """How it ended, for one line."""
        code = self._code(_END_SECONDS)
        how = "hung" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        with suppress(OSError):
            lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
            if lines:
                return f"{how}; it said: {lines[-1][:_LONGEST_WORD]}"
        return how

    def _code(self, seconds: float) -> int | None:
        """Its exit code, as `subprocess` has it; None when it does not end for so long.

        It is left to be noticed: until then no other process can bear its number, nor begin a session of that number.
        """
        until = time.monotonic() + seconds
        while True:
            try:
                ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # noticed by the system itself, where SIGCHLD is ignored
                return self._process.wait()
            if ended is not None:
                return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            if time.monotonic() > until:
                return None
            time.sleep(_LOOK_SECONDS)


def _pickled(order: DriverOrder) -> bytes:
    """The order as bytes; what a script or a notebook defines travels as its code."""
    if isinstance(order.factory, TorchRunnerFactory):
        return pickle.dumps(order)
    from ray import cloudpickle

    packed: bytes = cloudpickle.dumps(order)
    return packed


def _session(leader: int) -> list[int]:
    """The processes of a session that have not ended; without ``/proc`` none."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == leader and start_of(pid) is not None:
                found.append(pid)
    return found


@contextmanager
def launch_folder() -> Iterator[Path]:
    """A folder that lives as long as a launch, that only this user can enter; those of killed launches are removed.

    A launch holds a lock on its folder itself; the system lets go of it when the process dies. So one without a lock
    was left behind. Programs that tidy up ``/tmp`` by age leave a locked folder alone.
    """
    usual = Path(tempfile.gettempdir())
    parent = usual if len(str(usual)) <= _LONGEST_PARENT else Path("/tmp")
    for left in parent.glob(f"{_PREFIX}*"):
        _remove_if_left(left)
    folder, lock = _locked_folder(parent)
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(lock)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    """A new folder and the lock on it; another launch may take one that is not locked yet for one that was left."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder, _AS_FOLDER)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove(folder: Path) -> None:
    """Remove the folder of a launch that ends, and what a process that is dying writes there meanwhile."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def _remove_if_left(folder: Path) -> None:
    """Remove the folder of a launch of this user that has ended; whatever else bears such a name is left alone."""
    with suppress(OSError):
        lock = os.open(folder, _AS_FOLDER)
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
