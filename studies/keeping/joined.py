"""A study that another launch runs, for the workers of a launch that has joined it.

Whatever they say to a keeper goes to the one of the other launch, by the ledger (`studies.keeping.calls`). A keeper
that is replaced knows what it was asked; when the launch that runs the study has ended, nobody answers any more, and
the workers are sent away: whoever joined may then run the study (`studies.launching.running.run_fleet`).
"""

import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError

from studies.errors import LaunchError, StudiesError
from studies.keeping.answering import JOINED_MARK
from studies.keeping.calls import (
    Beat,
    Call,
    Crash,
    Exchange,
    Exchanged,
    Join,
    Leave,
    Look,
    Refused,
    Reply,
    call_text,
    reply_of,
)
from studies.keeping.calls import (
    Standing as Stands,
)
from studies.keeping.keeper import MAX_CRASHES, StudyKeeper
from studies.keeping.lending import lease_of
from studies.keeping.machines import Machines, OneMachine
from studies.keeping.messages import Answer, Lease, Report
from studies.keeping.plan import StudyPlan
from studies.keeping.progress import LAST, Progress, Standing, progress_before
from studies.keeping.recalling import tally_of
from studies.store.database import Patience
from studies.store.holding import LaunchName
from studies.store.ledger import Ledger

_BEAT_SECONDS = 1.0
_HOLDER_SECONDS = 1.0
_FIRST_ANSWER_SECONDS = 600.0
_LAST_SECONDS = 3.0
"""How long an answer is waited for when the user wants to stop."""

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.2


def open_keeper(
    plan: StudyPlan,
    *,
    name: str,
    patience: Patience,
    machines: Machines = OneMachine(),  # noqa: B008 - a value
) -> "StudyKeeper | JoinedKeeper":
    """The keeper of a launch: its own, or that of the launch that it has joined."""
    if plan.has_joined:
        return JoinedKeeper(plan, patience=patience, machines=machines)
    return StudyKeeper(plan, name=name, patience=patience, machines=machines)


