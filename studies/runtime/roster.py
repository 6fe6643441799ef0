"""Leases and workers of a keeper, in memory; read from the ledger at every takeover."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from search_space.configuration import structures
from studies.records import TrialRecord

MAX_LOSSES = 3
"""Number of losses in a row without a reading after which a trial fails, since it may kill its workers."""


@dataclass(slots=True, kw_only=True)
class Lease:
    """Queued or running trial.

    Attributes:
        trial: Number of the trial.
        attempt: Newest attempt; 0 before the first.
        worker: Worker that holds it; None while it is queued.
        losses: Lost attempts in a row since its newest reading.
    """

    trial: int
    attempt: int
    worker: str | None = None
    losses: int = 0

    @property
    def is_suspect(self) -> bool:
        """Whether one more loss ends it; until its next reading it runs alone, to protect other trials."""
        return self.losses >= MAX_LOSSES - 1


@dataclass(slots=True)
class Roster:
    """Leases of the open trials, and workers.

    Attributes:
        leases: Leases of the open trials by number.
        loaded: Workers that have loaded everything and have requested trials.
    """

    leases: dict[int, Lease] = field(default_factory=dict)
    _newest_workers: dict[str, str] = field(default_factory=dict)
    _last_heartbeats: dict[str, float] = field(default_factory=dict)
    _renewed_at: dict[str, float] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)

    def queued(self) -> list[int]:
        """Return the numbers of the queued trials, lowest first."""
        return sorted([number for number, lease in self.leases.items() if lease.worker is None])

    def choose_queued(self, worker: str, slots: int, history: Sequence[TrialRecord]) -> list[int]:
        """Return queued trials for a worker's free slots, those that group best with the trials it holds.

        Trials are grouped in packs by `search_space.configuration.structures`. The choice changes neither trials nor
        proposals. A worker without trials gets one suspect alone; one with trials gets no suspect.
        """
        queued, held = self.queued(), self.held_by(worker)
        suspects = [number for number in queued if self.leases[number].is_suspect]
        if suspects and not held:
            return suspects[: min(1, max(0, slots))]
        waiting = [number for number in queued if number not in suspects]
        if len(waiting) <= slots:
            return waiting
        grouped = {kind for lease in held for kind in structures(history[lease.trial].configuration)}
        kinds = {number: structures(history[number].configuration) for number in waiting}
        chosen: list[int] = []
        for _ in range(max(0, slots)):
            best = max(waiting, key=lambda number: (len(grouped & kinds[number]), -number))
            waiting.remove(best)
            chosen.append(best)
            grouped |= kinds[best]
        return chosen

    def fair_share(self, waiting: int) -> int:
        """Return how many of the waiting trials a worker may lease at once, so that the others can have as many.

        Towards the end packs are filled less, and all workers end at about the same time.
        """
        return -(-waiting // max(1, len(self._last_heartbeats)))

    def held_by(self, worker: str) -> list[Lease]:
        """Return the leases of a worker, lowest number first."""
        held = [lease for lease in self.leases.values() if lease.worker == worker]
        return sorted(held, key=lambda lease: lease.trial)

    def held(self, number: int, attempt: int, worker: str) -> Lease | None:
        """Return the lease of a trial if this attempt at it is the worker's, else None."""
        lease = self.leases.get(number)
        if lease is None or (lease.attempt, lease.worker) != (attempt, worker):
            return None
        return lease

    def register(self, worker: str, active_seconds: float, now: float) -> str | None:
        """Register an incarnation of a worker; return the one it replaces, if any.

        Args:
            active_seconds: Time of the `ActiveClock`.
            now: Time of the clock by which leases expire.
        """
        place = worker.partition("/")[0]
        earlier = self._newest_workers.get(place)
        self._newest_workers[place] = worker
        self._last_heartbeats[worker], self._renewed_at[worker] = active_seconds, now
        if earlier is None or earlier == worker:
            return None
        self.forget(earlier)
        return earlier

    def expect(self, workers: Iterable[str], active_seconds: float) -> None:
        """Start waiting for heartbeats of workers that have not joined and whose place is free."""
        for worker in workers:
            place = worker.partition("/")[0]
            if place not in self._newest_workers:
                self._newest_workers[place] = worker
                self._last_heartbeats[worker] = active_seconds

    def is_replaced(self, worker: str) -> bool:
        """Return whether another incarnation has taken the worker's place."""
        return self._newest_workers.get(worker.partition("/")[0], worker) != worker

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
        beats = self._last_heartbeats
        if not beats or active_seconds - min(beats.values()) <= seconds:  # nearly always, and for every heartbeat
            return []
        return [worker for worker, last_heartbeat in beats.items() if active_seconds - last_heartbeat > seconds]

    def forget(self, worker: str) -> None:
        """Stop waiting for a worker."""
        self._last_heartbeats.pop(worker, None)
        self._renewed_at.pop(worker, None)
