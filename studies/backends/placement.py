"""Nodes of a cluster, and its division among workers by nodes and GPUs, never into shares that no node has."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from studies.errors import LaunchError
from studies.runtime.messages import Machines
from studies.study_file.sections import Fleet

_FRESH_SECONDS = 1.0
_ACCELERATOR = "accelerator_type:"
_SMALL_AMOUNT = 0.001
"""Amount of an accelerator type requested from Ray, enough to be placed on a node with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """Node that is alive.

    Attributes:
        key: Ray's identifier of the node.
        address: Address of its machine.
        cpus: Cores that Ray may assign, including those in use.
        gpus: GPUs that Ray may assign, including those in use.
        accelerators: Types of its GPUs by Ray's names.
    """

    key: str
    address: str
    cpus: int
    gpus: int
    accelerators: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Resources of each worker.

    Attributes:
        cores: Number of cores; 0 where a node has GPUs and no cores to spare.
        gpus: Number of GPUs: one for every shard of the backbone, or none.
        accelerator: Type of the GPU by Ray's name; None for any.
    """

    cores: int
    gpus: int
    accelerator: str | None = None

    @property
    def bundle(self) -> dict[str, float]:
        """Resources as a Ray bundle."""
        kind = {} if self.accelerator is None else {f"accelerator_type:{self.accelerator}": _SMALL_AMOUNT}
        wanted = {"CPU": float(self.cores), "GPU": float(self.gpus), **kind}
        return {name: count for name, count in wanted.items() if count}

    @property
    def words(self) -> str:
        """Resources in words."""
        kind = "" if self.accelerator is None else f" ({self.accelerator})"
        count = "a GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
        gpu = f"{count}{kind} and " if self.gpus else ""
        return f"{gpu}{self.cores} core{'' if self.cores == 1 else 's'}"

    def room(self, nodes: Sequence[ClusterNode]) -> int:
        """Return the number of workers that nodes can hold."""
        return sum(self._room_on(node) for node in nodes)

    def _room_on(self, node: ClusterNode) -> int:
        if self.accelerator is not None and self.accelerator not in node.accelerators:
            return 0
        wanted = ((self.cores, node.cpus), (self.gpus, node.gpus))
        return min((has // needs for needs, has in wanted if needs), default=0)


def share_of(nodes: Sequence[ClusterNode], options: Fleet, *, is_own: bool) -> Share:
    """Return the resources of each worker: a GPU where there is one, and as many cores as any node can give to all.

    Each shard of a sharded backbone has a GPU, all on one node, or a core where there is no GPU.

    Args:
        is_own: Whether no node can be added later.

    Raises:
        LaunchError: If there are fewer GPUs than workers, or than shards on a node, and none can be added.
    """
    n_gpus = sum(node.gpus for node in nodes)
    workers = None if options.workers == "auto" else int(options.workers)
    gpus = options.worker.shards * (min(1, n_gpus) if options.worker.gpus == "auto" else int(options.worker.gpus))
    most = max((node.gpus for node in nodes), default=0)
    if gpus > 1 and most < gpus and (is_own or options.worker.gpus == "auto"):
        raise LaunchError(
            f"fleet.worker.shards must be at most the GPUs of one node; got {gpus} shards and {most} "
            f"GPU{'' if most == 1 else 's'}. Use fewer shards."
        )
    places = sum(node.gpus // gpus for node in nodes) if gpus else 0
    if gpus and workers is not None and workers > places and (is_own or options.worker.gpus == "auto"):
        own = "a GPU of its own" if gpus == 1 else f"{gpus} GPUs of its own, on one node"
        advice = "Set fewer workers." if n_gpus else "fleet.worker.gpus=auto uses the CPU."
        raise LaunchError(f"every worker needs {own}; got {workers} workers and {n_gpus} GPUs. {advice}")
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


NO_GPU = "waiting for a GPU: this Ray cluster has none; fleet.worker.gpus=auto uses the CPU"
"""Message to people while the cluster has no GPU at all."""


def no_gpu(wanted: int, nodes: Sequence[ClusterNode]) -> str:
    """Return `NO_GPU` where workers need a GPU and no node has any; else nothing."""
    return NO_GPU if wanted and not any(node.gpus for node in nodes) else ""


class Nodes(Machines):
    """Nodes of the cluster and the workers on them; Ray is queried at most once a second."""

    def __init__(self) -> None:
        """Start without a query."""
        self._queried_at = float("-inf")
        self._alive: tuple[ClusterNode, ...] = ()
        self._leaving: frozenset[str] = frozenset()
        self._node_of: dict[str, str] = {}

    @property
    def staying(self) -> tuple[ClusterNode, ...]:
        """Nodes that are alive and not draining."""
        self._refresh()
        return tuple(node for node in self._alive if node.key not in self._leaving)

    def register_worker(self, worker: str, node: str) -> None:
        """Record the node of a worker."""
        self._node_of[worker] = node

    def is_gone(self, worker: str) -> bool:
        """Return whether a worker's node has died or is draining; an unregistered worker's has not."""
        if (key := self._node_of.get(worker)) is None:
            return False
        self._refresh()
        return key in self._leaving or all(node.key != key for node in self._alive)

    def is_leaving(self, worker: str) -> bool:
        """Return whether a worker's node is draining."""
        if worker not in self._node_of:
            return False
        self._refresh()
        return self._node_of[worker] in self._leaving

    def _refresh(self) -> None:
        if time.monotonic() - self._queried_at < _FRESH_SECONDS:
            return
        import ray  # not needed for shares alone

        self._alive = tuple(_node(row) for row in ray.nodes() if row["Alive"])
        self._leaving = frozenset(ray._private.state.state.get_draining_nodes())
        self._queried_at = time.monotonic()


def _node(row: dict[str, Any]) -> ClusterNode:
    resources = row["Resources"]
    kinds = (name.removeprefix(_ACCELERATOR) for name in resources if name.startswith(_ACCELERATOR))
    return ClusterNode(
        key=row["NodeID"],
        address=row["NodeManagerAddress"],
        cpus=int(resources.get("CPU", 0)),
        gpus=int(resources.get("GPU", 0)),
        accelerators=frozenset(kinds),
    )
