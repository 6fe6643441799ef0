"""One worker in this process: no Ray, no second process, nothing to wait for."""

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from studies.errors import StudiesError
from studies.fleet.backend import FleetOptions, RunnerFactory, Watch, asked_threads, pack_size
from studies.fleet.trial_files import FilesInFolder
from studies.fleet.worker import PackWorker, crash_reason
from studies.keeping.keeper import StudyKeeper
from studies.keeping.plan import StudyPlan
from studies.keeping.progress import Standing, progress_before
from studies.store.patience import Patience
from trial_runner.requests import PackRunner

_HOLDS_PER_LEASE = 6


def run_inline(plan: StudyPlan, factory: RunnerFactory, options: FleetOptions, watch: Watch) -> Standing:
    """Run one worker after another until the study is done or the watch says stop.

    See `studies.fleet.backend.Backend`.
    """
    cores = len(os.sched_getaffinity(0))
    shown = progress_before(plan)

    def tell(text: str) -> None:
        watch.show(replace(shown, waits_for=text))

    patience = Patience(seconds=plan.patience_seconds, tell=tell, is_over=lambda: bool(watch.reason_to_stop()))
    keeper = StudyKeeper(plan, name=f"inline {os.getpid()}", patience=patience)

    def look() -> bool:
        nonlocal shown
        if watch.is_due():
            reason = watch.reason_to_stop()
            if reason:
                keeper.drain(reason)
            keeper.hold()
            shown = keeper.progress()
            watch.show(shown)
        return keeper.is_drained

    try:
        with _held(keeper, plan.lease_seconds):
            runner = factory(min(cores, asked_threads() or cores))
        while not _work(keeper, plan, runner, options, should_leave=look):
            pass
        standing = keeper.standing()
        watch.show(standing.progress)
        keeper.finish(standing.summary)
        return standing
    finally:
        keeper.close()


@contextmanager
def _held(keeper: StudyKeeper, lease_seconds: float) -> Iterator[None]:
    """Say that the study is being run while this process is busy with something else: a large backbone takes long."""
    is_over = threading.Event()

    def hold() -> None:
        while not is_over.wait(lease_seconds / _HOLDS_PER_LEASE):
            with suppress(StudiesError):  # the keeper says it again when it is asked
                keeper.hold()

    holding = threading.Thread(target=hold, daemon=True)
    holding.start()
    try:
        yield
    finally:
        is_over.set()
        holding.join()


def _work(
    keeper: StudyKeeper,
    plan: StudyPlan,
    runner: PackRunner,
    options: FleetOptions,
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
        snapshot_seconds=options.snapshot_seconds,
        files=FilesInFolder(runner, plan.artefacts),
        should_leave=should_leave,
    )
    try:
        worker.work()
    except StudiesError:
        with suppress(StudiesError):
            keeper.leave(name, ())
        raise
    except Exception as error:  # noqa: BLE001 - whatever one configuration raises ends no launch
        keeper.crash(name, crash_reason(error))
        return False
    return True
