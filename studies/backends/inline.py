"""Backend with one worker in this process, without Ray."""

import os
import threading
import uuid
from contextlib import suppress
from dataclasses import replace

from studies.backends.backend import SNAPSHOT_SECONDS, RunnerFactory, Watch, allowed_threads, pack_size
from studies.backends.trial_files import FilesInFolder
from studies.backends.worker import PackWorker
from studies.errors import StudiesError
from studies.ledger.database import Patience
from studies.ledger.ledger import Ledger
from studies.runtime.keeper import StudyKeeper
from studies.runtime.messages import crash_reason
from studies.runtime.periodic_thread import PeriodicThread
from studies.runtime.progress import LaunchStatus, Progress, progress_before
from studies.runtime.study_plan import StudyPlan
from studies.study_file.sections import Fleet

_BEAT_SECONDS = 1.0


def run_inline(plan: StudyPlan, factory: RunnerFactory, options: Fleet, watch: Watch, ledger: Ledger) -> LaunchStatus:
    """Run one worker after another until the study is done or the watch stops it.

    See `studies.backends.backend.Backend`.
    """
    cores = len(os.sched_getaffinity(0))
    shown = progress_before(plan)
    lock = threading.RLock()

    def show(progress: Progress) -> None:
        with lock:
            watch.show(progress)

    def show_wait(text: str) -> None:
        show(replace(shown, waits_for=text))

    patience = Patience(seconds=plan.patience_seconds, tell=show_wait, is_over=lambda: bool(watch.reason_to_stop()))
    keeper = StudyKeeper(plan, ledger.with_patience(patience), name=f"inline {os.getpid()}")

    def should_leave() -> bool:
        nonlocal shown
        if watch.is_due():
            keeper.drain(watch.reason_to_stop())
            keeper.hold()
            shown = keeper.progress()
            show(shown)
        return keeper.is_drained

    busy_worker = ""

    def beat() -> float:
        """Hold the study and send heartbeats while the worker is busy."""
        keeper.hold()
        if busy_worker:
            keeper.heartbeat(busy_worker)
        return _BEAT_SECONDS

    with PeriodicThread(beat, keeper.halt):
        runner = factory(min(cores, allowed_threads() or cores))
        slots, fitting = pack_size(options, plan, 1)
        is_over = False
        while not is_over:
            name = f"inline/{uuid.uuid4().hex[:8]}"
            keeper.join(name)
            worker = PackWorker(
                name=name,
                keeper=keeper,
                runner=runner,
                slots=slots,
                fitting=fitting,
                snapshot_seconds=SNAPSHOT_SECONDS,
                files=FilesInFolder(runner, plan.artefacts),
                should_leave=should_leave,
            )
            busy_worker = name
            try:
                is_over = worker.work()
            except StudiesError:  # the launch cannot continue; no trial caused it
                with suppress(StudiesError):
                    keeper.leave(name, ())
                raise
            except Exception as error:  # noqa: BLE001 - no configuration may end the launch
                busy_worker = ""
                keeper.crash(name, crash_reason(error))  # it counts as a loss of the held trials
            finally:
                busy_worker = ""
    status = keeper.status()
    show(status.progress)
    keeper.finish(status.summary)
    return status
