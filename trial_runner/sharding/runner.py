"""Several rank processes as one runner; each trial of its pack is in one of them."""

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
_INTERFACE, _LOOPBACK = "GLOO_SOCKET_IFNAME", "lo"
_JOB_VARIABLES = re.compile(
    "(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)|ROLE_NAME|MASTER_(ADDR|PORT)|(TORCHELASTIC|ACCELERATE|FSDP)_.*"
)
"""Variables of a surrounding job of torchrun or accelerate, which must not reach the ranks."""
_EXIT_SECONDS = 10.0
_MAX_LOG_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Number of rank processes of a backbone, and their limits.

    Attributes:
        ranks: Number of processes, each on a GPU of its own where there are GPUs.
        threads: Number of compute threads of each process.
        patience_seconds: Longest wait of a rank for a rank that hangs. The owner notices a rank that ends at once.
    """

    ranks: int
    threads: int = 1
    patience_seconds: float = 600.0


class RankFactory(Protocol):
    """Factory of the runner of a rank; picklable."""

    def __call__(self, *, threads: int, mesh: "DeviceMesh") -> "TorchRunner":
        """Return a runner with only a part of the blocks.

        Raises:
            RunnerError: If the backbone or the task cannot be loaded.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAnswer:
    """Result of one call of a rank.

    Attributes:
        value: Return value of the call.
        free_slots: Number of free slots of the rank's pack after the call.
        steps_to_reading: Number of steps to the next reading of the rank's pack after the call.
        refusal: Error of a call that the rank refused; the rank continues.
        cause: One-line cause of a failure that ended the rank.
    """

    value: Any = None
    free_slots: int = 0
    steps_to_reading: int = 0
    refusal: RunnerError | SearchSpaceError | None = None
    cause: str = ""


class Ranks:
    """Process group of a sharded backbone; the loss of one rank ends all.

    Args:
        factory: Factory of the runner of each rank.

    Attributes:
        identity: Identity of the backbone and task that all ranks have loaded.

    Raises:
        RunnerError: If a rank cannot load the backbone or the task.
        RuntimeError: If a rank is lost.
    """

    def __init__(self, factory: RankFactory, shape: Shape) -> None:
        """Start the processes and wait until they have loaded."""
        self._folder = Path(tempfile.mkdtemp(prefix="deltaspace-ranks-"))
        self._connections: list[Connection] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        # runs also without `close`, and at the end of this process
        self._end = weakref.finalize(self, _end, self._processes, self._connections, self._folder)
        try:
            for rank in range(shape.ranks):
                self._start(rank, shape)
            for rank, connection in enumerate(self._connections):
                connection.send_bytes(pickle.dumps((factory, shape, rank, self._folder / "meeting")))
            answers = self._answers(range(shape.ranks), "load the backbone")
        except BaseException:
            self.close()
            raise
        self.identity: Mapping[str, str] = answers[0].value

    @property
    def are_alive(self) -> bool:
        """Whether all ranks run; otherwise none does."""
        return self._end.alive

    def ask(self, name: str, *arguments: Any, rank: int | None = None) -> list[RankAnswer]:
        """Call a method of one rank, or of all at once; see `trial_runner.sharding.rank.RankServer`.

        Raises:
            RunnerError: If a rank refuses the call.
            RuntimeError: If a rank is lost; then all are.
        """
        ranks = range(len(self._processes)) if rank is None else [rank]
        message = pickle.dumps((name, arguments))
        for one in ranks:
            try:
                self._connections[one].send_bytes(message)
            except OSError:
                raise self._loss_of(one, name) from None
        return self._answers(ranks, name)

    def close(self) -> None:
        """End the processes."""
        self._end()

    def _answers(self, ranks: Sequence[int], operation: str) -> list[RankAnswer]:
        """Return the answers of ranks; raise a refusal only after all, which take part in the computation."""
        waiting = {self._connections[rank]: rank for rank in ranks}
        found: dict[int, RankAnswer] = {}
        while waiting:
            for connection in wait(list(waiting)):
                rank = waiting.pop(connection)  # type: ignore[call-overload]
                try:
                    found[rank] = pickle.loads(self._connections[rank].recv_bytes())
                except (EOFError, OSError):
                    raise self._loss_of(rank, operation) from None
                if found[rank].cause:
                    raise self._loss_of(rank, operation, found[rank].cause)
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
                    env=rank_environment(rank, shape),
                    process_group=0,  # an interrupt reaches the owner alone, which then ends the ranks or not
                )
            )
        its.close()

    def _loss_of(self, rank: int, operation: str, cause: str = "") -> RuntimeError:
        """End all ranks and return the error that names the cause."""
        process = self._processes[rank]
        with suppress(subprocess.TimeoutExpired):
            process.wait(_EXIT_SECONDS)
        code = process.returncode
        how = cause or ("it hung" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}")
        with suppress(OSError):
            log = (self._folder / f"{rank}.log").read_text(errors="replace")
            lines = [line.strip() for line in log.splitlines() if line.strip()]
            if lines and not cause and code != -signal.SIGKILL:  # a killed process writes no cause
                how += f"; its last line: {lines[-1][:_MAX_LOG_CHARACTERS]}"
        count = len(self._processes)
        self.close()
        return RuntimeError(f"cannot {operation}: shard {rank + 1} of {count} was lost, {how}")


