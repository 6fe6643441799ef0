"""One worker in this process: no Ray, no second process, nothing to wait for."""

import os
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from studies.backends.backend import SNAPSHOT_SECONDS, RunnerFactory, Watch, asked_threads, pack_size
from studies.backends.trial_files import FilesInFolder
from studies.backends.worker import PackWorker
from studies.errors import StudiesError
from studies.ledger.database import Patience
from studies.runtime.background_thread import Beside
from studies.runtime.keeper import StudyKeeper
from studies.runtime.messages import crash_reason
from studies.runtime.progress import Progress, Standing, progress_before
from studies.runtime.study_plan import StudyPlan
from studies.study_file.sections import Fleet
from trial_runner.requests import PackRunner

_BEAT_SECONDS = 1.0


def run_inline(plan: StudyPlan, factory: RunnerFactory, options: Fleet, watch: Watch) -> Standing:
    """Run one worker after another until the study is done or the watch says stop.

    See `studies.backends.backend.Backend`.
    """
    cores = len(os.sched_getaffinity(0))
    shown = progress_before(plan)
    one_at_a_time = threading.RLock()

    def show(progress: Progress) -> None:
        with one_at_a_time:
            watch.show(progress)

    def tell(text: str) -> None:
        show(replace(shown, waits_for=text))

    patience = Patience(seconds=plan.patience_seconds, tell=tell, is_over=lambda: bool(watch.reason_to_stop()))
    keeper = StudyKeeper(plan, name=f"inline {os.getpid()}", patience=patience)
    presence = _Presence(keeper)

    def look() -> bool:
        nonlocal shown
        if watch.is_due():
            reason = watch.reason_to_stop()
            if reason:
                keeper.drain(reason)
            keeper.hold()
            shown = keeper.progress()
            show(shown)
        return keeper.is_drained

    try:
        with Beside(presence, keeper.halt):
            runner = factory(min(cores, asked_threads() or cores))
            while not _work(keeper, presence, plan, runner, options, should_leave=look):
                pass
        standing = keeper.standing()
        show(standing.progress)
        keeper.finish(standing.summary)
        return standing
    finally:
        keeper.close()


class _Presence:
    """While the worker of this process is busy, it is heard and the study is held."""

    def __init__(self, keeper: StudyKeeper) -> None:
        self.worker = ""
        self._keeper = keeper

    def __call__(self) -> float:
        self._keeper.hold()
        if self.worker:
            self._keeper.heartbeat(self.worker)
        return _BEAT_SECONDS


def _work(
    keeper: StudyKeeper,
    presence: _Presence,
    plan: StudyPlan,
    runner: PackRunner,
    options: Fleet,
    *,
    should_leave: Callable[[], bool],
) -> bool:
    """Whether a worker came to its end; False when it crashed, which counts against the trials that it held.

    Raises:
        StudiesError: If the launch cannot go on; no trial is to blame for that.
    """
    name = f"inline/{uuid.uuid4().hex[:8]}"
    slots, fitting = pack_size(options, plan, 1)
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
    presence.worker = name
    try:
        worker.work()
    except StudiesError:
        with suppress(StudiesError):
            keeper.leave(name, ())
        raise
    except Exception as error:  # noqa: BLE001 - whatever one configuration raises ends no launch
        presence.worker = ""
        keeper.crash(name, crash_reason(error))
        return False
    finally:
        presence.worker = ""
    return True
