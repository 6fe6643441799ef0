"""Keeper of a study: proposes, leases, records and decides, as the only writer of its ledger.

All lasting state is in the ledger; the state in memory is rebuilt from it at a takeover. A takeover fences the earlier
keeper: its next write raises `FencedError` and changes nothing.

::

    keeper.py       calls of workers and of the launch, one at a time; leases and silent workers
    state.py        the study's state
    trial_queue.py  the next trials, and their leases
    results.py      reports, and how trials end
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from studies.errors import LaunchError, StudiesError
from studies.history.history import StudyHistory
from studies.ledger.leases import LAID_ASIDE, MACHINE_LOST
from studies.ledger.ledger import Ledger
from studies.records import EventKind, TrialReport, TrialState
from studies.runtime.messages import Decision, Machines, WorkerAnswer
from studies.runtime.progress import ActiveClock, Clock, LaunchStatus, Progress
from studies.runtime.results import Results
from studies.runtime.roster import MAX_LOSSES
from studies.runtime.state import StudyState, loss_reason
from studies.runtime.study_plan import StudyPlan
from studies.runtime.trial_queue import TrialQueue
from studies.search.proposer import Proposer

MAX_CRASHES = 5
"""Number of worker crashes in a row without a reading, or of losses while loading, after which a launch ends."""

STOP_REQUEST_SECONDS = 2.0
"""Interval at which stop requests are read."""

STOPPED = "stopped by a user"


class StudyKeeper:
    """Keeper of one study from takeover to the end of a launch; serves one call at a time, from any thread.

    A worker is named ``place/incarnation``: the place is stable, the incarnation changes with every start. Calls of
    workers may be repeated safely.

    """

    def __init__(
        self,
        plan: StudyPlan,
        ledger: Ledger,
        *,
        name: str = "keeper",
        machines: Machines = Machines(),  # noqa: B008 - a value
        clock: Clock = time.monotonic,
    ) -> None:
        """Take the study over: fence earlier keepers, requeue their running trials, rebuild the state.

        Args:
            plan: Plan of the study.
            ledger: Open ledger of the study, which the caller closes.
            name: Name of the keeper in the study's events.
            machines: Machines of the workers.
            clock: Monotonic clock, in seconds.

        Raises:
            StudiesError: If the study is missing.
        """
        self._plan = plan
        self._machines = machines
        self._lock = threading.RLock()
        self._state = StudyState(plan, ledger, name=name, clock=clock)
        self._queue = TrialQueue(self._state)
        self._results = Results(self._state)
        self._ledger, self._roster = ledger, self._state.roster
        self._study, self._epoch = self._state.study, self._state.epoch
        self._clock = ActiveClock(plan.lease_seconds, clock)
        self._drained = ""
        self._halted: StudiesError | None = None
        self._lost_while_loading = 0
        self._next_hold = self._next_stop_check = 0.0
        self._silent: list[str] = []
        self._why: dict[str, str] = {}

    def join(self, worker: str) -> None:
        """Register a worker; trials of its earlier incarnation are requeued."""
        with self._serving():
            replaced = self._roster.register(worker, self._clock.seconds(), self._state.clock())
            if replaced is not None:
                self._reclaim_trials(replaced, self._why.pop(worker.partition("/")[0], f"replaced by {worker}"))
                self._count_loading_loss(replaced)

    def exchange(self, worker: str, reports: Sequence[TrialReport], free_slots: int) -> WorkerAnswer:
        """Record reports and return decisions and new leases."""
        with self._serving():
            self._record_heartbeat(worker)
            self._roster.loaded.add(worker)
            self._lost_while_loading = 0
            decisions = self._results.settle(worker, reports)
            is_dismissed = self._is_dismissed(worker)
            # free_slots already includes the slots of failed trials
            failed = {report.trial for report in reports if report.state is TrialState.FAILED}
            decided = zip(reports, decisions, strict=True)
            freed = {report.trial for report, decision in decided if decision is not Decision.GO_ON} - failed
            requests = () if is_dismissed else tuple(self._queue.lease(worker, free_slots + len(freed)))
            return WorkerAnswer(
                decisions=decisions,
                requests=requests,
                snapshots=self._queue.snapshots(requests),
                is_over=is_dismissed or self._is_done(),
            )

    def prepare(self) -> bool:
        """Propose a trial ahead of need; see `TrialQueue.prepare`."""
        with self._serving():
            return not self._drained and self._queue.prepare()

    def heartbeat(self, worker: str) -> bool:
        """Renew the worker's leases; return whether it should checkpoint its trials and leave."""
        with self._serving():
            self._record_heartbeat(worker)
            return self._is_dismissed(worker)

    def must_move(self, worker: str) -> bool:
        """Return whether a dismissed worker is needed elsewhere: its machine leaves and the study goes on."""
        with self._serving():
            return self._machines.is_leaving(worker) and not self._drained and not self._is_done()

    def ended(self, place: str, why: str) -> None:
        """Record that the process of a worker ended and will be replaced; ``why`` is half a sentence."""
        with self._serving():
            self._why[place] = why
            self._state.record_event(EventKind.MACHINE, f"{place} {why}")

    def note(self, text: str) -> None:
        """Record an event of the machines."""
        with self._serving():
            self._state.record_event(EventKind.MACHINE, text)

    def leave(self, worker: str, reports: Sequence[TrialReport]) -> None:
        """Record the last snapshots of a worker and requeue all its trials."""
        with self._serving():
            self._results.settle(worker, reports)
            held = self._roster.held_by(worker)
            if held:
                self._ledger.release(self._study.id, self._epoch, worker, LAID_ASIDE)
                self._state.queue(held)
            self._roster.forget(worker)

    def crash(self, worker: str, text: str) -> None:
        """Record an error of a worker that no trial caused; repeated crashes end the launch."""
        with self._serving():
            self._state.record_event(EventKind.CRASH, f"{worker}: {text}")
            self._reclaim_trials(worker, f"crashed: {text}")
            self._state.crashes += 1
            if self._state.crashes >= MAX_CRASHES:
                raise LaunchError(f"workers crashed {self._state.crashes} times in a row; the last error: {text}")

    def halt(self, error: StudiesError) -> None:
        """End the launch with an error that no retry can fix."""
        self._halted = self._halted or error
        self.drain(str(error))

    def drain(self, reason: str) -> None:
        """Stop leasing and dismiss the workers if there is a reason; the study can be continued later."""
        self._drained = self._drained or reason

    @property
    def is_drained(self) -> bool:
        """Whether the workers were dismissed."""
        return bool(self._drained)

    def hold(self) -> None:
        """Renew the hold on the study from time to time."""
        now, seconds = self._state.clock(), self._plan.lease_seconds
        if not self._plan.launch or now < self._next_hold or self._halted is not None:
            return
        with self._serving():
            self._ledger.renew_hold(self._study.id, self._epoch, self._plan.launch, seconds)
        self._next_hold = now + seconds / 3

    def status(self, expected: Sequence[str] = ()) -> LaunchStatus:
        """Return the status of the launch with its progress.

        Args:
            expected: Workers of an earlier keeper of this launch, which may be silent as well.
        """
        with self._lock:
            if self._halted is None:
                self._roster.expect(expected, self._clock.seconds())
                with self._serving():
                    self._tick()
            return LaunchStatus(
                progress=self.progress(),
                is_done=self._is_done(),
                exhausted=self._queue.exhausted,
                drained=self._drained,
                halted=self._halted,
                silent=tuple(self._silent),
            )

    @property
    def history(self) -> StudyHistory:
        """Past of the study, equal to that of the ledger between two calls."""
        return self._state.history

    @property
    def proposer(self) -> Proposer:
        """Proposals of the study."""
        return self._state.proposer

    def progress(self) -> Progress:
        """Return the progress of the study."""
        with self._lock:
            return self._state.progress(is_exhausted=bool(self._queue.exhausted))

    def finish(self, text: str) -> None:
        """Record how the launch ended, and remove unrecorded files."""
        with self._serving():
            self._state.record_event(EventKind.LAUNCH, text)
            self._state.sweep()

    # ---- inside a call

    @contextmanager
    def _serving(self) -> Iterator[None]:
        """Serve one call at a time; refuse calls after an error of the ledger, since memory and ledger may differ."""
        with self._lock:
            if self._halted is not None:
                raise self._halted
            try:
                yield
            except StudiesError as error:
                self.halt(error)
                raise

    def _is_dismissed(self, worker: str) -> bool:
        """Return whether a worker must checkpoint its trials and leave."""
        return bool(self._drained) or self._roster.is_replaced(worker) or self._machines.is_leaving(worker)

    def _count_loading_loss(self, lost: str) -> None:
        """Count the workers in a row that were lost before they received a trial.

        Raises:
            LaunchError: If there are too many.
        """
        if lost in self._roster.loaded or self._machines.is_gone(lost):
            return
        self._lost_while_loading += 1
        if self._lost_while_loading >= MAX_CRASHES:
            raise LaunchError(
                f"cannot load the backbone and the task: {self._lost_while_loading} workers in a row were lost while "
                "loading, perhaps out of memory. Use fewer workers, or a smaller backbone."
            )

    def _is_done(self) -> bool:
        return self._queue.is_empty and not self._roster.leases

    def _record_heartbeat(self, worker: str) -> None:
        """Record a heartbeat of a worker, renew its leases, and check for silent workers."""
        if not self._roster.is_replaced(worker):
            self._roster.record_heartbeat(worker, self._clock.seconds())
        if self._roster.is_to_renew(worker, self._state.clock(), self._plan.lease_seconds / 3):
            self._ledger.renew(self._study.id, self._epoch, worker, self._plan.lease_seconds)
        self._tick()

    def _process_stop_requests(self) -> None:
        """End the trials whose stop was requested; dismiss the workers if it was the study."""
        now = self._state.clock()
        if now < self._next_stop_check:
            return
        self._next_stop_check = now + STOP_REQUEST_SECONDS
        for number in self._ledger.to_stop(self._study.id):
            if number is None:
                self.drain(STOPPED)
            elif (held := self._roster.leases.get(number)) is not None and held.worker is not None:
                self._results.fail(held, f"{STOPPED} at step {self._state.history[number].steps}")

    def _tick(self) -> None:
        self.hold()
        self._process_stop_requests()
        seconds = self._plan.lease_seconds
        for worker in self._roster.silent(self._clock.seconds(), seconds):
            self._silent.append(worker)
            # a machine without free memory replaces an ended process slowly
            self._reclaim_trials(worker, self._why.pop(worker.partition("/")[0], f"silent for {seconds:g} s"))

    def _reclaim_trials(self, worker: str, why: str) -> None:
        """Requeue the trials of a lost worker; a trial lost too often while its machine was up fails."""
        self._roster.forget(worker)
        held = self._roster.held_by(worker)
        if held and self._machines.is_gone(worker):
            why, blamed = MACHINE_LOST, []
        else:
            blamed = held
        for lease in blamed:
            lease.losses += 1
            if lease.losses >= MAX_LOSSES:
                self._results.fail(lease, loss_reason(lease.losses, why))
        held = self._roster.held_by(worker)
        if held:
            self._ledger.release(self._study.id, self._epoch, worker, why)
            self._state.queue(held)
