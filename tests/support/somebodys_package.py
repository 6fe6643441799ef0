"""A package of somebody else's: a module and its entry points, installed as pip would, and a process that has it."""

import os
import subprocess
import sys
from pathlib import Path


def run_with_package(folder: Path, *, source: str, points: dict[str, str], script: str) -> str:
    """What a script prints in a process where a module ``somebodys_module`` is installed.

    Args:
        folder: Empty; where the package goes.
        source: Of the module.
        points: A line for each group of entry points, such as ``mine = somebodys_module:MINE``.
        script: Python; fails the test if it fails.
    """
    (folder / "somebodys_module.py").write_text(source)
    info = folder / "somebodys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("".join(f"[{group}]\n{line}\n" for group, line in points.items()))
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
