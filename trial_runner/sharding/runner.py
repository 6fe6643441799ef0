"""Several ranks as one runner: its pack is theirs together, each trial in one of them."""

import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from search_space.errors import SearchSpaceError
from trial_runner.errors import RunnerError
from trial_runner.packs.snapshots import load_snapshot, save_snapshot
from trial_runner.requests import Failure, Reading, Snapshot, TrainingPlan, TrialRequest

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from trial_runner.runner import TorchRunner

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_INTERFACE, _OWN_MACHINE = "GLOO_SOCKET_IFNAME", "lo"
_OF_A_JOB = re.compile(
    "(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)|ROLE_NAME|MASTER_(ADDR|PORT)|(TORCHELASTIC|ACCELERATE|FSDP)_.*"
)
"""Variables of a surrounding job of torchrun or accelerate, in which shards are no ranks."""
_END_SECONDS = 10.0
_LONGEST_WORD = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a backbone is shared out.

    Attributes:
        ranks: Among so many processes, on GPUs of their own where there are any.
        threads: Compute threads of each.
        patience_seconds: So long one waits for the others at most, if one of them hangs; of one that ends the owner
            hears at once.
    """

    ranks: int
    threads: int = 1
    patience_seconds: float = 600.0


class RankFactory(Protocol):
    """Makes the runner of a rank. Travels between processes."""

    def __call__(self, *, threads: int, mesh: "DeviceMesh") -> "TorchRunner":
        """A runner of which only a part of the blocks is here.

        Raises:
            RunnerError: If backbone or task cannot be had.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAnswer:
    """What a rank says when it has done what it was asked for.

    Attributes:
        value: What came of it.
        free_slots: Of its pack then.
        steps_to_reading: Of its pack then.
        refusal: Why nothing came of it; it goes on all the same.
        trouble: Why it cannot go on, in a line; it has ended.
    """

    value: Any = None
    free_slots: int = 0
    steps_to_reading: int = 0
    refusal: RunnerError | SearchSpaceError | None = None
    trouble: str = ""


class Ranks:
    """Starts them, asks them, and ends all when one is lost.

    Args:
        factory: Makes the runner of each.

    Attributes:
        identity: What all have loaded.

    Raises:
        RunnerError: If one of them cannot load what it needs.
        RuntimeError: If one is lost.
    """

    def __init__(self, factory: RankFactory, shape: Shape) -> None:
        """Start them, and wait until they have loaded."""
        self._folder = Path(tempfile.mkdtemp(prefix="deltaspace-ranks-"))
        self._connections: list[Connection] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        # also when nobody has ended them, and at the end of this process
        self._end = weakref.finalize(self, _end, self._processes, self._connections, self._folder)
        try:
            for rank in range(shape.ranks):
                self._start(rank, shape)
            for rank, connection in enumerate(self._connections):
                connection.send_bytes(pickle.dumps((factory, shape, rank, self._folder / "meeting")))
            answers = self._answers(range(shape.ranks), "loaded the backbone")
        except BaseException:
            self.close()
            raise
        self.identity: Mapping[str, str] = answers[0].value

    @property
    def are_there(self) -> bool:
        """Whether they can be asked; all of them, or none."""
        return self._end.alive

    def ask(self, name: str, *arguments: Any, rank: int | None = None) -> list[RankAnswer]:
        """Ask one of them, or all at once; see `trial_runner.sharding.rank.Desk`.

        Raises:
            RunnerError: If it says so.
            RuntimeError: If it is lost; then all are.
        """
        ranks = range(len(self._processes)) if rank is None else [rank]
        message = pickle.dumps((name, arguments))
        for one in ranks:
            try:
                self._connections[one].send_bytes(message)
            except OSError:
                raise self._lost(one, f"was asked to {name}") from None
        return self._answers(ranks, f"was asked to {name}")

    def close(self) -> None:
        """End them."""
        self._end()

    def _answers(self, ranks: Sequence[int], what: str) -> list[RankAnswer]:
        """What ranks answer: of several, all do, for one that refuses takes part in what the others compute."""
        waiting = {self._connections[rank]: rank for rank in ranks}
        found: dict[int, RankAnswer] = {}
        while waiting:
            for connection in wait(list(waiting)):
                rank = waiting.pop(connection)  # type: ignore[call-overload]
                try:
                    found[rank] = pickle.loads(self._connections[rank].recv_bytes())
                except (EOFError, OSError):
                    raise self._lost(rank, what) from None
                if found[rank].trouble:
                    raise self._lost(rank, what, found[rank].trouble)
        for answer in found.values():
            if answer.refusal is not None:
                raise answer.refusal
        return [found[rank] for rank in ranks]

    def _start(self, rank: int, shape: Shape) -> None:
        own, its = Pipe()
        self._connections.append(own)
        command = [sys.executable, "-P", "-m", "trial_runner.sharding.rank", str(its.fileno()), str(os.getpid())]
        with (self._folder / f"{rank}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[its.fileno()],
                    env=_environment(rank, shape),
                    process_group=0,  # what interrupts the owner does not interrupt it: it is asked to go on or not
                )
            )
        its.close()

    def _lost(self, rank: int, what: str, trouble: str = "") -> RuntimeError:
        """End all, and say how one has ended."""
        process = self._processes[rank]
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
        code = process.returncode
        how = trouble or ("it hung" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}")
        with suppress(OSError):
            log = (self._folder / f"{rank}.log").read_text(errors="replace")
            lines = [line.strip() for line in log.splitlines() if line.strip()]
            if lines and not trouble and code != -signal.SIGKILL:  # who is killed has no last word
                how += f"; it said: {lines[-1][:_LONGEST_WORD]}"
        count = len(self._processes)
        self.close()
        return RuntimeError(f"shard {rank + 1} of {count} was lost when it {what}: {how}")


