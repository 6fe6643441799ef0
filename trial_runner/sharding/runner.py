"""Several ranks as one runner: its pack is theirs together, each trial in one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trial_runner.packs.snapshots import load_snapshot, save_snapshot
from trial_runner.requests import Failure, SlotReading, Snapshot, TrainingPlan, TrialRequest
from trial_runner.sharding.messages import RankAnswer, RankFactory, Shape
from trial_runner.sharding.ranks import Ranks


class ShardedRunner:
    """See `trial_runner.requests.PackRunner`: one backbone over several processes, each on a GPU of its own.

    A process that is lost ends the others, and whoever waits for them hears it as a `RuntimeError`. The next pack has
    new ones; trials go on from their snapshots.

    Args:
        factory: Makes the runner of each.
        shape: How many there are.
    """

    def __init__(self, factory: RankFactory, shape: Shape) -> None:
        """Start them, and wait until they have loaded."""
        self._factory, self._shape = factory, shape
        self._ranks = Ranks(factory, shape)
        self.identity: Mapping[str, str] = self._ranks.identity

    @property
    def processes(self) -> Sequence[int]:
        """Numbers of the processes."""
        return self._ranks.processes

    @property
    def held_bytes(self) -> Sequence[int]:
        """What each holds of all blocks between passes."""
        return [int(answer.value) for answer in self._ranks.ask_all("held_bytes")]

    def open_pack(self, slots: int, *, fitting: TrainingPlan | None = None) -> "ShardedPack":
        """An empty pack of at least so many slots, as many in each rank."""
        if not self._ranks.are_there:
            self._ranks = Ranks(self._factory, self._shape)
        opened = self._ranks.ask_all("open_pack", -(-slots // self._shape.ranks), fitting)
        return ShardedPack(self._ranks, [answer.free_slots for answer in opened])

    def save(self, snapshot: Snapshot, folder: Path) -> Path:
        """Write a snapshot to a new file in ``folder``; return its path."""
        return save_snapshot(snapshot, folder)

    def load(self, path: Path) -> Snapshot:
        """Read a snapshot back. Raises `SnapshotError` if it is damaged."""
        return load_snapshot(path)

    def close(self) -> None:
        """End the processes."""
        self._ranks.close()


class ShardedPack:
    """See `trial_runner.requests.Pack`. Slot `s` is slot `s // ranks` of rank `s % ranks`.

    Args:
        free: Slots of each rank.
    """

    def __init__(self, ranks: Ranks, free: Sequence[int]) -> None:
        """Keep them."""
        self._ranks = ranks
        self._free = list(free)

    @property
    def free_slots(self) -> int:
        """See `Pack`."""
        return sum(self._free)

    def admit(self, request: TrialRequest) -> int:
        """Take a trial in where most slots are free."""
        return self._taken_in("admit", request)

    def restore(self, request: TrialRequest, snapshot: Snapshot) -> int:
        """See `Pack`."""
        return self._taken_in("restore", request, snapshot)

    def advance(self, steps: int) -> Sequence[SlotReading | Failure]:
        """See `Pack`."""
        results: list[SlotReading | Failure] = []
        for rank, answer in enumerate(self._ranks.ask_all("advance", steps)):
            self._free[rank] = answer.free_slots
            results.extend(replace(result, slot=self._slot(rank, result.slot)) for result in answer.value)
        return sorted(results, key=lambda result: (result.slot, result.step))

    def evict(self, slot: int) -> None:
        """See `Pack`."""
        self._ask(slot, "evict")

    def snapshot(self, slot: int) -> Snapshot:
        """See `Pack`."""
        snapshot: Snapshot = self._ask(slot, "snapshot").value
        return snapshot

    def _taken_in(self, name: str, *arguments: object) -> int:
        rank = max(range(len(self._free)), key=lambda one: (self._free[one], -one))
        answer = self._ranks.ask(rank, name, *arguments)
        self._free[rank] = answer.free_slots
        return self._slot(rank, answer.value)

    def _ask(self, slot: int, name: str) -> RankAnswer:
        local, rank = divmod(slot, len(self._free))
        answer = self._ranks.ask(rank, name, local)
        self._free[rank] = answer.free_slots
        return answer

    def _slot(self, rank: int, local: int) -> int:
        return local * len(self._free) + rank
