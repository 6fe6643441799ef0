"""One worker in this process: no Ray, no second process, nothing to wait for."""

import os
import uuid

from studies.fleet.backend import FleetOptions, RunnerFactory, Watch, asked_threads, pack_size
from studies.fleet.worker import PackWorker
from studies.keeping.keeper import StudyKeeper
from studies.keeping.plan import StudyPlan
from studies.keeping.progress import Standing


def run_inline(plan: StudyPlan, factory: RunnerFactory, options: FleetOptions, watch: Watch) -> Standing:
    """Run one worker until the study is done or the watch says stop. See `studies.fleet.backend.Backend`."""
    cores = len(os.sched_getaffinity(0))
    runner = factory(min(cores, asked_threads() or cores))
    keeper = StudyKeeper(plan, name=f"inline {os.getpid()}")

    def look() -> bool:
        if watch.is_due():
            reason = watch.reason_to_stop()
            if reason:
                keeper.drain(reason)
            watch.show(keeper.progress())
        return keeper.is_drained

    try:
        name = f"inline/{uuid.uuid4().hex[:8]}"
        slots, fitting = pack_size(options, plan, 1)
        keeper.join(name)
        worker = PackWorker(
            name=name,
            keeper=keeper,
            runner=runner,
            slots=slots,
            fitting=fitting,
            folder=plan.artefacts,
            should_leave=look,
        )
        worker.work()
        standing = keeper.standing()
        watch.show(standing.progress)
        keeper.finish(standing.summary)
        return standing
    finally:
        keeper.close()
