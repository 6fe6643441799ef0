"""Environment without this project, like that of a user with an export, transformers and peft alone."""

import importlib.util
import json
import os
import subprocess
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PACKAGES = ("deltaspace", "dashboards", "studies", "trial_runner", "search_space")

_PRELUDE = f"""
import importlib.util, json, os, sys

for name in {PACKAGES!r}:
    assert name not in sys.modules and importlib.util.find_spec(name) is None, name

def kept(value):
    return value.tolist() if hasattr(value, "tolist") else value

for folder, code, names in json.load(sys.stdin):
    os.chdir(folder)
    known = {{"__name__": "card"}}
    exec(code, known)
    print("RESULT", json.dumps({{name: kept(known[name]) for name in names}}), flush=True)
"""


def stock_environment(folder: Path) -> Path:
    """Build a virtual environment with all installed packages but this project; return its Python.

    Its packages are links; what an editable installation adds to the path is in a file that is not linked.
    """
    builder = venv.EnvBuilder(symlinks=True, with_pip=False)
    builder.create(folder)
    (place,) = folder.glob("lib/python*/site-packages")
    places = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    origins = [importlib.util.find_spec(name) for name in ("torch", "transformers", "peft")]
    places |= {Path(one.origin).parents[1] for one in origins if one is not None and one.origin is not None}
    for entry in (entry for one in places for entry in one.iterdir()):
        is_ours = entry.name in PACKAGES or "deltaspace" in entry.name or entry.suffix == ".pth"
        if not is_ours and not (place / entry.name).exists():
            (place / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def run_afresh(programs: Sequence[tuple[Path, str, Sequence[str]]], home: Path) -> list[dict[str, Any]]:
    """Run programs in one process without this project, each in its folder; return the named variables.

    Args:
        programs: Folder, Python, and names of lists, texts or tensors.
        home: Folder of the environment, and of the caches of Hugging Face.
    """
    python = home / "stock" / "bin" / "python"
    if not python.exists():
        stock_environment(home / "stock")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSTARTUP")}
    done = subprocess.run(
        [str(python), "-I", "-c", _PRELUDE],
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
