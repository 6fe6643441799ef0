"""The nodes of a Ray cluster: which are there, which are about to leave, and what each has to give."""

import time
from typing import Any

import ray

from studies.fleet.places import Node

_FRESH_SECONDS = 1.0
_ACCELERATOR = "accelerator_type:"


class Nodes:
    """The nodes as they were a moment ago; whoever asks often asks Ray once a second."""

    def __init__(self) -> None:
        """Ask nothing yet."""
        self._asked_at = float("-inf")
        self._alive: tuple[Node, ...] = ()
        self._leaving: frozenset[str] = frozenset()

    @property
    def staying(self) -> tuple[Node, ...]:
        """Those that are alive and were not told to leave."""
        self._look()
        return tuple(node for node in self._alive if node.key not in self._leaving)

    def is_gone(self, key: str) -> bool:
        """Whether a node has ended, or was told to leave."""
        self._look()
        return key in self._leaving or all(node.key != key for node in self._alive)

    def is_leaving(self, key: str) -> bool:
        """Whether a node was told to leave."""
        self._look()
        return key in self._leaving

    def _look(self) -> None:
        if time.monotonic() - self._asked_at < _FRESH_SECONDS:
            return
        self._alive = tuple(_node(row) for row in ray.nodes() if row["Alive"])
        self._leaving = frozenset(ray._private.state.state.get_draining_nodes())
        self._asked_at = time.monotonic()


def _node(row: dict[str, Any]) -> Node:
    given = row["Resources"]
    kinds = (name.removeprefix(_ACCELERATOR) for name in given if name.startswith(_ACCELERATOR))
    return Node(
        key=row["NodeID"],
        address=row["NodeManagerAddress"],
        cpus=int(given.get("CPU", 0)),
        gpus=int(given.get("GPU", 0)),
        accelerators=frozenset(kinds),
    )


class CrewNodes:
    """The machines of workers (`studies.keeping.messages.Machines`), as far as their nodes are known."""

    def __init__(self) -> None:
        """Know nobody yet."""
        self._nodes = Nodes()
        self._of: dict[str, str] = {}

    def meet(self, worker: str, node: str) -> None:
        """Know on which node a worker is."""
        self._of[worker] = node

    def is_gone(self, worker: str) -> bool:
        """See `studies.keeping.messages.Machines`."""
        return worker in self._of and self._nodes.is_gone(self._of[worker])

    def is_leaving(self, worker: str) -> bool:
        """See `studies.keeping.messages.Machines`."""
        return worker in self._of and self._nodes.is_leaving(self._of[worker])
