"""Tries a cluster before a launch: its nodes, what they have to give, their deltaspace, the folders they see.

Ray may hang or print anything, so a process of its own asks it:
``python -m studies.backends.resource_probe ADDRESS QUESTIONS`` runs on one of the nodes and writes JSON to stdout.
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
from studies.errors import LaunchError, said_line
from trial_runner.files import expanded

_PROBE_SECONDS = 60.0
_ANSWER_SECONDS = 30.0
_NAMED = ("HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT", "HF_HUB_OFFLINE")
_TOKEN = "a token of the hub"
_USUAL_HOME = "~/.cache/huggingface"


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

    node: ClusterNode
    release: str = ""
    sees_folder: bool = False
    has_backbone: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


_ANSWERS = TypeAdapter(tuple[NodeFacts, ...])


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

    def _warnings_of(self, found: NodeFacts) -> Iterator[str]:
        name = f"node {found.node.address}"
        if found.problem:
            yield f"{name} cannot run workers: {found.problem}"
            return
        if found.release != self.release:
            yield f"{name} has deltaspace {found.release}, this machine {self.release}"
        yield from (f"{name} differs: {one}" for one in differences(found.settings, self.settings))
        if not found.has_backbone:
            yield f"{name} does not have the backbone's folder"
        if not found.sees_folder:
            yield f"{name} does not see {self.folder}: its snapshots go through this machine, more slowly"


def cluster_facts(address: str, *, folder: Path, backbone: str) -> ClusterFacts:
    """Look at the nodes of the cluster at an address, within a minute.

    Args:
        folder: Of the studies' files; a node is asked for it, or for what of its path exists here already.
        backbone: A folder that every node needs; empty for none.

    Raises:
        LaunchError: If the cluster does not take this machine in.
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
        raise LaunchError(f"RAY_ADDRESS must name a cluster to work with; {not_taken_in(address)}.") from error
    return ClusterFacts(
        address=address, folder=there, release=version("deltaspace"), settings=hub_settings(), nodes=nodes
    )


def hub_settings() -> dict[str, str]:
    """How this process reaches the hub, by name: what is set, and whether there is a token, which is not told."""
    said = {name: os.environ.get(name, "") for name in _NAMED}
    return said | {_TOKEN: "there" if _has_token() else ""}


def _has_token() -> bool:
    home = os.environ.get("HF_HOME") or _USUAL_HOME
    file = os.environ.get("HF_TOKEN_PATH") or f"{home}/token"
    return bool(os.environ.get("HF_TOKEN")) or expanded(file).is_file()


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    """How a node reaches the hub in another way than the launching machine does, a clause each."""
    for name, value in here.items():
        if there.get(name, "") != value:
            yield f"{name} is {there.get(name) or 'not set'} ({value or 'not set'} on the launching machine)"


def main() -> None:
    """Ask every node, and print what each answered."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    address, questions = sys.argv[1], json.loads(sys.argv[2])
    ray.init(address, log_to_driver=False, logging_level="ERROR", configure_logging=True)
    look = ray.remote(num_cpus=0, max_retries=0)(look_here)
    there = {node: NodeAffinitySchedulingStrategy(node.key, soft=False) for node in Nodes().staying}
    asked = {node: look.options(scheduling_strategy=place).remote(questions) for node, place in there.items()}
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
        return {"problem": said_line(error, type(error).__name__, place=-1)}
    return found


def look_here(questions: dict[str, str]) -> dict[str, object]:
    """What a node answers: its deltaspace, whether it sees the folder of studies, whether it has the backbone."""
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
