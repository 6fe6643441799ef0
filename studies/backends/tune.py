"""The fleet on Ray, as the launching process runs it: from outside, with a deadline for everything.

Ray and Tune run in a driver process (`studies.backends.driver`). This process loads nothing of Ray: no hang, abort or
message of Ray reaches the user, and signals are handled at once.
"""

import os
import re
import secrets
import socket
import time
from contextlib import nullcontext, suppress
from dataclasses import replace

from studies.backends.backend import RunnerFactory, Watch, asked_threads
from studies.backends.driver_process import (
    DriverOrder,
    DriverProcess,
    Ended,
    Processes,
    Shown,
    launch_folder,
    not_taken_in,
)
from studies.backends.trial_files import FolderMark
from studies.errors import LaunchError, StudiesError
from studies.runtime.progress import ListeningClock, Progress, Standing, progress_before
from studies.runtime.study_plan import StudyPlan
from studies.study_file.sections import Fleet
from trial_runner.processes import start_of

_LOOK_SECONDS = 0.1
_START_SECONDS = 300.0
_CONNECT_SECONDS = 45.0
_SILENCE_SECONDS = 30.0
_LAST_WORD_SECONDS = 10.0
_ENDING_SECONDS = 2.0
_REACH_SECONDS = 5.0
_AGAIN = "Nothing is lost: launch again to continue."
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Of a process that asks the system for memory in large pages, where it gives them: its steps wait less for memory."""

_ENVIRONMENT = LARGE_PAGES | {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_worker_niceness": "0",  # else any other process of the machine would starve the workers
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # a Ray that was lost is not replaced by one that nobody asked for
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_AUTO_INIT": "1",
    "TUNE_MAX_PENDING_TRIALS_PG": "1024",  # else workers would begin one after another
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "3600",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def run_tune(plan: StudyPlan, factory: RunnerFactory, options: Fleet, watch: Watch) -> Standing:
    """Run the fleet until the study is done or the watch says stop. See `studies.backends.backend.Backend`."""
    address = cluster_address()
    mark = None if address is None else FolderMark(folder=plan.artefacts)
    with launch_folder() as folder, nullcontext() if mark is None else mark.laid():
        order = DriverOrder(
            plan=plan,
            factory=factory,
            options=options,
            cores=len(os.sched_getaffinity(0)),
            asked_threads=asked_threads(),
            address=address,
            folder=folder,
            mark=mark,
        )
        with DriverProcess(order, _environment(order)) as driver:
            return _Supervisor(driver, order, watch).run()


def cluster_address() -> str | None:
    """The Ray that the user names by ``RAY_ADDRESS``; None for one of the launch's own.

    Raises:
        LaunchError: If nobody answers there, or a Ray of the launch's own would let everybody in.
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


