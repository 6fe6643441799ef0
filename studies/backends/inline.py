"""One worker in this process: no Ray, no second process, nothing to wait for."""

import os
import threading
import uuid
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

    def look() -> bool:
        nonlocal shown
        if watch.is_due():
            keeper.drain(watch.reason_to_stop())
            keeper.hold()
            shown = keeper.progress()
            show(shown)
        return keeper.is_drained

    at_work = ""

    def beat() -> float:
        """While the worker of this process is busy, it is heard and the study is held."""
        keeper.hold()
        if at_work:
            keeper.heartbeat(at_work)
        return _BEAT_SECONDS

    try:
        with Beside(beat, keeper.halt):
            runner = factory(min(cores, asked_threads() or cores))
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
                    should_leave=look,
                )
                at_work = name
                try:
                    is_over = worker.work()
                except StudiesError:  # the launch cannot go on; no trial is to blame for that
                    with suppress(StudiesError):
                        keeper.leave(name, ())
                    raise
                except Exception as error:  # noqa: BLE001 - whatever one configuration raises ends no launch
                    at_work = ""
                    keeper.crash(name, crash_reason(error))  # which counts against the trials that it held
                finally:
                    at_work = ""
        standing = keeper.standing()
        show(standing.progress)
        keeper.finish(standing.summary)
        return standing
    finally:
        keeper.close()