class JoinedKeeper:
    """Asks the keeper of another launch; what concerns this launch alone, such as its end, is decided here."""

    def __init__(self, plan: StudyPlan, *, patience: Patience, machines: Machines) -> None:
        """Join.

        Raises:
            LaunchError: If the study's folder is not that of the launch which runs it, or that launch is silent.
            StudiesError: If the storage is not there.
        """
        self._plan = plan
        self._machines = machines
        self._is_over = patience.is_over
        self._ledger = Ledger.open(plan.storage_url, create=False, patience=patience)
        self._study = self._ledger.study(plan.study)
        name = LaunchName.parse(plan.launch)
        # stands before the names of this launch's workers, which are theirs only here
        self._prefix = f"{plan.launch if name is None else f'{name.host}:{name.process}:{name.mark}'}:"
        self._lock = threading.RLock()
        self._began_at = time.monotonic()
        self._longest_seconds = _FIRST_ANSWER_SECONDS
        self._stands: Stands | None = None
        self._ended_before: int | None = None
        self._alive: set[str] = set()
        self._expected: tuple[str, ...] = ()
        self._beat_again_at = 0.0
        self._crashes = 0
        self._is_done = self._is_cut_off = False
        self._alone = self._drained = ""
        self._halted: StudiesError | None = None
        self._show_folder()
        self._beat()

    def _show_folder(self) -> None:
        """See that the folder of the study is one for both launches: what is written here is there for the other."""
        mark = uuid.uuid4().hex
        shown = self._plan.artefacts / f"{JOINED_MARK}{mark}"
        try:
            shown.touch()
            said = self._asked(Look(mark=mark))
        except OSError as error:
            said = Refused(reason=f"it cannot be written here: {error.strerror or error}")
        finally:
            shown.unlink(missing_ok=True)
        if isinstance(said, Refused):
            raise LaunchError(
                f"the study's folder {self._plan.artefacts} must be one folder, on a shared disk, for all launches "
                f"that work on it; {said.reason}. Share it, or launch where it is."
            )

    # ---- what workers say

    def join(self, worker: str) -> None:
        """See `studies.keeping.messages.Keeper`."""
        self._asked(Join(worker=self._prefix + worker))

    def exchange(self, worker: str, reports: Sequence[Report], free_slots: int) -> Answer:
        """See `studies.keeping.messages.Keeper`."""
        with self._lock:
            if any(report.reading is not None for report in reports):
                self._crashes = 0
            is_leaving = self.is_drained or self._machines.is_leaving(worker)
            wanted = 0 if is_leaving else free_slots
            said = self._asked(Exchange(worker=self._prefix + worker, reports=tuple(reports), free_slots=wanted))
            if not isinstance(said, Exchanged):
                return Answer(is_over=True)
            if said.is_over:
                self._beat()
            return Answer(
                verdicts=said.verdicts,
                leases=tuple(self._lease(one.trial, one.attempt) for one in said.lent),
                is_over=said.is_over or is_leaving,
            )

    def heartbeat(self, worker: str) -> bool:
        """See `studies.keeping.messages.Keeper`."""
        with self._lock:
            self._alive.add(self._prefix + worker)
            self._beat_now_and_then()
            dismissed = () if self._stands is None else self._stands.dismissed
            is_leaving = self._machines.is_leaving(worker)
            return self.is_drained or is_leaving or self._prefix + worker in dismissed

    def must_move(self, worker: str) -> bool:
        """See `StudyKeeper.must_move`."""
        return self._machines.is_leaving(worker) and not self.is_drained and not self._is_done

    def leave(self, worker: str, reports: Sequence[Report]) -> None:
        """See `studies.keeping.messages.Keeper`. Where nobody answers, the trials go on from earlier snapshots."""
        self._asked(Leave(worker=self._prefix + worker, reports=tuple(reports)))

    def crash(self, worker: str, text: str) -> None:
        """A worker met an error that is nobody's trial's: that ends this launch when it happens again and again."""
        self._asked(Crash(worker=self._prefix + worker, text=text))
        self._crashes += 1
        if self._crashes >= MAX_CRASHES:
            self._halted = LaunchError(f"workers crashed {self._crashes} times in a row; the last said: {text}")
            raise self._halted

    # ---- what the launch says

    def ended(self, place: str, why: str) -> None:
        """Nothing: see `note`."""

    def note(self, text: str) -> None:
        """Nothing: the machines of this launch are not in the events of the study."""

    def halt(self, error: StudiesError) -> None:
        """End this launch; the other goes on."""
        self._halted = self._halted or error
        self.drain(str(error))

    def drain(self, reason: str) -> None:
        """Send the workers of this launch away."""
        self._drained = self._drained or reason

    @property
    def is_drained(self) -> bool:
        """Whether the workers were sent away."""
        return bool(self._drained or self._alone)

    def hold(self) -> None:
        """Nothing: another launch runs the study."""

    def standing(self, expected: Sequence[str] = ()) -> Standing:
        """Where the study stands as its keeper has it; see `StudyKeeper.standing`."""
        with self._lock:
            self._expected = tuple(self._prefix + worker for worker in expected)
            if self._halted is None:
                self._beat_now_and_then()
            silent = () if self._stands is None else self._stands.silent
            return Standing(
                progress=self.progress(),
                is_done=self._is_done,
                exhausted="",
                drained=self._drained or self._alone,
                halted=self._halted,
                silent=tuple(name.removeprefix(self._prefix) for name in silent if name.startswith(self._prefix)),
                is_alone=bool(self._alone) and not self._drained and not self._is_done,
            )

    def progress(self) -> Progress:
        """The study as its keeper has it; what has ended is counted from when this launch joined."""
        if self._stands is None:
            return progress_before(self._plan)
        found = self._stands.progress
        ended_here = found.ended - (self._ended_before or 0)
        running = [one for one in found.running if not self.is_drained or one.worker.startswith(self._prefix)]
        return replace(
            found,
            ended_here=ended_here,
            just_ended=found.just_ended[-min(ended_here, LAST) :] if ended_here else (),
            running=tuple(running) if not self._is_cut_off else (),
            seconds_elapsed=time.monotonic() - self._began_at,
        )

    def finish(self, text: str) -> None:
        """Ask nothing more."""
        self._ledger.hang_up(self._study.id, self._plan.launch)

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    # ---- how it is asked

    def _beat_now_and_then(self) -> None:
        if time.monotonic() >= self._beat_again_at:
            self._beat()

    def _beat(self) -> None:
        """Say who lives, and hear where the study stands."""
        workers, self._alive = tuple(sorted(self._alive)), set()
        said = self._asked(Beat(workers=workers, expected=self._expected))
        self._beat_again_at = time.monotonic() + _BEAT_SECONDS
        if isinstance(said, Stands):
            if self._ended_before is None:
                self._ended_before = said.progress.ended
            self._stands, self._is_done = said, said.is_done
            if said.is_leaving and not said.is_done:
                self._alone = "the launch that ran the study was told to stop"

    def _lease(self, number: int, attempt: int) -> Lease:
        trial = self._ledger.trial(self._study.id, number)
        return lease_of(self._ledger, self._study, trial, attempt=attempt, plan=self._plan.training)

    def _asked(self, call: Call) -> Reply | None:
        """What the keeper says; None when nobody runs the study any more.

        Raises:
            LaunchError: If nobody answers though the study is run, or the answer is no answer.
        """
        with self._lock:
            if self._is_cut_off:
                return None
            try:
                text = self._heard(self._ledger.ask(self._study.id, self._plan.launch, call_text(call)))
                said = None if text is None else reply_of(text)
                if isinstance(said, Refused) and not isinstance(call, Look):
                    raise LaunchError(f"the launch that runs the study refuses: {said.reason}.")
            except ValidationError:
                self.halt(LaunchError("the launch that runs the study must be of this release; it says other words."))
                raise self._halted or AssertionError from None
            except StudiesError as error:
                self.halt(error)
                raise
            if text is None:
                self._be_cut_off()
            return said

    def _heard(self, number: int) -> str | None:
        """The answer to a call, once it is there; None when nobody runs the study any more.

        Raises:
            LaunchError: If it does not come though the study is run.
        """
        asked_at, pause, look_at = time.monotonic(), _FIRST_PAUSE_SECONDS, 0.0
        while (text := self._ledger.answer(self._study.id, self._plan.launch, number)) is None:
            now = time.monotonic()
            if now >= look_at:
                hold, look_at = self._ledger.holder(self._study.id), now + _HOLDER_SECONDS
                if hold is None or not hold.is_live:
                    return None
                if self._is_over() and now - asked_at > _LAST_SECONDS:
                    return None
                if now - asked_at > self._longest_seconds:
                    raise LaunchError(
                        f"the launch that runs the study ({hold.words}) must answer; it did not for "
                        f"{self._longest_seconds:g} s. Nothing is lost: end that one and launch again."
                    )
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_PAUSE_SECONDS)
        self._longest_seconds = 2 * self._plan.lease_seconds
        return text

    def _be_cut_off(self) -> None:
        """Nobody runs the study any more, because it is finished or its launch has ended."""
        self._is_cut_off = True
        self._alone = self._alone or "the launch that ran the study has ended"
        counts = self._ledger.state_counts(self._study.id)
        ended = sum(count for state, count in counts.items() if state.is_terminal)
        self._is_done = ended == sum(counts.values()) and ended >= self._plan.target_trials
        if self._stands is not None:
            readings = self._ledger.readings_by_trial(self._study.id)
            tally = tally_of(self._plan, self._ledger.trials(self._study.id), readings)
            seen = replace(
                self._stands.progress,
                counts=counts,
                top=tally.top,
                course=tally.course,
                just_ended=tally.just_ended,
                references=tally.references,
            )
            self._stands = replace(self._stands, progress=seen)
