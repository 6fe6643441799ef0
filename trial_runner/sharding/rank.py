"""The process of one rank: its part of the backbone's blocks, and a pack of its own trials.

Started as ``python -m trial_runner.sharding.rank FILE_DESCRIPTOR PARENT``; what it is, and what to do, it hears there.
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
from trial_runner.errors import RequestError, RunnerError
from trial_runner.requests import Failure, Reading, TrainingPlan
from trial_runner.sharding.runner import RankAnswer, RankFactory, Shape

if TYPE_CHECKING:
    from trial_runner.packs.pack import TrialPack
    from trial_runner.runner import TorchRunner

_LOOK_SECONDS = 1.0


class Desk:
    """What a rank can be asked for, by the names of the methods here and, of its pack, in `Pack`."""

    def __init__(self, runner: "TorchRunner") -> None:
        """There is no pack yet."""
        if runner.blocks is None:
            raise RequestError("the runner of a rank must have a part of the blocks; it has all. This is a bug.")
        self._runner = runner
        self._blocks = runner.blocks
        self._pack: TrialPack | None = None

    @property
    def free_slots(self) -> int:
        """Of the pack."""
        return 0 if self._pack is None else self._pack.free_slots

    @property
    def steps_to_reading(self) -> int:
        """Of the pack."""
        return 0 if self._pack is None else self._pack.steps_to_reading

    def identity(self) -> Mapping[str, str]:
        """See `PackRunner`."""
        return self._runner.identity

    def held_bytes(self) -> int:
        """Of all blocks, between passes."""
        return self._blocks.held_bytes

    def open_pack(self, slots: int, fitting: TrainingPlan | None) -> None:
        """An empty pack in the place of the one before."""
        self._pack = None
        self._pack = self._runner.open_pack(slots, fitting=fitting)

    def do(self, name: str, arguments: Sequence[Any]) -> Any:
        """What it is asked for."""
        return getattr(self if hasattr(self, name) else self._open, name)(*arguments)

    def advance(self, steps: int) -> Sequence[Reading | Failure]:
        """All ranks are asked at once, those without trials too: it takes all of them to compute anything."""
        try:
            return self._open.advance(steps)
        finally:
            self._blocks.attend()

    @property
    def _open(self) -> "TrialPack":
        if self._pack is None:
            raise RequestError("a rank must have a pack; none was opened. This is a bug in trial_runner/sharding.")
        return self._pack


def main() -> None:
    """Do what the owner asks for until it has nothing more to say."""
    connection, parent = Connection(int(sys.argv[1])), int(sys.argv[2])
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        _serve(connection)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # the others may have ended already, and what they share would wait for them


def _end_with(parent: int) -> None:
    """See that this process does not outlive its owner, whatever it computes then."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def _serve(connection: Connection) -> None:
    order = pickle.loads(connection.recv_bytes())
    desk: Desk | None = None
    while True:
        try:
            if desk is None:
                desk = _ready(*order)
                value: Any = desk.identity()
            else:
                name, arguments = pickle.loads(connection.recv_bytes())
                value = desk.do(name, arguments)
            answer = RankAnswer(value=value, free_slots=desk.free_slots, steps_to_reading=desk.steps_to_reading)
        except (RunnerError, SearchSpaceError) as error:
            answer = RankAnswer(refusal=error)
        except (EOFError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the owner must hear it
            lines = str(error).splitlines() or [""]
            answer = RankAnswer(trouble=f"{type(error).__name__}: {lines[0]}")
        connection.send_bytes(pickle.dumps(answer))
        if answer.trouble or desk is None:
            return


def _ready(factory: RankFactory, shape: Shape, rank: int, meeting: Path) -> Desk:
    """Meet the others, and load what is needed.

    Args:
        rank: Its number.
        meeting: A file of this machine through which they find each other.
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
    return Desk(factory(threads=shape.threads, mesh=mesh))


if __name__ == "__main__":
    main()
