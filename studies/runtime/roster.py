"""Who holds what: the trials that are open and the workers that were heard of. In memory, rebuilt at every takeover."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from search_space.configuration import structures
from studies.records import Reading, TrialRecord, TrialState
from studies.runtime.progress import ShownTrial
from trial_runner.tasks.evaluation import PROXY_LOSS

MAX_LOSSES = 3
"""A trial that is lost so often in a row, without a reading in between, has failed: it may be what kills workers."""


@dataclass(slots=True, kw_only=True)
class OpenTrial:
    """A trial that is queued or running.

    Attributes:
        trial: What is recorded of it; how it stands only once it has ended.
        attempt: Its newest attempt; 0 before the first.
        worker: Who holds it; None while it is queued.
        step: Optimiser steps at its newest reading.
        last_score: Score of its newest reading.
        is_by_loss: Whether that is of the loss in place of the metric.
        losses: Attempts that were lost one after another since its newest reading.
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
        """Whether one more loss ends it. It then runs alone until it measures something: no other pays for it."""
        return self.losses >= MAX_LOSSES - 1

    @property
    def structures(self) -> frozenset[Hashable]:
        """What tells how well the trial groups with others in a pack; see `search_space.configuration`."""
        return structures(self.trial.configuration)

    def shown(self) -> ShownTrial:
        """What people are shown of it: while it runs, or once it has ended."""
        trial, has_ended = self.trial, self.trial.state.is_terminal
        return ShownTrial(
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
    """The open trials and the workers.

    Attributes:
        trials: By number.
        begun: The workers that have loaded what they need, and have asked for trials.
    """

    trials: dict[int, OpenTrial] = field(default_factory=dict)
    _incarnations: dict[str, str] = field(default_factory=dict)
    _heard_at: dict[str, float] = field(default_factory=dict)
    _renewed_at: dict[str, float] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)

    def queued(self) -> list[int]:
        """Numbers of the trials that wait, lowest first."""
        return sorted(number for number, open_trial in self.trials.items() if open_trial.worker is None)

    def to_lend(self, worker: str, slots: int) -> list[int]:
        """Waiting trials for a worker's free slots: those that its pack can best compute with what it holds.

        Who gets which of the waiting trials changes none of them, and no proposal. A worker that holds nothing gets a
        suspect, and nothing else; one that holds something gets none.
        """
        suspects = [number for number in self.queued() if self.trials[number].is_suspect]
        if suspects and not self.held_by(worker):
            return suspects[: min(1, max(0, slots))]
        waiting = [number for number in self.queued() if number not in suspects]
        if len(waiting) <= slots:
            return waiting
        known = {kind for open_trial in self.held_by(worker) for kind in open_trial.structures}
        chosen: list[int] = []
        for _ in range(max(0, slots)):
            best = max(waiting, key=lambda number: (len(known & self.trials[number].structures), -number))
            waiting.remove(best)
            chosen.append(best)
            known |= self.trials[best].structures
        return chosen

    def share(self, waiting: int) -> int:
        """How many of so many waiting trials a worker is lent at once: no more than leave the others as many.

        Towards the end packs are filled less, and all workers end at about the same time.
        """
        return -(-waiting // max(1, len(self._heard_at)))

    def held_by(self, worker: str) -> list[OpenTrial]:
        """The trials that a worker holds, lowest number first."""
        held = [open_trial for open_trial in self.trials.values() if open_trial.worker == worker]
        return sorted(held, key=lambda open_trial: open_trial.trial.number)

    def held(self, number: int, attempt: int, worker: str) -> OpenTrial | None:
        """The open trial if this attempt at it is the worker's, else None."""
        open_trial = self.trials.get(number)
        if open_trial is None or (open_trial.attempt, open_trial.worker) != (attempt, worker):
            return None
        return open_trial

    def enter(self, worker: str, heard: float, now: float) -> str | None:
        """Let an incarnation take its place; the one it replaces, if any.

        Args:
            heard: Of the `ListeningClock`.
            now: Of the clock by which leases run out.
        """
        place = worker.partition("/")[0]
        earlier = self._incarnations.get(place)
        self._incarnations[place] = worker
        self._heard_at[worker], self._renewed_at[worker] = heard, now
        if earlier is None or earlier == worker:
            return None
        self.forget(earlier)
        return earlier

    def expect(self, workers: Iterable[str], heard: float) -> None:
        """Count the silence of workers that have not joined, where nobody else has taken their place."""
        for worker in workers:
            place = worker.partition("/")[0]
            if place not in self._incarnations:
                self._incarnations[place] = worker
                self._heard_at[worker] = heard

    def is_replaced(self, worker: str) -> bool:
        """Whether another incarnation has taken the worker's place."""
        return self._incarnations.get(worker.partition("/")[0], worker) != worker

    def hear(self, worker: str, heard: float) -> None:
        """Note a sign of life."""
        self._heard_at[worker] = heard

    def is_to_renew(self, worker: str, now: float, seconds: float) -> bool:
        """Whether it is time to renew the leases of a worker that was heard; they then count as renewed."""
        if worker not in self._heard_at or now - self._renewed_at.setdefault(worker, now) < seconds:
            return False
        self._renewed_at[worker] = now
        return True

    def silent(self, heard: float, seconds: float) -> list[str]:
        """Workers that were not heard of while somebody listened for so long."""
        return [worker for worker, heard_at in self._heard_at.items() if heard - heard_at > seconds]

    def forget(self, worker: str) -> None:
        """Expect nothing more of a worker."""
        self._heard_at.pop(worker, None)
        self._renewed_at.pop(worker, None)


def recalled(trial: TrialRecord, readings: Sequence[Reading], losses: int = 0) -> OpenTrial:
    """A trial of the ledger as it last was."""
    return OpenTrial(
        trial=trial,
        attempt=trial.attempt,
        step=trial.steps,
        last_score=trial.last_score,
        is_by_loss=is_by_loss(readings),
        losses=losses,
    )


def is_by_loss(readings: Sequence[Reading]) -> bool:
    """Whether the newest reading is scored by its loss in place of the metric."""
    return bool(readings) and PROXY_LOSS in readings[-1].metrics
