"""Process of one rank, with a part of the backbone's blocks and a pack of its own trials.

Started as ``python -m trial_runner.sharding.rank FILE_DESCRIPTOR PARENT``. The connection at the descriptor carries
the arguments of `_start_server` first, then method calls; each gets one `RankAnswer`.
"""

import os
import pickle
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search_space.errors import SearchSpaceError
from trial_runner.errors import RunnerError, TrialRequestError
from trial_runner.requests import Failure, Reading, TrainingPlan
from trial_runner.sharding.runner import RankAnswer, RankFactory, Shape

if TYPE_CHECKING:
    from trial_runner.packs.pack import TrialPack
    from trial_runner.runner import TorchRunner

_POLL_SECONDS = 1.0


class RankServer:
    """Server of the calls to a rank, by the names of the methods here and of `Pack`."""

    def __init__(self, runner: "TorchRunner") -> None:
        """Start without a pack."""
        if runner.blocks is None:
            raise TrialRequestError(
                "the runner of a rank must hold a part of the blocks; got all of them. This is a bug."
            )
        self._runner = runner
        self._blocks = runner.blocks
        self._pack: TrialPack | None = None

    @property
    def free_slots(self) -> int:
        """Number of free slots of the pack; 0 without one."""
        return 0 if self._pack is None else self._pack.free_slots

    @property
    def steps_to_reading(self) -> int:
        """Number of steps to the next reading of the pack; 0 without one."""
        return 0 if self._pack is None else self._pack.steps_to_reading

    def identity(self) -> Mapping[str, str]:
        """Implement `PackRunner`."""
        return self._runner.identity

    def held_bytes(self) -> int:
        """Return the bytes that all blocks occupy between passes."""
        return self._blocks.held_bytes

    def open_pack(self, slots: int, fitting: TrainingPlan | None) -> None:
        """Replace the pack by an empty one."""
        self._pack = None
        self._pack = self._runner.open_pack(slots, fitting=fitting)

    def do(self, name: str, arguments: Sequence[Any]) -> Any:
        """Call a method of the server or of its pack."""
        return getattr(self if hasattr(self, name) else self._open, name)(*arguments)

    def advance(self, steps: int) -> Sequence[Reading | Failure]:
        """Train all trials of the rank; every rank must be called at once, with or without trials of its own.

        Each rank holds a part of the blocks, so that no rank computes a pass alone.
        """
        try:
            return self._open.advance(steps)
        finally:
            self._blocks.attend()

    @property
    def _open(self) -> "TrialPack":
        if self._pack is None:
            raise TrialRequestError("a rank must have an open pack; got none. This is a bug in trial_runner/sharding.")
        return self._pack


def main() -> None:
    """Serve calls until the owner closes the connection."""
    connection, parent = Connection(int(sys.argv[1])), int(sys.argv[2])
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        _serve(connection)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a clean exit would wait for ranks that have ended


def _exit_with_parent(parent: int) -> None:
    """Exit the process when its owner has ended, also during a computation."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)


def _serve(connection: Connection) -> None:
    startup = pickle.loads(connection.recv_bytes())
    server: RankServer | None = None
    while True:
        try:
            if server is None:
                server = _start_server(*startup)
                value: Any = server.identity()
            else:
                name, arguments = pickle.loads(connection.recv_bytes())
                value = server.do(name, arguments)
            answer = RankAnswer(value=value, free_slots=server.free_slots, steps_to_reading=server.steps_to_reading)
        except (RunnerError, SearchSpaceError) as error:
            answer = RankAnswer(refusal=error)
        except (EOFError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - the owner raises any error
            lines = str(error).splitlines() or [""]
            answer = RankAnswer(cause=f"{type(error).__name__}: {lines[0]}")
        connection.send_bytes(pickle.dumps(answer))
        if answer.cause or server is None:
            return


def _start_server(factory: RankFactory, shape: Shape, rank: int, meeting: Path) -> RankServer:
    """Join the process group and load the runner of the rank.

    Args:
        rank: Index of this rank.
        meeting: File on this machine through which the ranks connect.
    """
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    is_gpu = torch.cuda.is_available()
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if is_gpu else "gloo",
        init_method=meeting.as_uri(),
        rank=rank,
        world_size=shape.ranks,
        timeout=timedelta(seconds=shape.patience_seconds),
    )
    mesh = init_device_mesh("cuda" if is_gpu else "cpu", (shape.ranks,))
    return RankServer(factory(threads=shape.threads, mesh=mesh))


if __name__ == "__main__":
    main()
