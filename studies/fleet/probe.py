"""Looks at every node of a cluster from one of its nodes; what was found goes to stdout as JSON.

Started as ``python -m studies.fleet.probe ADDRESS QUESTIONS`` by `studies.fleet.probing`, so that Ray may hang,
or say what it likes.
"""

import dataclasses
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from studies.fleet.nodes import Nodes
from studies.fleet.places import Node
from studies.fleet.surroundings import hub_settings
from studies.fleet.trial_files import FolderMark, sees_folder

_ANSWER_SECONDS = 30.0


def main() -> None:
    """Ask every node, and print what each answered."""
    address, questions = sys.argv[1], json.loads(sys.argv[2])
    ray.init(address, log_to_driver=False, logging_level="ERROR", configure_logging=True)
    asked = {node: _asked(node, questions) for node in Nodes().staying}
    ray.wait(list(asked.values()), num_returns=len(asked), timeout=_ANSWER_SECONDS)
    sys.stdout.write(json.dumps([_described(node) | _answered(answer) for node, answer in asked.items()]))
    sys.stdout.flush()
    ray.shutdown()


def _asked(node: Node, questions: dict[str, str]) -> Any:
    there = NodeAffinitySchedulingStrategy(node.key, soft=False)
    look = ray.remote(num_cpus=0, max_retries=0)(look_here)
    return look.options(scheduling_strategy=there).remote(questions)


def _described(node: Node) -> dict[str, object]:
    return {"node": dataclasses.asdict(node) | {"accelerators": sorted(node.accelerators)}}


def _answered(answer: Any) -> dict[str, object]:
    try:
        found: dict[str, object] = ray.get(answer, timeout=0)
    except RayError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        return {"problem": lines[-1].rstrip(".")}
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
