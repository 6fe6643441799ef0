"""Worker: fills the slots of a pack with leased trials, trains them, and reports their readings."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from search_space.errors import SearchSpaceError
from studies.backends.trial_files import TrialFiles
from studies.errors import LaunchError
from studies.records import ArtefactRecord, TrialReport, TrialState
from studies.runtime.messages import Decision, WorkerAnswer
from trial_runner.errors import RunnerError, SnapshotError
from trial_runner.requests import Failure, PackRunner, Reading, TrainingPlan, TrialRequest

if TYPE_CHECKING:
    from studies.backends.keeper_actor import KeeperClient
    from studies.runtime.keeper import StudyKeeper

CHUNK_SECONDS = 0.5
"""Seconds of training between two checks for a stop."""

_IDLE_SECONDS = 0.1


class PackWorker:
    """One pack and one keeper. `work` returns when nothing is left to do, or on request.

    Attributes:
        moved_at: Time of the last progress on the monotonic clock.
    """

    def __init__(  # noqa: PLR0913 - wired in one place per fleet
        self,
        *,
        name: str,
        keeper: "StudyKeeper | KeeperClient",
        runner: PackRunner,
        slots: int,
        files: TrialFiles,
        should_leave: Callable[[], bool],
        fitting: TrainingPlan | None = None,
        snapshot_seconds: float = math.inf,
    ) -> None:
        """Open an empty pack.

        Args:
            name: ``place/incarnation``.
            keeper: Keeper, or its client.
            runner: Runner that opens the pack.
            slots: Number of trials side by side.
            files: Storage of snapshots.
            should_leave: Function called about twice a second while the pack trains.
            fitting: Training plan for which slots must fit in memory; None for all slots.
            snapshot_seconds: Interval of snapshots between two measurements.
        """
        self._name = name
        self._keeper = keeper
        self._pack = runner.open_pack(slots, fitting=fitting)
        self._files = files
        self._should_leave = should_leave
        self._held: dict[int, TrialRequest] = {}
        self._unsaved: set[int] = set()  # trials with progress since their newest snapshot
        self._reports: list[TrialReport] = []
        self._seconds_per_step = 0.0
        self._snapshot_seconds = snapshot_seconds
        self._snapshots_at = time.monotonic()
        self.moved_at = time.monotonic()

    def work(self, seconds: float | None = None) -> bool:
        """Train leased trials.

        Args:
            seconds: Return after about this time, with the trials in their slots; None to work until nothing is left.

        Returns:
            Whether the worker is done for good.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            self.moved_at = time.monotonic()
            reports, self._reports = sorted(self._reports, key=lambda report: report.trial), []
            answer = self._keeper.exchange(self._name, reports, self._pack.free_slots)
            self._apply_answer(answer, reports)
            if answer.is_over or self._should_leave():
                self.leave()
                return True
            if self._held:
                self._advance()
            elif not self._reports:
                time.sleep(_IDLE_SECONDS)
        return False

    def leave(self) -> None:
        """Checkpoint every trial and return it to the keeper."""
        for trial, request in self._held.items():
            artefact = self._save(request, "snapshot") if trial in self._unsaved else None
            self._reports.append(_report(request, artefact=artefact))
        self._keeper.leave(self._name, self._reports)
        self._reports = []
        for trial in list(self._held):
            self._evict(trial)

    def _apply_answer(self, answer: WorkerAnswer, reports: Sequence[TrialReport]) -> None:
        decided = zip(reports, answer.decisions, strict=True)
        over = {(report.trial, report.attempt) for report, decision in decided if decision is not Decision.GO_ON}
        for trial, request in list(self._held.items()):
            if (trial, request.attempt) in over:
                self._evict(trial)
        for request in answer.requests:
            if request.trial in self._held:  # an attempt that the keeper has reclaimed
                self._evict(request.trial)
            self._start(request, [one for one in answer.snapshots if one.trial == request.trial])

    def _evict(self, trial: int) -> None:
        del self._held[trial]
        self._pack.evict(trial)

    def _start(self, request: TrialRequest, snapshots: Sequence[ArtefactRecord]) -> None:
        """Give a trial a slot, from its newest snapshot or from its start; a trial that cannot be built fails alone."""
        try:
            if not self._restore(request, snapshots):
                self._pack.admit(request)
        except (RunnerError, SearchSpaceError) as error:
            self._reports.append(_report(request, state=TrialState.FAILED, reason=str(error)))
            return
        self._held[request.trial] = request
        self._unsaved.discard(request.trial)

    def _restore(self, request: TrialRequest, snapshots: Sequence[ArtefactRecord]) -> bool:
        """Give a trial a slot in the state of the newest usable snapshot; return False without one."""
        for snapshot in filter(None, map(self._files.find, snapshots)):
            with suppress(SnapshotError):
                self._pack.restore(request, snapshot)
                return True
        return False

    def _advance(self) -> None:
        """Train all slots to the nearest measurement, with checks for a stop in between.

        The slot of a trial that fails before stays free until then. So the time of its refill does not depend on the
        speed of the machine.
        """
        steps = self._pack.steps_to_reading
        while steps > 0:
            chunk = max(1, min(steps, int(CHUNK_SECONDS / self._seconds_per_step))) if self._seconds_per_step else 1
            self.moved_at = time.monotonic()
            began_at = time.perf_counter()
            results = self._pack.advance(chunk)
            self._seconds_per_step = (time.perf_counter() - began_at) / chunk
            self._unsaved = set(self._held)
            self._record(results)
            steps -= chunk
            if not self._held or (steps > 0 and self._should_leave()):
                return
            if steps > 0 and time.monotonic() - self._snapshots_at >= self._snapshot_seconds:
                self._report_snapshots()

    def _report_snapshots(self) -> None:
        """Report snapshots between two distant measurements; free slots are not filled."""
        unsaved = [request for trial, request in self._held.items() if trial in self._unsaved]
        reports = [_report(request, artefact=self._save(request, "snapshot")) for request in unsaved]
        self._apply_answer(self._keeper.exchange(self._name, reports, 0), reports)
        self._snapshots_at = time.monotonic()

    def _record(self, results: Sequence[Reading | Failure]) -> None:
        for result in results:
            request = self._held[result.trial]
            if isinstance(result, Failure):
                del self._held[result.trial]
                self._reports.append(_report(request, state=TrialState.FAILED, reason=_reason(result)))
                continue
            artefact = self._save(request, "delta" if result.step >= request.plan.steps else "snapshot")
            self._reports.append(_report(request, reading=result, artefact=artefact))

    def _save(self, request: TrialRequest, kind: str) -> ArtefactRecord:
        try:
            kept = self._files.keep(self._pack.snapshot(request.trial), attempt=request.attempt, kind=kind)
            self._unsaved.discard(request.trial)
            return kept
        except OSError as error:
            # raises instead if the launch was superseded and its files removed
            self._keeper.leave(self._name, [])
            raise LaunchError(
                f"cannot write a snapshot: {error}. Free some space, or choose another folder."
            ) from error


def _report(request: TrialRequest, **fields: Any) -> TrialReport:
    """Return a report of a trial; see `TrialReport`."""
    return TrialReport(trial=request.trial, attempt=request.attempt, **fields)


def _reason(failure: Failure) -> str:
    reason = failure.reason.rstrip(".")
    return reason if "step" in reason else f"{reason} at step {failure.step}"