def _environment(order: DriverOrder) -> dict[str, str]:
    """Settings of the driver and what it starts; of those that only tune something, what the user has set stands."""
    cores = max(1, order.cores // (order.cores if order.options.workers == "auto" else int(order.options.workers)))
    threads = min(cores, order.asked_threads or cores)
    wanted = _ENVIRONMENT | {"OMP_NUM_THREADS": str(threads)}
    settings = {name: value for name, value in wanted.items() if name not in os.environ}
    if order.address is not None:
        settings["RAY_ADDRESS"] = order.address
    else:
        token = order.folder / "token"
        token.touch(0o600, exist_ok=False)  # its user's alone from the first moment
        token.write_text(secrets.token_hex(32))
        settings |= {
            "RAY_ADDRESS": "",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": "",
            "RAY_AUTH_TOKEN_PATH": str(token),
        }
    return settings


class _Supervisor:
    """Hears the driver, looks at the clock and at the user's wishes, and ends what does not end by itself."""

    def __init__(self, driver: DriverProcess, order: DriverOrder, watch: Watch) -> None:
        self._driver = driver
        self._plan = order.plan
        self._address = order.address
        self._watch = watch
        self._clock = ListeningClock(order.plan.lease_seconds)
        self._heard_at = self._clock.look()
        self._began_at = time.monotonic()
        self._processes: Processes | None = None
        self._progress: Progress | None = None
        self._stop_reason = ""
        self._stop_by = 0.0

    def run(self) -> Standing:
        """Until the driver has ended, or must be ended.

        Raises:
            StudiesError: If the launch cannot go on.
        """
        while True:
            trouble = self._trouble()  # looked for first: a driver that has ended properly has said so before
            try:
                ended = self._hear()
                # of a process that ends, its children may be gone before it is
                if ended is None and trouble and self._driver.ends_within(_ENDING_SECONDS):
                    ended = self._last_word()
                if ended is not None:
                    return self._ended(ended)
            except EOFError:
                return self._lost(trouble or f"its driver ended ({self._driver.last_words})")
            if trouble:
                return self._lost(trouble)
            if self._watch.is_due():
                self._see_to_wishes()
                if self._progress is not None:
                    self._watch.show(self._progress)
            if self._stop_reason and (self._processes is None or time.monotonic() > self._stop_by):
                return self._as_left()

    def _hear(self) -> Ended | None:
        """Wait a moment for what the driver says, and hear all of it; how it ended, once it has.

        Raises:
            EOFError: If it has ended without a word.
        """
        said = self._driver.hear(_LOOK_SECONDS)
        while said is not None:
            if isinstance(said, Ended):
                return said
            self._note(said)
            said = self._driver.hear(0.0)
        return None

    def _last_word(self) -> Ended | None:
        """What a driver that has ended, and its Ray with it, has said: on a busy machine it is taken in later.

        Raises:
            EOFError: If it has ended without a word.
        """
        until = time.monotonic() + _LAST_WORD_SECONDS
        while time.monotonic() < until:
            if ended := self._hear():
                return ended
        return None

    def _note(self, said: Processes | Shown) -> None:
        self._heard_at = self._clock.look()
        if isinstance(said, dict):
            self._processes = said
        elif said.progress is not None or said.waits_for:
            progress = said.progress or self._progress or progress_before(self._plan)
            self._progress = replace(progress, waits_for=said.waits_for)

    def _see_to_wishes(self) -> None:
        """Tell the driver once that the user or the clock wants to stop."""
        reason = self._watch.reason_to_stop()
        if reason and not self._stop_reason:
            self._stop_reason = reason
            self._stop_by = time.monotonic() + self._watch.grace_seconds
            self._driver.stop(reason)

    def _trouble(self) -> str:
        """What must not be while the driver runs; empty if all is well."""
        if self._processes is None:
            longest = _START_SECONDS if self._address is None else _CONNECT_SECONDS
            if time.monotonic() - self._began_at < longest:
                return ""
            return not_taken_in(self._address) if self._address else f"it did not start within {longest:g} s"
        for name, pid in self._processes.items():
            if start_of(pid) is None:
                return f"its {name} was lost"
        longest = max(self._plan.lease_seconds, _SILENCE_SECONDS)
        if self._clock.look() - self._heard_at > longest:
            return f"its driver was silent for {longest:g} s"
        return ""

    def _ended(self, ended: Ended) -> Standing:
        if isinstance(ended, Standing):
            self._watch.show(ended.progress)
            return ended
        if self._stop_reason:
            return self._as_left()
        raise ended

    def _lost(self, what: str) -> Standing:
        """End a launch that has lost its Ray; whoever wanted to stop has what they wanted.

        Raises:
            LaunchError: If nobody wanted to stop.
        """
        if not self._stop_reason:
            self._see_to_wishes()
        if self._stop_reason:
            return self._as_left()
        raise LaunchError(f"Ray must run as long as the launch; {what}. {_AGAIN}")

    def _as_left(self) -> Standing:
        """Where the study stands when its workers were ended instead of sent away, as its ledger has it."""
        from studies.ledger.ledger import Ledger

        progress = self._progress or progress_before(self._plan)
        with suppress(StudiesError), Ledger.open(self._plan.storage_url, read_only=True) as ledger:
            progress = replace(progress, counts=ledger.state_counts(ledger.study(self._plan.study).id))
        progress = replace(progress, running=(), waits_for="")
        return Standing(progress=progress, is_done=False, exhausted="", drained=self._stop_reason, halted=None)