def _end(processes: list[subprocess.Popen[bytes]], connections: list[Connection], folder: Path) -> None:
    for connection in connections:
        connection.close()
    for process in processes:
        process.kill()
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)


def _environment(rank: int, shape: Shape) -> dict[str, str]:
    """Of a rank: the modules of this process, and a GPU of its own."""
    paths = [path or str(Path.cwd()) for path in sys.path]
    inherited = {name: value for name, value in os.environ.items() if not _OF_A_JOB.fullmatch(name)}
    environment = {**inherited, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    environment["OMP_NUM_THREADS"] = str(shape.threads)
    if sys.platform == "linux":
        environment.setdefault(_INTERFACE, _OWN_MACHINE)
    given = os.environ.get(_VISIBLE)
    devices = [str(rank) for rank in range(shape.ranks)] if given is None else given.split(",")
    if len(devices) >= shape.ranks:
        environment[_VISIBLE] = devices[rank]
    return environment


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

    def open_pack(self, slots: int, *, fitting: TrainingPlan | None = None) -> "ShardedPack":
        """An empty pack of at least so many slots, as many in each rank."""
        if not self._ranks.are_there:
            self._ranks = Ranks(self._factory, self._shape)
        return ShardedPack(self._ranks, self._ranks.ask("open_pack", -(-slots // self._shape.ranks), fitting))

    save = staticmethod(save_snapshot)
    load = staticmethod(load_snapshot)

    def close(self) -> None:
        """End the processes."""
        self._ranks.close()


class ShardedPack:
    """See `trial_runner.requests.Pack`. A trial goes to the rank with most free slots.

    Args:
        opened: What each rank has said of its empty pack.
    """

    def __init__(self, ranks: Ranks, opened: Sequence[RankAnswer]) -> None:
        """Keep them."""
        self._ranks = ranks
        self._answers = list(opened)
        self._rank_of: dict[int, int] = {}

    @property
    def free_slots(self) -> int:
        """See `Pack`."""
        return sum(answer.free_slots for answer in self._answers)

    @property
    def steps_to_reading(self) -> int:
        """See `Pack`."""
        return min((answer.steps_to_reading for answer in self._answers if answer.steps_to_reading), default=0)

    def admit(self, request: TrialRequest) -> None:
        """See `Pack`."""
        self._take_in(request, "admit")

    def restore(self, request: TrialRequest, snapshot: Snapshot) -> None:
        """See `Pack`."""
        self._take_in(request, "restore", snapshot)

    def advance(self, steps: int) -> Sequence[Reading | Failure]:
        """See `Pack`."""
        self._answers = self._ranks.ask("advance", steps)
        results: list[Reading | Failure] = [result for answer in self._answers for result in answer.value]
        return sorted(results, key=lambda result: (result.trial, result.step))

    def evict(self, trial: int) -> None:
        """See `Pack`."""
        self._ask(self._rank_of.pop(trial), "evict", trial)

    def snapshot(self, trial: int) -> Snapshot:
        """See `Pack`."""
        snapshot: Snapshot = self._ask(self._rank_of[trial], "snapshot", trial)
        return snapshot

    def _take_in(self, request: TrialRequest, how: str, *more: object) -> None:
        rank = max(range(len(self._answers)), key=lambda one: (self._answers[one].free_slots, -one))
        self._ask(rank, how, request, *more)
        self._rank_of[request.trial] = rank

    def _ask(self, rank: int, name: str, *arguments: object) -> Any:
        (answer,) = self._ranks.ask(name, *arguments, rank=rank)
        self._answers[rank] = replace(answer, value=None)
        return answer.value
