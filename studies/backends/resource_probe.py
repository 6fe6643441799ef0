"""Check of a cluster before a launch: its nodes, their resources, releases of deltaspace, and access to folders.

Ray may hang or print anything, so a process of its own runs the check. On one of the nodes
``python -m studies.backends.resource_probe ADDRESS QUESTIONS`` writes JSON to stdout.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from studies.backends.driver_process import not_taken_in
from studies.backends.placement import ClusterNode, Nodes
from studies.backends.trial_files import FolderMark, sees_folder
from studies.errors import LaunchError, message_line
from trial_runner.files import expanded

_PROBE_SECONDS = 60.0
_ANSWER_SECONDS = 30.0
_NAMED = ("HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT", "HF_HUB_OFFLINE")
_TOKEN = "a token of the hub"
_USUAL_HOME = "~/.cache/huggingface"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """Answer of a node.

    Attributes:
        release: Its release of deltaspace; empty without an answer.
        sees_folder: Whether it can read and write the folder of the studies' files.
        has_backbone: Whether the folder of the backbone exists; true for names on the hub.
        settings: Its settings of the hub.
        problem: Reason why it did not answer; empty if it did.
    """

    node: ClusterNode
    release: str = ""
    sees_folder: bool = False
    has_backbone: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


_ANSWERS = TypeAdapter(tuple[NodeFacts, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Facts about a cluster.

    Attributes:
        address: Address in ``RAY_ADDRESS``.
        folder: Folder that the nodes were checked for.
        release: Release of deltaspace on this machine.
        settings: Settings of the hub on this machine.
    """

    address: str
    folder: Path
    release: str
    settings: Mapping[str, str]
    nodes: tuple[NodeFacts, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons why nodes do not work as this machine does, a line each."""
        return tuple(line for node in self.nodes for line in self._warnings_of(node))

    def _warnings_of(self, found: NodeFacts) -> Iterator[str]:
        name = f"node {found.node.address}"
        if found.problem:
            yield f"{name} cannot run workers: {found.problem}"
            return
        if found.release != self.release:
            yield f"{name} has deltaspace {found.release}, this machine {self.release}"
        yield from (f"{name} differs: {one}" for one in setting_differences(found.settings, self.settings))
        if not found.has_backbone:
            yield f"{name} does not have the backbone's folder"
        if not found.sees_folder:
            yield f"{name} does not see {self.folder}: its snapshots go through this machine, more slowly"


def cluster_facts(address: str, *, folder: Path, backbone: str) -> ClusterFacts:
    """Check the nodes of the cluster at an address, within a minute.

    Args:
        folder: Folder of the studies' files; nodes are checked for it, or for its nearest existing parent.
        backbone: Folder that every node needs; empty for none.

    Raises:
        LaunchError: If the cluster does not accept this machine.
    """
    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    mark = FolderMark(folder=there)
    questions = json.dumps({"folder": str(there), "mark": mark.text, "backbone": backbone})
    paths = os.pathsep.join(dict.fromkeys(path or str(Path.cwd()) for path in sys.path))
    try:
        with mark.laid():
            done = subprocess.run(
                [sys.executable, "-P", "-m", "studies.backends.resource_probe", address, questions],
                env=os.environ | {"PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"},
                capture_output=True,
                timeout=_PROBE_SECONDS,
                check=True,
            )
        nodes = _ANSWERS.validate_json(done.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        raise LaunchError(f"cannot use the cluster of RAY_ADDRESS: {not_taken_in(address)}.") from error
    return ClusterFacts(
        address=address, folder=there, release=version("deltaspace"), settings=hub_settings(), nodes=nodes
    )


def hub_settings() -> dict[str, str]:
    """Return the settings of the hub in this process by name, with the presence of a token but not its value."""
    settings = {name: os.environ.get(name, "") for name in _NAMED}
    return settings | {_TOKEN: "there" if _has_token() else ""}


def _has_token() -> bool:
    home = os.environ.get("HF_HOME") or _USUAL_HOME
    file = os.environ.get("HF_TOKEN_PATH") or f"{home}/token"
    return bool(os.environ.get("HF_TOKEN")) or expanded(file).is_file()


def setting_differences(there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    """Yield the setting_differences between the hub settings of a node and of the launching machine, a clause each."""
    for name, value in here.items():
        if there.get(name, "") != value:
            yield f"{name} is {there.get(name) or 'not set'} ({value or 'not set'} on the launching machine)"


def main() -> None:
    """Check every node and print the answers."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    address, questions = sys.argv[1], json.loads(sys.argv[2])
    ray.init(address, log_to_driver=False, logging_level="ERROR", configure_logging=True)
    inspect = ray.remote(num_cpus=0, max_retries=0)(inspect_node)
    there = {node: NodeAffinitySchedulingStrategy(node.key, soft=False) for node in Nodes().staying}
    asked = {node: inspect.options(scheduling_strategy=place).remote(questions) for node, place in there.items()}
    ray.wait(list(asked.values()), num_returns=len(asked), timeout=_ANSWER_SECONDS)
    found = tuple(NodeFacts(node=node, **_answered(answer)) for node, answer in asked.items())
    sys.stdout.write(_ANSWERS.dump_json(found).decode())
    sys.stdout.flush()
    ray.shutdown()


def _answered(answer: Any) -> dict[str, Any]:
    import ray
    from ray.exceptions import RayError

    try:
        found: dict[str, Any] = ray.get(answer, timeout=0)
    except RayError as error:
        return {"problem": message_line(error, type(error).__name__, place=-1)}
    return found


def inspect_node(questions: dict[str, str]) -> dict[str, object]:
    """Return the answer of this node."""
    mark = FolderMark(folder=Path(questions["folder"]), text=questions["mark"])
    backbone = questions["backbone"]
    return {
        "release": version("deltaspace"),
        "sees_folder": sees_folder(mark),
        "has_backbone": not backbone or Path(backbone).is_dir(),
        "settings": hub_settings(),
        "problem": "",
    }


if __name__ == "__main__":
    main()
