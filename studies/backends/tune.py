"""Fleet on Ray from the side of the launching process, with a deadline for everything.

Ray and Tune run in a driver process (`studies.backends.driver`). This process imports nothing of Ray: no hang, abort or
message of Ray reaches the user, and signals are handled at once.
"""

import os
import re
import secrets
import socket
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from studies.backends.backend import RunnerFactory, Watch, allowed_threads
from studies.backends.driver_process import (
    DriverOrder,
    DriverProcess,
    DriverProgress,
    Ended,
    Processes,
    launch_folder,
    not_taken_in,
)
from studies.backends.trial_files import FolderMark
from studies.errors import LaunchError, StudiesError
from studies.runtime.progress import ActiveClock, LaunchStatus, Progress, progress_before
from studies.runtime.study_plan import StudyPlan
from studies.study_file.sections import Fleet
from trial_runner.processes import start_of

if TYPE_CHECKING:
    from studies.ledger.ledger import Ledger

_POLL_SECONDS = 0.1
_START_SECONDS = 300.0
_CONNECT_SECONDS = 45.0
_SILENCE_SECONDS = 30.0
_DRAIN_SECONDS = 10.0
_ENDING_SECONDS = 2.0
_REACH_SECONDS = 5.0
_AGAIN = "Nothing is lost: launch again to continue."
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Environment of a process that allocates memory in large pages where available; its steps wait less for memory."""

_ENVIRONMENT = LARGE_PAGES | {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_worker_niceness": "0",  # otherwise other processes would starve the workers
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # a lost Ray is not silently replaced
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_AUTO_INIT": "1",
    "TUNE_MAX_PENDING_TRIALS_PG": "1024",  # otherwise workers would begin one after another
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "3600",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def run_tune(plan: StudyPlan, factory: RunnerFactory, options: Fleet, watch: Watch, ledger: "Ledger") -> LaunchStatus:
    """Run the fleet until the study is done or the watch stops it. See `studies.backends.backend.Backend`."""
    address = cluster_address()
    mark = None if address is None else FolderMark(folder=plan.artefacts)
    with launch_folder() as folder, nullcontext() if mark is None else mark.laid():
        order = DriverOrder(
            plan=plan,
            factory=factory,
            options=options,
            cores=len(os.sched_getaffinity(0)),
            allowed_threads=allowed_threads(),
            address=address,
            folder=folder,
            mark=mark,
        )
        with DriverProcess(order, driver_environment(order)) as driver:
            return Supervisor(driver, order, watch, ledger).run()


def cluster_address() -> str | None:
    """Return the Ray cluster of ``RAY_ADDRESS``; None for a private one.

    Raises:
        LaunchError: If there is no cluster at the address, or a private Ray would accept anyone.
    """
    address = ray_address()
    if not address:
        if os.environ.get("RAY_AUTH_MODE") == "disabled":
            raise LaunchError(
                "a Ray of the launch's own must ask for its token, since it listens on all interfaces; "
                "got RAY_AUTH_MODE=disabled. Unset it."
            )
        return None
    found = re.fullmatch(r"(\[[^\[\]\s]+\]|[^:\s\[\]/@]+):([0-9]{1,5})", address)
    if address != "auto" and (found is None or not 0 < int(found[2]) < 65536):
        raise LaunchError(
            f"RAY_ADDRESS must be HOST:PORT or auto, of a cluster that this machine is a node of; got {address!r}. "
            "Launch on one of its nodes, as with 'ray job submit'."
        )
    if found:
        try:
            socket.create_connection((found[1].strip("[]"), int(found[2])), timeout=_REACH_SECONDS).close()
        except (OSError, UnicodeError) as error:
            raise LaunchError(
                f"RAY_ADDRESS must name a Ray that runs; nobody answers at {address} "
                f"({getattr(error, 'strerror', None) or error}). Start it, or unset RAY_ADDRESS."
            ) from error
    return address


def ray_address() -> str:
    """Return ``$RAY_ADDRESS`` without blanks and line ends around it; empty for a Ray of the launch's own."""
    address = os.environ.get("RAY_ADDRESS", "").strip()
    return "" if address == "local" else address


