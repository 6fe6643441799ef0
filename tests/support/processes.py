"""Fresh interpreters that run this project."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from deltaspace.entry_point import main; sys.exit(main())"
"""What the command ``deltaspace`` runs."""


def run_python(*arguments: object, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with some arguments, on one thread and without a storage in the environment."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    environment.pop("DELTASPACE_STORAGE", None)
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def printed_by(*arguments: object, folder: Path = ROOT, **variables: str) -> str:
    """Return the output of Python, which must succeed."""
    done = run_python(*arguments, folder=folder, **variables)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return done.stdout