def _end(processes: list[subprocess.Popen[bytes]], connections: list[Connection], folder: Path) -> None:
    for connection in connections:
        connection.close()
    for process in processes:
        process.kill()
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_EXIT_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)


def rank_environment(rank: int, shape: Shape) -> dict[str, str]:
    """Return the environment of a rank: the module path of this process, and a GPU of its own."""
    paths = [path or str(Path.cwd()) for path in sys.path]
    inherited = {name: value for name, value in os.environ.items() if not _JOB_VARIABLES.fullmatch(name)}
    environment = {**inherited, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    environment["OMP_NUM_THREADS"] = str(shape.threads)
    if sys.platform == "linux":
        environment.setdefault(_INTERFACE, _LOOPBACK)
    given = os.environ.get(_VISIBLE)
    devices = [str(rank) for rank in range(shape.ranks)] if given is None else given.split(",")
    if len(devices) >= shape.ranks:
        environment[_VISIBLE] = devices[rank]
    return environment


class ShardedRunner:
    """Runner of one backbone over several processes, each on a GPU of its own; see `trial_runner.requests.PackRunner`.

    The loss of one process ends the others and raises `RuntimeError` in waiting calls. The next pack starts new
    processes; trials resume from their snapshots.

    Args:
        factory: Factory of the runner of each rank.
        shape: Number of ranks, and their limits.

    Attributes:
        ranks: Processes of the ranks; new ones after a loss.
    """

    def __init__(self, factory: RankFactory, shape: Shape) -> None:
        """Start the processes and wait until they have loaded."""
        self._factory, self._shape = factory, shape
        self.ranks = Ranks(factory, shape)
        self.identity: Mapping[str, str] = self.ranks.identity

    def open_pack(self, slots: int, *, fitting: TrainingPlan | None = None) -> "ShardedPack":
        """Return an empty pack of at least ``slots`` slots, equally many in each rank."""
        if not self.ranks.are_alive:
            self.ranks = Ranks(self._factory, self._shape)
        return ShardedPack(self.ranks, self.ranks.ask("open_pack", -(-slots // self._shape.ranks), fitting))

    save = staticmethod(save_snapshot)
    load = staticmethod(load_snapshot)

    def close(self) -> None:
        """End the processes."""
        self.ranks.close()


class ShardedPack:
    """Pack over all ranks; a new trial goes to the rank with most free slots. See `trial_runner.requests.Pack`.

    Args:
        opened: Answers of the ranks, in order, to `open_pack`.
    """

    def __init__(self, ranks: Ranks, opened: Sequence[RankAnswer]) -> None:
        """Start without trials."""
        self._ranks = ranks
        self._answers = list(opened)
        self._rank_of: dict[int, int] = {}

    @property
    def free_slots(self) -> int:
        """Number of free slots of all ranks; see `Pack`."""
        return sum(answer.free_slots for answer in self._answers)

    @property
    def steps_to_reading(self) -> int:
        """Smallest number of all ranks; see `Pack`."""
        return min((answer.steps_to_reading for answer in self._answers if answer.steps_to_reading), default=0)

    def admit(self, request: TrialRequest) -> None:
        """Implement `Pack`."""
        self._add_trial(request, "admit")

    def restore(self, request: TrialRequest, snapshot: Snapshot) -> None:
        """Implement `Pack`."""
        self._add_trial(request, "restore", snapshot)

    def advance(self, steps: int) -> Sequence[Reading | Failure]:
        """Implement `Pack`."""
        self._answers = self._ranks.ask("advance", steps)
        results: list[Reading | Failure] = [result for answer in self._answers for result in answer.value]
        return sorted(results, key=lambda result: (result.trial, result.step))

    def evict(self, trial: int) -> None:
        """Implement `Pack`."""
        self._ask(self._rank_of.pop(trial), "evict", trial)

    def snapshot(self, trial: int) -> Snapshot:
        """Implement `Pack`."""
        snapshot: Snapshot = self._ask(self._rank_of[trial], "snapshot", trial)
        return snapshot

    def _add_trial(self, request: TrialRequest, how: str, *more: object) -> None:
        rank = max(range(len(self._answers)), key=lambda one: (self._answers[one].free_slots, -one))
        self._ask(rank, how, request, *more)
        self._rank_of[request.trial] = rank

    def _ask(self, rank: int, name: str, *arguments: object) -> Any:
        (answer,) = self._ranks.ask(name, *arguments, rank=rank)
        self._answers[rank] = replace(answer, value=None)
        return answer.value
