"""The keeper of a study: proposes, leases, records, decides. The only writer of its ledger.

All that must survive is in the ledger; what is held here is rebuilt from it when a keeper takes the study over. Whoever
takes it over later fences this one: its next write raises `FencedError` and changes nothing.
"""

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from studies.errors import LaunchError, StudiesError
from studies.keeping.artefacts import delete_own_files, remove_orphans
from studies.keeping.lending import lease_of
from studies.keeping.listening import ListeningClock
from studies.keeping.losses import MAX_LOSSES, fail_the_lost, failure
from studies.keeping.machines import Machines, OneMachine
from studies.keeping.messages import Answer, Decision, Lease, Report, Verdict
from studies.keeping.pace import Pace
from studies.keeping.plan import StudyPlan
from studies.keeping.progress import Progress, RunningTrial, Standing
from studies.keeping.recalling import is_by_loss, recalled, tally_of
from studies.keeping.roster import OpenTrial, Roster
from studies.keeping.upcoming import Upcoming
from studies.search.chronicle import Course
from studies.search.factored.from_ledger import loss_of
from studies.search.proposer import Proposer
from studies.search.prospects import Prospect
from studies.search.rungs import Rule, RungBoard
from studies.search.samplers import sampler_of
from studies.store.calls import WaitingCall
from studies.store.clock import WRITTEN_TIME
from studies.store.leases import LAID_ASIDE, MACHINE_LOST
from studies.store.ledger import Ledger
from studies.store.patience import Patience
from studies.store.records import (
    EventKind,
    NewTrial,
    Outcome,
    ReadingRecord,
    Settlement,
    StudyRecord,
    TrialRecord,
    TrialState,
)
from studies.store.settling import Entry
from trial_runner.requests import Reading
from trial_runner.tasks.metrics.classes import ACCURACY

AHEAD_PER = 16
"""One trial is proposed ahead of need for so many that run: it knows little less than those that are proposed later."""

MAX_CRASHES = 5
"""A launch ends after so many crashes of workers in a row without a reading, or losses of workers that load."""


