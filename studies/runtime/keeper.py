"""The keeper of a study: proposes, leases, records, decides. The only writer of its ledger.

All that must survive is in the ledger; what is held here is rebuilt from it when a keeper takes the study over. Whoever
takes it over later fences this one: its next write raises `FencedError` and changes nothing.

::

    keeper.py       what workers and the launch say, one call at a time; leases and silence
    state.py        what it knows of the study
    trial_queue.py  which trials come next, and who is lent them
    results.py      what is reported of them, and how they end
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from studies.errors import LaunchError, StudiesError
from studies.ledger.database import Patience
from studies.ledger.leases import LAID_ASIDE, MACHINE_LOST
from studies.records import EventKind, TrialReport, TrialState
from studies.runtime.messages import Decision, Machines, WorkerAnswer
from studies.runtime.progress import ListeningClock, Progress, Standing
from studies.runtime.results import Results
from studies.runtime.roster import MAX_LOSSES
from studies.runtime.state import StudyState, loss_reason
from studies.runtime.study_plan import StudyPlan
from studies.runtime.trial_queue import TrialQueue

MAX_CRASHES = 5
"""A launch ends after so many crashes of workers in a row without a reading, or losses of workers that load."""

_HEED_SECONDS = 2.0
"""How long a request to stop may wait until the keeper looks."""

STOPPED = "a person stopped it"


class StudyKeeper:
    """Keeps one study, from takeover to the end of a launch. Serves one call at a time, from whichever thread.

    A worker is named ``place/incarnation``: the place is stable, the incarnation new with every start. Its calls may be
    repeated without harm.

    Attributes:
        proposer: Told of all that is in the ledger.
    """

    def __init__(
        self,
        plan: StudyPlan,
        *,
        name: str = "keeper",
        patience: Patience | None = None,
        machines: Machines = Machines(),  # noqa: B008 - a value
    ) -> None:
        """Take the study over: fence earlier keepers, queue what they had running, rebuild what they knew.

        Args:
            name: Who takes it over, in the study's events.
            patience: For a database that is locked or away, now and later.
            machines: Of the workers.

        Raises:
            StudiesError: If the study or its storage is not there.
        """
        self._plan = plan
        self._machines = machines
        self._lock = threading.RLock()
        self._state = StudyState(plan, name=name, patience=patience)
        self._queue = TrialQueue(self._state)
        self._results = Results(self._state)
        self._ledger, self._roster, self.proposer = self._state.ledger, self._state.roster, self._state.proposer
        self._study, self._epoch = self._state.study, self._state.epoch
        self._clock = ListeningClock(plan.lease_seconds)
        self._drained = ""
        self._halted: StudiesError | None = None
        self._unbegun = 0
        self._hold_again_at = self._heed_again_at = 0.0
        self._silent: list[str] = []
        self._why: dict[str, str] = {}

    def join(self, worker: str) -> None:
        """Begin to work; what an earlier incarnation of the worker still held goes back in the queue."""
        with self._serving():
            replaced = self._roster.enter(worker, self._clock.look(), time.monotonic())
            if replaced is not None:
                self._lose(replaced, self._why.pop(worker.partition("/")[0], f"replaced by {worker}"))
                self._count_unbegun(replaced)

    def exchange(self, worker: str, reports: Sequence[TrialReport], free_slots: int) -> WorkerAnswer:
        """Hand in reports, hear the decisions and be lent new trials."""
        with self._serving():
            self._hear(worker)
            self._roster.begun.add(worker)
            self._unbegun = 0
            decisions = self._results.settle(worker, reports)
            is_dismissed = self._is_dismissed(worker)
            # the slot of a failed trial is among the free ones already
            failed = {report.trial for report in reports if report.state is TrialState.FAILED}
            told = zip(reports, decisions, strict=True)
            freed = {report.trial for report, decision in told if decision is not Decision.GO_ON} - failed
            requests = () if is_dismissed else tuple(self._queue.lend(worker, free_slots + len(freed)))
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
        """Renew the worker's leases; True when it should lay its trials aside and leave."""
        with self._serving():
            self._hear(worker)
            return self._is_dismissed(worker)

    def must_move(self, worker: str) -> bool:
        """Whether a worker that was sent away is wanted elsewhere: its machine leaves, and the study goes on."""
        with self._serving():
            return self._machines.is_leaving(worker) and not self._drained and not self._is_done()

    def ended(self, place: str, why: str) -> None:
        """The process of a worker has ended, and another will begin in its place; why, in half a sentence."""
        with self._serving():
            self._why[place] = why
            self._state.record_event(EventKind.MACHINE, f"{place} {why}")

    def note(self, text: str) -> None:
        """Record something worth knowing of the machines."""
        with self._serving():
            self._state.record_event(EventKind.MACHINE, text)

    def leave(self, worker: str, reports: Sequence[TrialReport]) -> None:
        """Hand in the last snapshots; every trial of the worker goes back in the queue."""
        with self._serving():
            self._results.settle(worker, reports)
            held = self._roster.held_by(worker)
            if held:
                self._ledger.release(self._study.id, self._epoch, worker, LAID_ASIDE)
                self._state.queue(held)
            self._roster.forget(worker)

    def crash(self, worker: str, text: str) -> None:
        """A worker met an error that is nobody's trial's; the launch ends when that happens again and again."""
        with self._serving():
            self._state.record_event(EventKind.CRASH, f"{worker}: {text}")
            self._lose(worker, f"crashed: {text}")
            self._state.crashes += 1
            if self._state.crashes >= MAX_CRASHES:
                raise LaunchError(f"workers crashed {self._state.crashes} times in a row; the last said: {text}")

    def halt(self, error: StudiesError) -> None:
        """End the launch for a reason that no retry can mend."""
        self._halted = self._halted or error
        self.drain(str(error))

    def drain(self, reason: str) -> None:
        """Lend nothing more and send the workers away, if there is a reason; the study can be continued later."""
        self._drained = self._drained or reason

    @property
    def is_drained(self) -> bool:
        """Whether the workers were sent away."""
        return bool(self._drained)

    def hold(self) -> None:
        """Say that the study is being run, now and then."""
        now, seconds = time.monotonic(), self._plan.lease_seconds
        if not self._plan.launch or now < self._hold_again_at or self._halted is not None:
            return
        with self._serving():
            self._ledger.renew_hold(self._study.id, self._epoch, self._plan.launch, seconds)
        self._hold_again_at = now + seconds / 3

    def standing(self, expected: Sequence[str] = ()) -> Standing:
        """Where the launch stands, and the study's progress.

        Args:
            expected: Workers that an earlier keeper of the launch has known: those too may be silent.
        """
        with self._lock:
            if self._halted is None:
                self._roster.expect(expected, self._clock.look())
                with self._serving():
                    self._tick()
            return Standing(
                progress=self.progress(),
                is_done=self._is_done(),
                exhausted=self._queue.exhausted,
                drained=self._drained,
                halted=self._halted,
                silent=tuple(self._silent),
            )

    def progress(self) -> Progress:
        """The study as it is now."""
        with self._lock:
            return self._state.progress(is_exhausted=bool(self._queue.exhausted))

    def finish(self, text: str) -> None:
        """Note how the launch ended, and leave no file behind that belongs to nothing."""
        with self._serving():
            self._state.record_event(EventKind.LAUNCH, text)
            self._state.sweep()

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    # ---- what happens inside a call

    @contextmanager
    def _serving(self) -> Iterator[None]:
        """Let others wait. Refuse to go on after an error of the ledger: memory and ledger may then differ."""
        with self._lock:
            if self._halted is not None:
                raise self._halted
            try:
                yield
            except StudiesError as error:
                self.halt(error)
                raise

    def _is_dismissed(self, worker: str) -> bool:
        """Whether a worker is to lay its trials aside and leave."""
        return bool(self._drained) or self._roster.is_replaced(worker) or self._machines.is_leaving(worker)

    def _count_unbegun(self, lost: str) -> None:
        """Count the workers in a row that were lost before they took a trial.

        Raises:
            LaunchError: If they are too many.
        """
        if lost in self._roster.begun or self._machines.is_gone(lost):
            return
        self._unbegun += 1
        if self._unbegun >= MAX_CRASHES:
            raise LaunchError(
                f"workers must be able to load the backbone and the task; {self._unbegun} in a row were lost while "
                "they did, perhaps for want of memory. Ask for fewer workers, or a smaller backbone."
            )

    def _is_done(self) -> bool:
        return self._queue.is_empty and not self._roster.trials

    def _hear(self, worker: str) -> None:
        """Note a sign of life of a worker, and what follows from others' silence."""
        if not self._roster.is_replaced(worker):
            self._roster.hear(worker, self._clock.look())
        if self._roster.is_to_renew(worker, time.monotonic(), self._plan.lease_seconds / 3):
            self._ledger.renew(self._study.id, self._epoch, worker, self._plan.lease_seconds)
        self._tick()

    def _heed(self) -> None:
        """End the trials that people have asked to stop; send the workers away if it was the study."""
        now = time.monotonic()
        if now < self._heed_again_at:
            return
        self._heed_again_at = now + _HEED_SECONDS
        for number in self._ledger.to_stop(self._study.id):
            if number is None:
                self.drain(STOPPED)
            elif (held := self._roster.trials.get(number)) is not None and held.worker is not None:
                self._results.fail(held, f"{STOPPED} at step {held.step}")

    def _tick(self) -> None:
        self.hold()
        self._heed()
        seconds = self._plan.lease_seconds
        for worker in self._roster.silent(self._clock.look(), seconds):
            self._silent.append(worker)
            # a machine that has no memory left is slow to put another in the place of a process that has ended
            self._lose(worker, self._why.pop(worker.partition("/")[0], f"silent for {seconds:g} s"))

    def _lose(self, worker: str, why: str) -> None:
        """Take back what a worker holds; a trial that was lost too often, not with its machine, fails."""
        self._roster.forget(worker)
        held = self._roster.held_by(worker)
        if held and self._machines.is_gone(worker):
            why, to_blame = MACHINE_LOST, []
        else:
            to_blame = held
        for open_trial in to_blame:
            open_trial.losses += 1
            if open_trial.losses >= MAX_LOSSES:
                self._results.fail(open_trial, loss_reason(open_trial.losses, why))
        held = self._roster.held_by(worker)
        if held:
            self._ledger.release(self._study.id, self._epoch, worker, why)
            self._state.queue(held)
