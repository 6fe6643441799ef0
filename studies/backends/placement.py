"""The nodes of a cluster, and how it is divided among workers: by nodes and GPUs, never a share that no node has."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from studies.errors import LaunchError
from studies.runtime.messages import Machines
from studies.study_file.sections import Fleet

_FRESH_SECONDS = 1.0
_ACCELERATOR = "accelerator_type:"
_A_LITTLE = 0.001
"""Of a kind of accelerator, as Ray counts kinds: enough to be placed on a node that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A node that is alive.

    Attributes:
        key: As Ray has it.
        address: Of its machine.
        cpus: Cores that Ray may give away, those in use included.
        gpus: The same of GPUs.
        accelerators: Kinds of its GPUs, as Ray names them.
    """

    key: str
    address: str
    cpus: int
    gpus: int
    accelerators: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What every worker is given.

    Attributes:
        cores: Of each; 0 where a node has GPUs and no cores to give.
        gpus: Of each: one for every shard of its backbone, or none.
        accelerator: The kind of its GPU, as Ray names it; None for any.
    """

    cores: int
    gpus: int
    accelerator: str | None = None

    @property
    def bundle(self) -> dict[str, float]:
        """The same as Ray asks for it."""
        kind = {} if self.accelerator is None else {f"accelerator_type:{self.accelerator}": _A_LITTLE}
        wanted = {"CPU": float(self.cores), "GPU": float(self.gpus), **kind}
        return {name: count for name, count in wanted.items() if count}

    @property
    def words(self) -> str:
        """The same for people."""
        kind = "" if self.accelerator is None else f" ({self.accelerator})"
        count = "a GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
        gpu = f"{count}{kind} and " if self.gpus else ""
        return f"{gpu}{self.cores} core{'' if self.cores == 1 else 's'}"

    def room(self, nodes: Sequence[ClusterNode]) -> int:
        """How many workers nodes can hold."""
        return sum(self._room_on(node) for node in nodes)

    def _room_on(self, node: ClusterNode) -> int:
        if self.accelerator is not None and self.accelerator not in node.accelerators:
            return 0
        wanted = ((self.cores, node.cpus), (self.gpus, node.gpus))
        return min((has // needs for needs, has in wanted if needs), default=0)


def share_of(nodes: Sequence[ClusterNode], options: Fleet, *, is_own: bool) -> Share:
    """What every worker of a launch is given: a GPU where there is one, and as many cores as any node can give to all.

    Of a backbone that is sharded each shard has a GPU, all of one node, and where there is none a core.

    Args:
        is_own: Whether nobody can add a node: what is not there now will never be.

    Raises:
        LaunchError: If there are fewer GPUs than workers, or than shards on a node, and always will be.
    """
    found = sum(node.gpus for node in nodes)
    workers = None if options.workers == "auto" else int(options.workers)
    gpus = options.worker.shards * (min(1, found) if options.worker.gpus == "auto" else int(options.worker.gpus))
    most = max((node.gpus for node in nodes), default=0)
    if gpus > 1 and most < gpus and (is_own or options.worker.gpus == "auto"):
        raise LaunchError(
            f"the shards of a backbone have a GPU each, on one node; got fleet.worker.shards: {gpus} and {most} "
            f"GPU{'' if most == 1 else 's'}. Take fewer."
        )
    places = sum(node.gpus // gpus for node in nodes) if gpus else 0
    if gpus and workers is not None and workers > places and (is_own or options.worker.gpus == "auto"):
        own = "a GPU of its own" if gpus == 1 else f"{gpus} GPUs of its own, on one node"
        raise LaunchError(f"every worker has {own}; got {workers} workers and {found} GPUs. Ask for fewer.")
    if options.worker.cpus != "auto":
        return Share(cores=int(options.worker.cpus), gpus=gpus, accelerator=options.worker.accelerator)
    bare = Share(cores=0, gpus=gpus, accelerator=options.worker.accelerator)
    largest = max((node.cpus for node in nodes), default=1)
    least = replace(bare, cores=1 if gpus else max(1, min(options.worker.shards, largest)))
    if gpus and bare.room(nodes) > least.room(nodes):
        return bare
    there = least.room(nodes) if workers is None else min(workers, least.room(nodes))
    sizes = (replace(bare, cores=cores) for cores in range(largest, least.cores, -1))
    return next((share for share in sizes if share.room(nodes) >= max(1, there)), least)


class Nodes(Machines):
    """The nodes as they were a moment ago, and who works on them; whoever asks often asks Ray once a second."""

    def __init__(self) -> None:
        """Ask nothing yet."""
        self._asked_at = float("-inf")
        self._alive: tuple[ClusterNode, ...] = ()
        self._leaving: frozenset[str] = frozenset()
        self._of: dict[str, str] = {}

    @property
    def staying(self) -> tuple[ClusterNode, ...]:
        """Those that are alive and were not told to leave."""
        self._look()
        return tuple(node for node in self._alive if node.key not in self._leaving)

    def meet(self, worker: str, node: str) -> None:
        """Know on which node a worker is."""
        self._of[worker] = node

    def is_gone(self, worker: str) -> bool:
        """See `Machines`; of a worker that was not met nothing is known."""
        if (key := self._of.get(worker)) is None:
            return False
        self._look()
        return key in self._leaving or all(node.key != key for node in self._alive)

    def is_leaving(self, worker: str) -> bool:
        """See `Machines`."""
        if worker not in self._of:
            return False
        self._look()
        return self._of[worker] in self._leaving

    def _look(self) -> None:
        if time.monotonic() - self._asked_at < _FRESH_SECONDS:
            return
        import ray  # where shares are only told, it is not loaded

        self._alive = tuple(_node(row) for row in ray.nodes() if row["Alive"])
        self._leaving = frozenset(ray._private.state.state.get_draining_nodes())
        self._asked_at = time.monotonic()


def _node(row: dict[str, Any]) -> ClusterNode:
    given = row["Resources"]
    kinds = (name.removeprefix(_ACCELERATOR) for name in given if name.startswith(_ACCELERATOR))
    return ClusterNode(
        key=row["NodeID"],
        address=row["NodeManagerAddress"],
        cpus=int(given.get("CPU", 0)),
        gpus=int(given.get("GPU", 0)),
        accelerators=frozenset(kinds),
    )
