"""Tries a cluster before a launch: its nodes, what they have to give, their deltaspace, the folders they see."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from studies.errors import LaunchError
from studies.fleet.driver_messages import not_taken_in
from studies.fleet.places import Node
from studies.fleet.surroundings import differences, hub_settings
from studies.fleet.trial_files import FolderMark

_PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """A node as it answered.

    Attributes:
        release: Its version of deltaspace; empty where it did not answer.
        sees_folder: Whether it sees, and may write, the folder of the studies' files.
        has_backbone: Whether the folder of the backbone is there; true of a name of the hub.
        settings: How it reaches the hub.
        problem: Why it did not answer; empty where it did.
    """

    node: Node
    release: str = ""
    sees_folder: bool = False
    has_backbone: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """A cluster as it was found.

    Attributes:
        address: As ``RAY_ADDRESS`` has it.
        folder: That the nodes were asked for.
        release: Version of deltaspace here.
        settings: How the hub is reached from here.
    """

    address: str
    folder: Path
    release: str
    settings: Mapping[str, str]
    nodes: tuple[NodeFacts, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What keeps nodes from working as this machine does, a line each."""
        return tuple(line for node in self.nodes for line in self._warnings_of(node))

    def _warnings_of(self, found: NodeFacts) -> Sequence[str]:
        name = f"node {found.node.address}"
        if found.problem:
            return [f"{name} cannot run workers: {found.problem}"]
        lines = []
        if found.release != self.release:
            lines.append(f"{name} has deltaspace {found.release}, this machine {self.release}")
        lines += [f"{name} differs: {one}" for one in differences(found.settings, self.settings)]
        if not found.has_backbone:
            lines.append(f"{name} does not have the backbone's folder")
        if not found.sees_folder:
            lines.append(f"{name} does not see {self.folder}: its snapshots go through this machine, more slowly")
        return lines


def cluster_facts(address: str, *, folder: Path, backbone: str) -> ClusterFacts:
    """Look at the nodes of the cluster at an address, within a minute.

    Args:
        folder: Of the studies' files; a node is asked for it, or for what of its path exists here already.
        backbone: A folder that every node needs; empty for none.

    Raises:
        LaunchError: If the cluster does not take this machine in.
    """
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    mark = FolderMark.new(there)
    questions = json.dumps({"folder": str(there), "mark": mark.text, "backbone": backbone})
    paths = os.pathsep.join(dict.fromkeys(path or str(Path.cwd()) for path in sys.path))
    try:
        with mark.laid():
            done = subprocess.run(
                [sys.executable, "-P", "-m", "studies.fleet.probe", address, questions],
                env=os.environ | {"PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"},
                capture_output=True,
                timeout=_PROBE_SECONDS,
                check=True,
            )
        rows = json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        raise LaunchError(f"RAY_ADDRESS must name a cluster to work with; {not_taken_in(address)}.") from error
    return ClusterFacts(
        address=address,
        folder=there,
        release=version("deltaspace"),
        settings=hub_settings(),
        nodes=tuple(map(_facts, rows)),
    )


def _facts(row: dict[str, Any]) -> NodeFacts:
    said, answers = row["node"], {name: value for name, value in row.items() if name != "node"}
    return NodeFacts(node=Node(**{**said, "accelerators": frozenset(said["accelerators"])}), **answers)
