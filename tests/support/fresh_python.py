"""A Python in which nothing of this project can be imported: who has nothing but an export, transformers and peft."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PACKAGES = ("deltaspace", "dashboards", "studies", "trial_runner", "search_space")

_PRELUDE = f"""
import importlib, json, os, sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {PACKAGES!r}:
            raise ModuleNotFoundError(f"no module named {{name}} here")

sys.meta_path.insert(0, Refused())
for name in {PACKAGES!r}:
    assert name not in sys.modules
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(name)

def kept(value):
    return value.tolist() if hasattr(value, "tolist") else value

for folder, code, names in json.load(sys.stdin):
    os.chdir(folder)
    known = {{"__name__": "card"}}
    exec(code, known)
    print("RESULT", json.dumps({{name: kept(known[name]) for name in names}}), flush=True)
"""


def run_afresh(programs: Sequence[tuple[Path, str, Sequence[str]]], home: Path) -> list[dict[str, Any]]:
    """What programs leave in some of their names, each run in its folder, in one process without this project.

    Args:
        programs: Folder, Python, and names of lists, texts or tensors.
        home: Of the caches of Hugging Face.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSTARTUP")}
    done = subprocess.run(
        [sys.executable, "-I", "-c", _PRELUDE],
        input=json.dumps([(str(folder), code, list(names)) for folder, code, names in programs]),
        env=environment | {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = [line.removeprefix("RESULT ") for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return [json.loads(line) for line in found]
