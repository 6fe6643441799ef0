"""Open trials and workers of a keeper, in memory; rebuilt at every takeover."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from search_space.configuration import structures
from studies.records import Reading, TrialRecord, TrialState
from studies.runtime.progress import TrialProgress
from trial_runner.tasks.evaluation import PROXY_LOSS

MAX_LOSSES = 3
"""Number of losses in a row without a reading after which a trial fails, since it may kill its workers."""


@dataclass(slots=True, kw_only=True)
class OpenTrial:
    """Queued or running trial.

    Attributes:
        trial: Recorded trial; its state is current only once it has ended.
        attempt: Newest attempt; 0 before the first.
        worker: Worker that holds it; None while it is queued.
        step: Optimizer steps at its newest reading.
        last_score: Score of its newest reading.
        is_by_loss: Whether that is the loss in place of the metric.
        losses: Lost attempts in a row since its newest reading.
    """

    trial: TrialRecord
    attempt: int
    worker: str | None = None
    step: int = 0
    last_score: float | None = None
    is_by_loss: bool = False
    losses: int = 0

    @property
    def is_suspect(self) -> bool:
        """Whether one more loss ends it; until its next reading it runs alone, to protect other trials."""
        return self.losses >= MAX_LOSSES - 1

    @property
    def structures(self) -> frozenset[Hashable]:
        """Keys by which similar trials are grouped in packs; see `search_space.configuration`."""
        return structures(self.trial.configuration)

    def as_progress(self) -> TrialProgress:
        """Return the trial as live views show it, running or ended."""
        trial, has_ended = self.trial, self.trial.state.is_terminal
        return TrialProgress(
            number=trial.number,
            method=trial.method,
            description=trial.description,
            state=trial.state if has_ended else TrialState.RUNNING,
            step=self.step,
            score=self.last_score if trial.score is None else trial.score,
            is_by_loss=self.is_by_loss and trial.score is None,
            stored_parameters=trial.stored_parameters,
            worker=None if has_ended else self.worker,
            reason=trial.reason,
        )


@dataclass(slots=True)
class Roster:
    """Open trials and workers.

    Attributes:
        trials: Open trials by number.
        loaded: Workers that have loaded everything and have requested trials.
    """

    trials: dict[int, OpenTrial] = field(default_factory=dict)
    _incarnations: dict[str, str] = field(default_factory=dict)
    _last_heartbeats: dict[str, float] = field(default_factory=dict)
    _renewed_at: dict[str, float] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)

    def queued(self) -> list[int]:
        """Return the numbers of the queued trials, lowest first."""
        return sorted(number for number, open_trial in self.trials.items() if open_trial.worker is None)

    def choose_queued(self, worker: str, slots: int) -> list[int]:
        """Return queued trials for a worker's free slots, those that group best with the trials it holds.

        The choice changes neither trials nor proposals. A worker without trials gets one suspect alone; one with
        trials gets no suspect.
        """
        suspects = [number for number in self.queued() if self.trials[number].is_suspect]
        if suspects and not self.held_by(worker):
            return suspects[: min(1, max(0, slots))]
        waiting = [number for number in self.queued() if number not in suspects]
        if len(waiting) <= slots:
            return waiting
        grouped = {kind for open_trial in self.held_by(worker) for kind in open_trial.structures}
        chosen: list[int] = []
        for _ in range(max(0, slots)):
            best = max(waiting, key=lambda number: (len(grouped & self.trials[number].structures), -number))
            waiting.remove(best)
            chosen.append(best)
            grouped |= self.trials[best].structures
        return chosen

    def fair_share(self, waiting: int) -> int:
        """Return how many of the waiting trials a worker may lease at once, so that the others can have as many.

        Towards the end packs are filled less, and all workers end at about the same time.
        """
        return -(-waiting // max(1, len(self._last_heartbeats)))

    def held_by(self, worker: str) -> list[OpenTrial]:
        """Return the trials of a worker, lowest number first."""
        held = [open_trial for open_trial in self.trials.values() if open_trial.worker == worker]
        return sorted(held, key=lambda open_trial: open_trial.trial.number)

    def held(self, number: int, attempt: int, worker: str) -> OpenTrial | None:
        """Return the open trial if this attempt at it is the worker's, else None."""
        open_trial = self.trials.get(number)
        if open_trial is None or (open_trial.attempt, open_trial.worker) != (attempt, worker):
            return None
        return open_trial

    def register(self, worker: str, active_seconds: float, now: float) -> str | None:
        """Register an incarnation of a worker; return the one it replaces, if any.

        Args:
            active_seconds: Time of the `ActiveClock`.
            now: Time of the clock by which leases expire.
        """
        place = worker.partition("/")[0]
        earlier = self._incarnations.get(place)
        self._incarnations[place] = worker
        self._last_heartbeats[worker], self._renewed_at[worker] = active_seconds, now
        if earlier is None or earlier == worker:
            return None
        self.forget(earlier)
        return earlier

    def expect(self, workers: Iterable[str], active_seconds: float) -> None:
        """Start waiting for heartbeats of workers that have not joined and whose place is free."""
        for worker in workers:
            place = worker.partition("/")[0]
            if place not in self._incarnations:
                self._incarnations[place] = worker
                self._last_heartbeats[worker] = active_seconds

    def is_replaced(self, worker: str) -> bool:
        """Return whether another incarnation has taken the worker's place."""
        return self._incarnations.get(worker.partition("/")[0], worker) != worker

    def record_heartbeat(self, worker: str, active_seconds: float) -> None:
        """Record a heartbeat."""
        self._last_heartbeats[worker] = active_seconds

    def is_to_renew(self, worker: str, now: float, seconds: float) -> bool:
        """Return whether the leases of a worker must be renewed, and count them as renewed."""
        if worker not in self._last_heartbeats or now - self._renewed_at.setdefault(worker, now) < seconds:
            return False
        self._renewed_at[worker] = now
        return True

    def silent(self, active_seconds: float, seconds: float) -> list[str]:
        """Return the workers without a heartbeat for so many seconds."""
        return [
            worker
            for worker, last_heartbeat in self._last_heartbeats.items()
            if active_seconds - last_heartbeat > seconds
        ]

    def forget(self, worker: str) -> None:
        """Stop waiting for a worker."""
        self._last_heartbeats.pop(worker, None)
        self._renewed_at.pop(worker, None)


def open_trial_of(trial: TrialRecord, readings: Sequence[Reading], losses: int = 0) -> OpenTrial:
    """Return the open trial of a recorded one."""
    return OpenTrial(
        trial=trial,
        attempt=trial.attempt,
        step=trial.steps,
        last_score=trial.last_score,
        is_by_loss=is_by_loss(readings),
        losses=losses,
    )


def is_by_loss(readings: Sequence[Reading]) -> bool:
    """Return whether the newest reading is scored by its loss in place of the metric."""
    return bool(readings) and PROXY_LOSS in readings[-1].metrics
