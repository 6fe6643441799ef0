"""Driver process of Ray from the side of the launching process: its session, messages and end."""

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
from studies.runtime.progress import LaunchStatus, Progress
from studies.runtime.study_plan import StudyPlan
from studies.study_file.sections import Fleet
from trial_runner.processes import session_of

_END_SECONDS = 5.0
_LEAVE_SECONDS = 10.0
_LOOK_SECONDS = 0.02
_LONGEST_LINE = 200
_PRIVATE_VARIABLES = frozenset({"RAY_ADDRESS", "RAY_AUTH_TOKEN"})

_PREFIX = "dslaunch-"
_REMOVALS = 3
_LONGEST_PARENT = 18  # sockets of Ray lie below it, and their paths are limited to 107 bytes
_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

ORDER = "order"
"""Name of the file with the driver's order in the launch's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverOrder:
    """Order to the driver.

    Attributes:
        cores: Cores of this machine for this launch.
        allowed_threads: Largest number of threads of a worker that the user allows; None without a limit.
        address: Address of a running Ray; None for a private one.
        folder: Folder that lives as long as the launch and is accessible to its user alone.
        mark: File by which a worker on another node detects a shared study folder; None without other nodes.
    """

    plan: StudyPlan
    factory: RunnerFactory
    options: Fleet
    cores: int
    allowed_threads: int | None
    address: str | None
    folder: Path
    mark: FolderMark | None = None


Processes = dict[str, int]
"""Message of the driver once Ray runs: processes of this machine that must stay alive; empty for a running Ray."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverProgress:
    """Message of the driver several times a second.

    Attributes:
        progress: Progress of the study; None before it is known.
        waits_for: See `Progress.waits_for`.
    """

    progress: Progress | None
    waits_for: str


Ended = LaunchStatus | StudiesError
"""Last message of the driver: the status after the fleet has ended, or the error that ended it."""

DriverMessage = Processes | DriverProgress | Ended


def not_taken_in(address: str) -> str:
    """Return the reason why a cluster cannot be used from this machine, as half a sentence."""
    return (
        f"the cluster at {address} did not take this machine in (it must be one of its nodes, by 'ray start', and have "
        "its token, by RAY_AUTH_TOKEN_PATH)"
    )


class DriverProcess:
    """Driver process while entered; afterwards neither it nor any of its children on this machine is left.

    Signals to the group of the launching process do not reach it; it receives a stop message, and is ended if it does
    not stop.
    """

    def __init__(self, order: DriverOrder, environment: Mapping[str, str]) -> None:
        """Prepare the process, with additions to its environment."""
        self._order = order
        self._environment = environment
        self._log = order.folder / "driver.log"
        self._messages: queue.SimpleQueue[DriverMessage | None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        """Start the process and give it its order."""
        order = _pickled(self._order)  # first, so that an order that cannot be pickled starts no process
        (self._order.folder / ORDER).write_bytes(order)  # not through the pipe, which may never be read
        self._connection, its = Pipe()
        # it imports the modules of this process, not those of the current folder
        command = [sys.executable, "-P", "-m", "studies.backends.driver", str(its.fileno()), str(os.getpid())]
        command.append(str(self._order.folder / ORDER))
        paths = [path or str(Path.cwd()) for path in sys.path]
        hidden = _PRIVATE_VARIABLES if self._order.address is None else frozenset()
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
        """Receive messages; an incomplete message blocks this thread alone."""
        while True:
            try:
                self._messages.put(self._connection.recv())
            except (EOFError, OSError):
                self._messages.put(None)
                return

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        """End the process and the rest of its session."""
        if kind is None and self._order.address is not None:
            self.exit_code(_LEAVE_SECONDS)  # it leaves the cluster
        until = time.monotonic() + _END_SECONDS
        while (left := session_of(self._process.pid)) and time.monotonic() < until:
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

    def receive(self, seconds: float) -> DriverMessage | None:
        """Return the next message; None after so many seconds without one.

        Raises:
            EOFError: If the process has ended.
        """
        try:
            message = self._messages.get(timeout=seconds) if seconds else self._messages.get_nowait()
        except queue.Empty:
            return None
        if message is None:
            self._messages.put(None)
            raise EOFError
        return message

    def stop(self, reason: str) -> None:
        """Send a stop request."""
        with suppress(ConnectionError):
            self._connection.send(reason)

    @property
    def exit_description(self) -> str:
        """Way in which the process ended, in half a line."""
        code = self.exit_code(_END_SECONDS)
        how = "hung" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
        with suppress(OSError):
            lines = [line.strip() for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
            if lines:
                return f"{how}; last line: {lines[-1][:_LONGEST_LINE]}"
        return how

    def exit_code(self, seconds: float) -> int | None:
        """Return the exit code as `subprocess` does; None if the process does not end within so many seconds.

        The process is not reaped: until then no other process or session can have its number.
        """
        until = time.monotonic() + seconds
        while True:
            try:
                ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # reaped by the system where SIGCHLD is ignored
                return self._process.wait()
            if ended is not None:
                return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            if time.monotonic() > until:
                return None
            time.sleep(_LOOK_SECONDS)


def _pickled(order: DriverOrder) -> bytes:
    """Return the order as bytes; objects of a script or a notebook are sent by value."""
    if isinstance(order.factory, TorchRunnerFactory):
        return pickle.dumps(order)
    from ray import cloudpickle

    packed: bytes = cloudpickle.dumps(order)
    return packed


@contextmanager
def launch_folder() -> Iterator[Path]:
    """Yield a folder for the duration of a launch, accessible to this user alone; remove those of killed launches.

    A launch holds a lock on its folder, which the system releases when the process dies. So an unlocked folder was left
    behind. Programs that clean ``/tmp`` by age leave locked folders alone.
    """
    default = Path(tempfile.gettempdir())
    parent = default if len(str(default)) <= _LONGEST_PARENT else Path("/tmp")
    for left in parent.glob(f"{_PREFIX}*"):
        _remove_if_left(left)
    folder, lock = _locked_folder(parent)
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(lock)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    """Return a new folder and its lock; another launch may remove a folder before it is locked."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder, _AS_FOLDER)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove(folder: Path) -> None:
    """Remove the folder of a launch that ends, together with late files of dying processes."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def _remove_if_left(folder: Path) -> None:
    """Remove the folder of an ended launch of this user; other folders with such a name are left alone."""
    with suppress(OSError):
        lock = os.open(folder, _AS_FOLDER)
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
