"""The processes of all ranks as their owner has them: all together, or none."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from trial_runner.sharding.messages import RankAnswer, RankFactory, RankOrder, Shape

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_INTERFACE, _OWN_MACHINE = "GLOO_SOCKET_IFNAME", "lo"
_END_SECONDS = 10.0
_LONGEST_WORD = 200


class Ranks:
    """Starts them, asks them, and ends all when one is lost.

    Args:
        factory: Makes the runner of each.

    Attributes:
        identity: What all have loaded.
        processes: Their numbers.

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
                order = RankOrder(factory=factory, shape=shape, rank=rank, meeting=self._folder / "meeting")
                connection.send_bytes(pickle.dumps(order))
            answers = self._answers(range(shape.ranks), "loaded the backbone")
        except BaseException:
            self.close()
            raise
        self.identity: Mapping[str, str] = answers[0].value

    @property
    def processes(self) -> Sequence[int]:
        """Their numbers."""
        return [process.pid for process in self._processes]

    @property
    def are_there(self) -> bool:
        """Whether they can be asked; all of them, or none."""
        return self._end.alive

    def ask(self, rank: int, name: str, *arguments: Any) -> RankAnswer:
        """Ask one of them; see `trial_runner.sharding.rank.Desk`.

        Raises:
            RunnerError: If it says so.
            RuntimeError: If it is lost; then all are.
        """
        return self._asked([rank], name, arguments)[rank]

    def ask_all(self, name: str, *arguments: Any) -> list[RankAnswer]:
        """Ask all of them at once; see `ask`."""
        answers = self._asked(range(len(self._processes)), name, arguments)
        return [answers[rank] for rank in range(len(self._processes))]

    def close(self) -> None:
        """End them."""
        self._end()

    def _asked(self, ranks: Sequence[int], name: str, arguments: tuple[Any, ...]) -> dict[int, RankAnswer]:
        message = pickle.dumps((name, arguments))
        for rank in ranks:
            try:
                self._connections[rank].send_bytes(message)
            except OSError:
                raise self._lost(rank, f"was asked to {name}") from None
        return self._answers(ranks, f"was asked to {name}")

    def _answers(self, ranks: Sequence[int], what: str) -> dict[int, RankAnswer]:
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
        return found

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
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    environment["OMP_NUM_THREADS"] = str(shape.threads)
    if sys.platform == "linux":
        environment.setdefault(_INTERFACE, _OWN_MACHINE)
    given = os.environ.get(_VISIBLE)
    devices = [str(rank) for rank in range(shape.ranks)] if given is None else given.split(",")
    if len(devices) >= shape.ranks:
        environment[_VISIBLE] = devices[rank]
    return environment
