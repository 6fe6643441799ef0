"""Package of another project: a module and its entry points, installed as pip would, and a process that has it."""

import os
import sys
from pathlib import Path

from support.processes import printed_by


def run_with_package(folder: Path, *, source: str, points: dict[str, str], script: str) -> str:
    """Return the output of a script in a process where a module ``foreign_module`` is installed.

    Args:
        folder: Empty folder of the package.
        source: Source of the module.
        points: A line for each group of entry points, such as ``mine = foreign_module:MINE``.
        script: Python program, which must succeed.
    """
    (folder / "foreign_module.py").write_text(source)
    info = folder / "somebodys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("".join(f"[{group}]\n{line}\n" for group, line in points.items()))
    return printed_by("-c", script, folder=folder, PYTHONPATH=os.pathsep.join([str(folder), *sys.path]))