def driver_environment(order: DriverOrder) -> dict[str, str]:
    """Return the environment of the driver and its children; the user's own values of tuning variables are kept."""
    cores = max(1, order.cores // (order.cores if order.options.workers == "auto" else int(order.options.workers)))
    threads = min(cores, order.allowed_threads or cores)
    wanted = _ENVIRONMENT | {"OMP_NUM_THREADS": str(threads)}
    settings = {name: value for name, value in wanted.items() if name not in os.environ}
    if order.address is not None:
        settings["RAY_ADDRESS"] = order.address
    else:
        token = order.folder / "token"
        token.touch(0o600, exist_ok=False)  # accessible to the user alone from the beginning
        token.write_text(secrets.token_hex(32))
        settings |= {
            "RAY_ADDRESS": "",
            "RAY_TMPDIR": str(order.folder),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": "",
            "RAY_AUTH_TOKEN_PATH": str(token),
        }
    return settings


class Supervisor:
    """Supervision of the driver: its messages, the clock, stop requests, and the end of a driver that hangs."""

    def __init__(self, driver: DriverProcess, order: DriverOrder, watch: Watch, ledger: "Ledger") -> None:
        """Supervise a driver that was started with an order."""
        self._driver = driver
        self._plan = order.plan
        self._address = order.address
        self._watch = watch
        self._ledger = ledger
        self._clock = ActiveClock(order.plan.lease_seconds)
        self._last_message_at = self._clock.seconds()
        self._began_at = time.monotonic()
        self._processes: Processes | None = None
        self._progress: Progress | None = None
        self._stop_reason = ""
        self._stop_by = 0.0

    def run(self) -> LaunchStatus:
        """Run until the driver has ended or must be ended.

        Raises:
            StudiesError: If the launch cannot continue.
        """
        while True:
            problem = self._problem()  # checked first: a driver that ended properly has sent its last message before
            try:
                ended = self._receive()
                # children of an ending process may end before it
                if ended is None and problem and self._driver.exit_code(_ENDING_SECONDS) is not None:
                    ended = self._drain_messages()
                if ended is not None:
                    return self._ended(ended)
            except EOFError:
                return self._lost(problem or f"its driver ended ({self._driver.exit_description})")
            if problem:
                return self._lost(problem)
            if self._watch.is_due():
                self._forward_stop_request()
                if self._progress is not None:
                    self._watch.show(self._progress)
            if self._stop_reason and (self._processes is None or time.monotonic() > self._stop_by):
                return self._as_left()

    def _receive(self) -> Ended | None:
        """Wait briefly for messages of the driver and process all of them; return the last one if it has ended.

        Raises:
            EOFError: If it ended without a last message.
        """
        message = self._driver.receive(_POLL_SECONDS)
        while message is not None:
            if isinstance(message, Ended):
                return message
            self._note(message)
            message = self._driver.receive(0.0)
        return None

    def _drain_messages(self) -> Ended | None:
        """Return the last message of a driver that ended together with its Ray; it may arrive late on a busy machine.

        Raises:
            EOFError: If it ended without a last message.
        """
        until = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < until:
            if ended := self._receive():
                return ended
        return None

    def _note(self, message: Processes | DriverProgress) -> None:
        self._last_message_at = self._clock.seconds()
        if isinstance(message, dict):
            self._processes = message
        elif message.progress is not None or message.waits_for:
            progress = message.progress or self._progress or progress_before(self._plan)
            self._progress = replace(progress, waits_for=message.waits_for)

    def _forward_stop_request(self) -> None:
        """Forward a stop request of the user or the time budget to the driver once."""
        reason = self._watch.reason_to_stop()
        if reason and not self._stop_reason:
            self._stop_reason = reason
            self._stop_by = time.monotonic() + self._watch.grace_seconds
            self._driver.stop(reason)

    def _problem(self) -> str:
        """Return the reason why the driver cannot continue; empty if there is none."""
        if self._processes is None:
            longest = _START_SECONDS if self._address is None else _CONNECT_SECONDS
            if time.monotonic() - self._began_at < longest:
                return ""
            return not_taken_in(self._address) if self._address else f"Ray did not start within {longest:g} s"
        for name, pid in self._processes.items():
            if start_of(pid) is None:
                return f"its {name} was lost"
        longest = max(self._plan.lease_seconds, _SILENCE_SECONDS)
        if self._clock.seconds() - self._last_message_at > longest:
            return f"its driver was silent for {longest:g} s"
        return ""

    def _ended(self, ended: Ended) -> LaunchStatus:
        if isinstance(ended, LaunchStatus):
            self._watch.show(ended.progress)
            return ended
        if self._stop_reason:
            return self._as_left()
        raise ended

    def _lost(self, what: str) -> LaunchStatus:
        """Return the status of a launch whose Ray was lost after a stop request.

        Raises:
            LaunchError: If no stop was requested.
        """
        if not self._stop_reason:
            self._forward_stop_request()
        if self._stop_reason:
            return self._as_left()
        raise LaunchError(f"Ray stopped during the launch: {what}. {_AGAIN}")

    def _as_left(self) -> LaunchStatus:
        """Return the status of a study whose workers were ended, as its ledger has it."""
        from studies.ledger.database import NO_PATIENCE

        progress = self._progress or progress_before(self._plan)
        with suppress(StudiesError):
            ledger = self._ledger.with_patience(NO_PATIENCE)
            progress = replace(progress, counts=ledger.state_counts(ledger.study(self._plan.study).id))
        progress = replace(progress, running=(), waits_for="")
        return LaunchStatus(progress=progress, is_done=False, exhausted="", drained=self._stop_reason, halted=None)
