"""A worker: fills the slots of a pack with leased trials, advances them, and hands in what they measure."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search_space.errors import SearchSpaceError
from studies.backends.trial_files import TrialFiles
from studies.errors import LaunchError
from studies.records import ArtefactRecord
from studies.runtime.messages import Decision, Lease, WorkerAnswer, WorkerReport
from trial_runner.errors import RunnerError, SnapshotError
from trial_runner.requests import Failure, PackRunner, SlotReading, TrainingPlan, TrialRequest

if TYPE_CHECKING:
    from studies.backends.keeper_actor import KeeperClient
    from studies.runtime.keeper import StudyKeeper

CHUNK_SECONDS = 0.5
"""A worker trains for about so long before it looks up."""

_IDLE_SECONDS = 0.1


@dataclass(slots=True)
class _Occupant:
    """A trial in a slot.

    Attributes:
        step: Optimiser steps done.
        saved_step: Steps of its newest snapshot.
    """

    request: TrialRequest
    step: int
    saved_step: int

    @property
    def steps_to_evaluation(self) -> int:
        """Steps until the next measurement."""
        return min((at - self.step for at in self.request.plan.evaluate_at_steps if at > self.step), default=1)


class PackWorker:
    """One pack, one keeper. `work` returns when nothing is left to do, or when it is told to leave.

    Attributes:
        moved_at: When it last got any further, on the monotonic clock.
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
            runner: Opens the pack.
            slots: Trials side by side.
            files: Keeps snapshots.
            should_leave: Asked about twice a second while the pack trains.
            fitting: With a plan, fewer slots where memory does not hold so many trials of it.
            snapshot_seconds: Between two measurements trials are snapshot so often.
        """
        self._name = name
        self._keeper = keeper
        self._pack = runner.open_pack(slots, fitting=fitting)
        self._files = files
        self._should_leave = should_leave
        self._occupants: dict[int, _Occupant] = {}
        self._reports: list[WorkerReport] = []
        self._seconds_per_step = 0.0
        self._snapshot_seconds = snapshot_seconds
        self._snapshots_at = time.monotonic()
        self.moved_at = time.monotonic()

    def work(self, seconds: float | None = None) -> bool:
        """Train leased trials.

        Args:
            seconds: Return after about so long, the trials staying in their slots; None until there is nothing left.

        Returns:
            Whether the worker is done for good.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            self.moved_at = time.monotonic()
            reports, self._reports = sorted(self._reports, key=lambda report: report.trial), []
            answer = self._keeper.exchange(self._name, reports, self._pack.free_slots)
            self._obey(answer, reports)
            if answer.is_over or self._should_leave():
                self.leave()
                return True
            if self._occupants:
                self._advance()
            elif not self._reports:
                time.sleep(_IDLE_SECONDS)
        return False

    def leave(self) -> None:
        """Lay every trial aside, with a snapshot of where it stands."""
        for slot, occupant in self._occupants.items():
            is_new = occupant.step > occupant.saved_step
            artefact = self._save(slot, "snapshot") if is_new else None
            self._reports.append(_report(occupant.request, artefact=artefact))
        self._keeper.leave(self._name, self._reports)
        self._reports = []
        for slot in list(self._occupants):
            self._evict(slot)

    def _obey(self, answer: WorkerAnswer, reports: Sequence[WorkerReport]) -> None:
        told = zip(reports, answer.decisions, strict=True)
        over = {(report.trial, report.attempt) for report, decision in told if decision is not Decision.GO_ON}
        for slot, occupant in list(self._occupants.items()):
            if (occupant.request.trial, occupant.request.attempt) in over:
                self._evict(slot)
        for lease in answer.leases:
            self._take_in(lease)

    def _evict(self, slot: int) -> None:
        del self._occupants[slot]
        self._pack.evict(slot)

    def _take_in(self, lease: Lease) -> None:
        """Give a trial a slot, from its newest whole snapshot; a trial that cannot be built fails alone."""
        request = lease.request
        try:
            slot, step = self._restored(lease) or (self._pack.admit(request), 0)
        except (RunnerError, SearchSpaceError) as error:
            self._reports.append(_report(request, failure=str(error)))
            return
        self._occupants[slot] = _Occupant(request=request, step=step, saved_step=step)

    def _restored(self, lease: Lease) -> tuple[int, int] | None:
        """Slot and step of a trial that goes on from a snapshot; None when no snapshot can be used."""
        for artefact in lease.snapshots:
            snapshot = self._files.find(artefact)
            if snapshot is None:
                continue
            try:
                return self._pack.restore(lease.request, snapshot), artefact.step
            except SnapshotError:
                continue
        return None

    def _advance(self) -> None:
        """Train all slots to the nearest measurement, looking up now and then.

        The place of a trial that fails before stays free until then: when it is filled again must not depend on how
        fast the machine is.
        """
        steps = min(occupant.steps_to_evaluation for occupant in self._occupants.values())
        while steps > 0:
            chunk = max(1, min(steps, int(CHUNK_SECONDS / self._seconds_per_step))) if self._seconds_per_step else 1
            self.moved_at = time.monotonic()
            began_at = time.perf_counter()
            results = self._pack.advance(chunk)
            self._seconds_per_step = (time.perf_counter() - began_at) / chunk
            for occupant in self._occupants.values():
                occupant.step = min(occupant.step + chunk, occupant.request.plan.steps)
            self._note(results)
            steps -= chunk
            if not self._occupants or (steps > 0 and self._should_leave()):
                return
            if steps > 0 and time.monotonic() - self._snapshots_at >= self._snapshot_seconds:
                self._secure()

    def _secure(self) -> None:
        """Hand in snapshots between two measurements that are far apart; no free slot is filled."""
        reports = [
            _report(occupant.request, artefact=self._save(slot, "snapshot"))
            for slot, occupant in self._occupants.items()
            if occupant.step > occupant.saved_step
        ]
        self._obey(self._keeper.exchange(self._name, reports, 0), reports)
        self._snapshots_at = time.monotonic()

    def _note(self, results: Sequence[SlotReading | Failure]) -> None:
        for result in results:
            occupant = self._occupants[result.slot]
            request = occupant.request
            if isinstance(result, Failure):
                del self._occupants[result.slot]
                self._reports.append(_report(request, failure=_reason(result)))
                continue
            occupant.step = result.step
            artefact = self._save(result.slot, "delta" if result.step >= request.plan.steps else "snapshot")
            self._reports.append(_report(request, reading=result, examples=result.examples, artefact=artefact))

    def _save(self, slot: int, kind: str) -> ArtefactRecord:
        occupant = self._occupants[slot]
        request = occupant.request
        try:
            snapshot = self._pack.snapshot(slot)
            kept = self._files.keep(snapshot, attempt=request.attempt, kind=kind, step=occupant.step)
            occupant.saved_step = occupant.step
            return kept
        except OSError as error:
            # a launch that was taken over, whose files are removed by now, hears that instead
            self._keeper.leave(self._name, [])
            raise LaunchError(
                f"snapshots must be written; got: {error}. Free some space or choose another folder."
            ) from error


def _report(request: TrialRequest, **said: Any) -> WorkerReport:
    """What is said of a trial; see `WorkerReport`."""
    return WorkerReport(trial=request.trial, attempt=request.attempt, **said)


def _reason(failure: Failure) -> str:
    reason = failure.reason.rstrip(".")
    return reason if "step" in reason else f"{reason} at step {failure.step}"