class StudyKeeper:
    """Keeps one study, from takeover to the end of a launch. Serves one call at a time, from whichever thread."""

    def __init__(
        self,
        plan: StudyPlan,
        *,
        name: str = "keeper",
        patience: Patience | None = None,
        machines: Machines = OneMachine(),  # noqa: B008 - a value
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
        self._ledger = Ledger.open(plan.storage_url, create=False, patience=patience)
        self._study = self._ledger.study(plan.study)
        self._epoch = self._ledger.take_over(self._study.id, name)
        self._ledger.place(self._study.id, self._epoch, plan.artefacts)
        self._refused: set[Path] = set()
        self._tell_refused(delete_own_files(self._study, fail_the_lost(self._ledger, self._study, self._epoch)))
        self._ledger.recover(self._study.id, self._epoch)
        self._began_at = time.monotonic()
        self._pace = Pace()
        self._roster = Roster()
        self._clock = ListeningClock(plan.lease_seconds)
        self._counts = dict.fromkeys(TrialState, 0)
        self._drained = ""
        self._halted: StudiesError | None = None
        self._crashes = 0
        self._unbegun = 0
        self._hold_again_at = 0.0
        self._silent: list[str] = []
        self._why: dict[str, str] = {}
        self._rebuild()
        self._sweep()

    def _rebuild(self) -> None:
        """Read the ledger into memory."""
        trials = self._ledger.trials(self._study.id)
        by_trial = self._ledger.readings_by_trial(self._study.id)
        readings = [reading for of_trial in by_trial.values() for reading in of_trial]
        plan = self._plan
        self.proposer = Proposer(
            plan.space,
            sampler=sampler_of(plan.sampler, plan.sampler_options),
            seed=plan.seed,
            opening=plan.opening,
            course=Course(
                steps=plan.training.steps,
                examples=plan.rungs.examples,
                rung_examples=plan.rungs.rung_examples,
                goal=plan.goal,
                hears_losses=plan.hears_losses,
                priors=plan.priors,
            ),
        )
        self.proposer.replay(trials, by_trial)
        self._upcoming = Upcoming(plan, self.proposer, self._ledger, self._study, record_event=self._record_event)
        replicates = {trial.number for trial in trials if trial.replicate_of is not None}
        compared = [reading for reading in readings if reading.trial not in replicates]
        sizes = {trial.number: self._size(trial) for trial in trials}
        self._rungs = RungBoard(plan.rungs, compared, {trial.number: trial for trial in trials}, sizes)
        if plan.rungs.rule is Rule.SIGNIFICANCE:
            for examples in self._ledger.examples(self._study.id):
                self._rungs.remember(examples.trial, examples.step, examples)
        losses = self._ledger.losses(self._study.id)
        for trial in trials:
            self._counts[trial.state] += 1
            if not trial.state.is_terminal:
                known = by_trial.get(trial.number, ())
                self._roster.trials[trial.number] = recalled(trial, known, losses.get(trial.number, 0))
        self._tally = tally_of(plan, trials, by_trial)

    @property
    def study(self) -> StudyRecord:
        """The study, as it was when it was taken over."""
        return self._study

    @property
    def folder(self) -> Path:
        """Where the study's files are."""
        return self._plan.artefacts

    def join(self, worker: str, *, is_own: bool = True) -> None:
        """Begin to work; what an earlier incarnation of the worker still held goes back in the queue.

        Args:
            is_own: False of the workers of a launch that has joined: if they cannot begin, that is its own affair.
        """
        with self._serving():
            replaced = self._roster.enter(worker, self._clock.look(), time.monotonic())
            if replaced is not None:
                self._lose(replaced, self._why.pop(worker.partition("/")[0], f"replaced by {worker}"))
                if is_own:
                    self._count_unbegun(replaced)

    def exchange(self, worker: str, reports: Sequence[Report], free_slots: int) -> Answer:
        """Hand in reports, hear the verdicts and take new leases."""
        with self._serving():
            self._hear(worker)
            self._roster.begin(worker)
            self._unbegun = 0
            verdicts = self._settle(worker, reports)
            is_dismissed = self._is_dismissed(worker)
            # the slot of a failed trial is among the free ones already
            failed = {report.trial for report in reports if report.failure is not None}
            freed = {verdict.trial for verdict in verdicts if verdict.decision is not Decision.GO_ON} - failed
            leases = () if is_dismissed else tuple(self._lend(worker, free_slots + len(freed)))
            return Answer(verdicts=verdicts, leases=leases, is_over=is_dismissed or self._is_done())

    def prepare(self) -> bool:
        """Propose a trial that waits for a worker, so that no worker waits for it; False if it is not the time.

        It is recorded at once and proposed from what is known then, so it need not be taken back, whatever is reported
        until it is lent, and a takeover finds it.
        """
        with self._serving():
            waiting = len(self._roster.queued())
            if self._drained or waiting >= (len(self._roster.trials) - waiting) // AHEAD_PER:
                return False
            new = self._upcoming.take(1, before=self._roster.trials)
            for trial in new:
                self._ledger.add_trials(self._study.id, self._epoch, [trial])
                self._roster.trials[trial.number] = OpenTrial(trial=trial, attempt=0)
                self._move(None, TrialState.QUEUED)
            return bool(new)

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
            self._record_event(EventKind.MACHINE, f"{place} {why}")

    def note(self, text: str) -> None:
        """Record something worth knowing of the machines."""
        with self._serving():
            self._record_event(EventKind.MACHINE, text)

    def leave(self, worker: str, reports: Sequence[Report]) -> None:
        """Hand in the last snapshots; every trial of the worker goes back in the queue."""
        with self._serving():
            self._settle(worker, reports)
            held = self._roster.held_by(worker)
            if held:
                self._ledger.release(self._study.id, self._epoch, worker, LAID_ASIDE)
                self._queue(held)
            self._roster.forget(worker)

    def crash(self, worker: str, text: str) -> None:
        """A worker met an error that is nobody's trial's; the launch ends when that happens again and again."""
        with self._serving():
            self.dismiss(worker, text)
            self._crashes += 1
            if self._crashes >= MAX_CRASHES:
                raise LaunchError(f"workers crashed {self._crashes} times in a row; the last said: {text}")

    def dismiss(self, worker: str, text: str) -> None:
        """A worker met an error that is nobody's trial's; of another launch, which counts by itself."""
        with self._serving():
            self._record_event(EventKind.CRASH, f"{worker}: {text}")
            self._lose(worker, f"crashed: {text}")

    def reply(self, call: WaitingCall, text: str) -> None:
        """Answer a launch that has joined."""
        with self._serving():
            self._ledger.reply(self._study.id, self._epoch, call, text)

    def forget_callers(self, age: timedelta) -> None:
        """Forget launches that have joined, and asked nothing for so long."""
        with self._serving():
            self._ledger.forget_calls(self._study.id, self._epoch, WRITTEN_TIME.now() - age)

    def halt(self, error: StudiesError) -> None:
        """End the launch for a reason that no retry can mend."""
        self._halted = self._halted or error
        self.drain(str(error))

    def drain(self, reason: str) -> None:
        """Lend nothing more and send the workers away; the study can be continued later."""
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
                exhausted=self._upcoming.exhausted,
                drained=self._drained,
                halted=self._halted,
                silent=tuple(self._silent),
            )

    def progress(self) -> Progress:
        """The study as it is now."""
        with self._lock:
            elapsed = time.monotonic() - self._began_at
            return Progress(
                study=self._study.name,
                metric=self._study.metric,
                counts=dict(self._counts),
                target_trials=self._plan.target_trials,
                top=self._tally.top,
                course=self._tally.course,
                just_ended=self._tally.just_ended,
                ended_here=self._tally.ended_here,
                references=self._tally.references,
                examples=self._plan.rungs.example_counts if self._study.metric == ACCURACY.name else None,
                budget_parameters=self._study.budget_parameters,
                seconds_elapsed=elapsed,
                left=self._pace.left(time.monotonic(), self._steps_left()),
                running=self._running(),
            )

    def _running(self) -> tuple[RunningTrial, ...]:
        return tuple(
            RunningTrial(
                number=number,
                method=one.trial.method,
                description=one.trial.description,
                step=one.step,
                steps=self._plan.training.steps,
                last_score=one.last_score,
                is_by_loss=one.is_by_loss,
                worker=one.worker,
            )
            for number, one in sorted(self._roster.trials.items())
            if one.worker is not None
        )

    def _steps_left(self) -> float:
        """Of the trials that have not ended: open ones are taken to run to the end, others as far as those before."""
        steps = self._plan.training.steps
        known = sum(self._counts.values())
        to_come = 0 if self._upcoming.exhausted else max(0, self._plan.target_trials - known)
        open_steps = sum(steps - one.step for one in self._roster.trials.values())
        return open_steps + to_come * self._tally.expected_steps

    def finish(self, text: str) -> None:
        """Note how the launch ended, and leave no file behind that belongs to nothing."""
        with self._serving():
            self._record_event(EventKind.LAUNCH, text)
            self._sweep()

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

    def _record_event(self, kind: EventKind, text: str) -> None:
        self._ledger.record_event(self._study.id, kind, text, epoch=self._epoch)

    def _sweep(self) -> None:
        ended = [one for one in self._ledger.attempts(self._study.id) if one.ended_at is not None]
        self._tell_refused(remove_orphans(self._plan.artefacts, self._ledger.artefacts(self._study.id), ended))

    def _tell_refused(self, refused: Mapping[Path, str]) -> None:
        """Note once which files cannot be deleted; every sweep tries them again."""
        for path, why in refused.items():
            if path not in self._refused:
                self._refused.add(path)
                self._record_event(EventKind.UNDELETED, f"{path} cannot be deleted: {why}")

    def _is_dismissed(self, worker: str) -> bool:
        """Whether a worker is to lay its trials aside and leave."""
        return bool(self._drained) or self._roster.is_replaced(worker) or self._machines.is_leaving(worker)

    def _count_unbegun(self, lost: str) -> None:
        """Count the workers in a row that were lost before they took a trial.

        Raises:
            LaunchError: If they are too many.
        """
        if self._roster.has_begun(lost) or self._machines.is_gone(lost):
            return
        self._unbegun += 1
        if self._unbegun >= MAX_CRASHES:
            raise LaunchError(
                f"workers must be able to load the backbone and the task; {self._unbegun} in a row were lost while "
                "they did, perhaps for want of memory. Ask for fewer workers, or a smaller backbone."
            )

    def _is_done(self) -> bool:
        is_full = self.proposer.next_number >= self._plan.target_trials or bool(self._upcoming.exhausted)
        return is_full and not self._roster.trials

    def _hear(self, worker: str) -> None:
        """Note a sign of life of a worker, and what follows from others' silence."""
        if not self._roster.is_replaced(worker):
            self._roster.hear(worker, self._clock.look())
        if self._roster.is_to_renew(worker, time.monotonic(), self._plan.lease_seconds / 3):
            self._ledger.renew(self._study.id, self._epoch, worker, self._plan.lease_seconds)
        self._tick()

    def _tick(self) -> None:
        self.hold()
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
                entry = _entry(open_trial, outcome=failure(open_trial.losses, why))
                (settlement,) = self._ledger.settle_all(self._study.id, self._epoch, [entry])
                self._take_in(open_trial, entry, settlement)
        held = self._roster.held_by(worker)
        if held:
            self._ledger.release(self._study.id, self._epoch, worker, why)
            self._queue(held)

    def _queue(self, held: Sequence[OpenTrial]) -> None:
        for open_trial in held:
            open_trial.worker = None
            self._move(TrialState.RUNNING, TrialState.QUEUED)

    def _move(self, before: TrialState | None, after: TrialState) -> None:
        if before is not None:
            self._counts[before] -= 1
        self._counts[after] += 1

    def _settle(self, worker: str, reports: Sequence[Report]) -> tuple[Verdict, ...]:
        """Decide on the trials of reports, and record all of it in one transaction."""
        told: list[tuple[Report, OpenTrial | None, Entry | None]] = []
        ended: set[int] = set()
        prospects = self._prospects(worker, reports)
        for report in reports:
            held = None if report.trial in ended else self._roster.held(report.trial, report.attempt, worker)
            entry = None if held is None else self._entry(held, report, prospects.get(report.trial))
            if entry is not None and entry.outcome is not None:
                ended.add(report.trial)
            told.append((report, held, entry))
        entries = [entry for _, _, entry in told if entry is not None]
        settlements = iter(self._ledger.settle_all(self._study.id, self._epoch, entries) if entries else ())
        verdicts: list[Verdict] = []
        for report, held, entry in told:
            decision = Decision.GO_ON if entry is None or entry.outcome is None else Decision.STOP
            if held is None:
                decision = Decision.ABANDON
                self._delete_unnamed(report)
            elif entry is not None:
                self._take_in(held, entry, next(settlements))
            verdicts.append(Verdict(trial=report.trial, attempt=report.attempt, decision=decision))
        return tuple(verdicts)

    def _prospects(self, worker: str, reports: Sequence[Report]) -> Mapping[int, Prospect]:
        """What is to be expected of trials that stand at a rung, by number, told of all readings that came together."""
        if self._plan.rungs.rule is not Rule.CHANCE:
            return {}
        arrived: set[int] = set()
        at_rungs: list[int] = []
        for report in reports:
            number, reading = report.trial, report.reading
            held = None if number in arrived else self._roster.held(number, report.attempt, worker)
            if held is None or reading is None or report.failure is not None or not _is_sound(reading):
                continue
            arrived.add(number)
            self.proposer.report(number, reading.step, reading.score, loss_of(reading))
            # a replicate stops at no rung
            if held.trial.replicate_of is None and self._plan.rungs.rung_at(reading.step) is not None:
                at_rungs.append(number)
        return self.proposer.prospects(at_rungs) if at_rungs else {}

    def _entry(self, open_trial: OpenTrial, report: Report, prospect: Prospect | None) -> Entry | None:
        """What is recorded of a report, with how it ends its trial; None if nothing is."""
        reading, outcome = report.reading, None
        if report.failure is not None:
            outcome = Outcome(state=TrialState.FAILED, reason=report.failure)
        elif reading is not None:
            if report.examples is not None:
                self._rungs.remember(report.trial, reading.step, report.examples)
            outcome = self._outcome(open_trial, reading, prospect)
        readings: tuple[ReadingRecord, ...] = ()
        if reading is not None and _is_sound(reading):
            rung = self._plan.rungs.rung_at(reading.step)
            readings = (ReadingRecord.of(reading, attempt=report.attempt, rung=rung),)
        if outcome is None and not readings and report.artefact is None:
            return None
        return _entry(open_trial, readings, report, outcome)

    def _outcome(self, open_trial: OpenTrial, reading: Reading, prospect: Prospect | None) -> Outcome | None:
        """How a reading ends a trial; None when it goes on."""
        if not math.isfinite(reading.score):
            return Outcome(state=TrialState.FAILED, reason=f"score is {reading.score} at step {reading.step}")
        if not math.isfinite(reading.train_loss):
            return Outcome(state=TrialState.FAILED, reason=f"loss is {reading.train_loss} at step {reading.step}")
        if reading.step >= self._plan.training.steps:
            return Outcome(state=TrialState.COMPLETE, score=reading.score)
        # a rung that an earlier attempt has passed stays passed, and a replicate stops at none
        if open_trial.trial.replicate_of is not None or not self._rungs.add(
            reading, open_trial.trial, size=self._size(open_trial.trial)
        ):
            return None
        reason = self._rungs.verdict(reading, prospect)
        return None if reason is None else Outcome(state=TrialState.PRUNED, reason=reason)

    def _size(self, trial: NewTrial) -> float:
        """What of a trial is to be small; 0 where only the score counts."""
        return 0.0 if self._plan.goal is None else self._plan.goal.size(trial)

    def _take_in(self, open_trial: OpenTrial, entry: Entry, settlement: Settlement) -> None:
        """Know what was recorded of a trial."""
        number, outcome = entry.number, entry.outcome
        if not settlement.accepted:
            raise LaunchError(f"the ledger must know attempt {open_trial.attempt} of trial {number}; it does not.")
        self._tell_refused(delete_own_files(self._study, settlement.dropped_paths))
        for reading in entry.readings:
            self.proposer.report(number, reading.step, reading.score, loss_of(reading))
            if reading.step > open_trial.step:  # what was measured before is no progress
                open_trial.losses = self._crashes = 0
            self._pace.hear(time.monotonic(), reading.step - open_trial.step)
            open_trial.step, open_trial.last_score = reading.step, reading.score
            open_trial.is_by_loss = is_by_loss([reading])
        if outcome is None:
            return
        del self._roster.trials[number]
        self._move(TrialState.RUNNING, outcome.state)
        size = None if self._plan.goal is None else self._size(open_trial.trial)
        self.proposer.close(number, outcome.state, outcome.score, size=size)
        self._tally.add(open_trial, outcome)

    def _delete_unnamed(self, report: Report) -> None:
        """Delete the file of a late report, unless an earlier report has brought it."""
        if report.artefact is not None:
            named = {artefact.path for artefact in self._ledger.artefacts(self._study.id, report.trial)}
            self._tell_refused(delete_own_files(self._study, {report.artefact.path} - named))

    def _lend(self, worker: str, slots: int) -> Iterator[Lease]:
        """At most ``slots`` leases: queued trials first, then new ones. A suspect is lent alone."""
        if any(open_trial.is_suspect for open_trial in self._roster.held_by(worker)):
            return
        to_propose = max(0, self._plan.target_trials - self.proposer.next_number)
        slots = min(slots, self._roster.share(len(self._roster.queued()) + to_propose))
        queued = self._roster.to_lend(worker, slots)
        yield from self._lend_again(worker, queued)
        if any(self._roster.trials[number].is_suspect for number in queued):
            return
        new = self._upcoming.take(slots - len(queued), before=self._roster.trials)
        if new:
            self._pace.begin(time.monotonic())
            self._ledger.add_trials(
                self._study.id, self._epoch, new, worker=worker, lease_seconds=self._plan.lease_seconds
            )
        for trial in new:
            self._roster.trials[trial.number] = OpenTrial(trial=trial, attempt=1, worker=worker)
            self._move(None, TrialState.RUNNING)
            yield self._lease(trial, 1)

    def _lend_again(self, worker: str, numbers: Sequence[int]) -> Iterator[Lease]:
        if not numbers:
            return
        self._pace.begin(time.monotonic())
        seconds = self._plan.lease_seconds
        attempts = self._ledger.lease_all(self._study.id, self._epoch, numbers, worker, seconds)
        for number, attempt in zip(numbers, attempts, strict=True):
            if attempt is None:
                raise LaunchError(f"the ledger must have trial {number} queued; it does not.")
            open_trial = self._roster.trials[number]
            open_trial.attempt, open_trial.worker = attempt.attempt, worker
            self._move(TrialState.QUEUED, TrialState.RUNNING)
            yield self._lease(open_trial.trial, attempt.attempt)

    def _lease(self, trial: NewTrial | TrialRecord, attempt: int) -> Lease:
        return lease_of(self._ledger, self._study, trial, attempt=attempt, plan=self._plan.training)


def _is_sound(reading: Reading) -> bool:
    """Whether all that was measured is a number."""
    return math.isfinite(reading.score) and math.isfinite(reading.train_loss)


def _entry(
    open_trial: OpenTrial,
    readings: Sequence[ReadingRecord] = (),
    report: Report | None = None,
    outcome: Outcome | None = None,
) -> Entry:
    return Entry(
        number=open_trial.trial.number,
        attempt=open_trial.attempt,
        readings=readings,
        examples=() if report is None or not readings else report.example_records,
        artefact=None if report is None else report.artefact,
        outcome=outcome,
    )
