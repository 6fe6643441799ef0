"""Launches a study of trivial trials; the tests start this in a process of its own and kill it.

Usage: trivial_launch.py STORAGE_URL FOLDER BACKEND TRIALS STEP_SECONDS [SAMPLER [REPLICATES [DEADLY]]]

Trial DEADLY ends its process at step 3.
"""

import sys
from pathlib import Path

from support.trivial_runner import TrivialFactory

from studies.keeping.progress import Progress
from studies.launching import launch
from studies.specification import Specification, specification_from_mapping

BACKBONE = Path(__file__).parents[1] / "data" / "backbones" / "roberta_base"


def specification(
    folder: Path, backend: str, trials: int, sampler: str = "tpe", replicates: str = "0"
) -> Specification:
    return specification_from_mapping(
        {
            "name": "trivial",
            "backbone": str(BACKBONE),
            "task": {"name": "docstrings"},
            "budget": "0.5%",
            "trials": trials,
            "training": {"steps": 16},
            "pruning": {"first_rung_steps": 4},
            "search": {"sampler": sampler, "published": ["mam_adapter", "bitfit"], "replicates": replicates},
            "fleet": {"backend": backend, "pack": 2, "workers": 2, "artefacts": str(folder)},
        }
    )


def tell(progress: Progress) -> None:
    sys.stdout.write(f"{progress.ended} ended, {len(progress.running)} running\n")
    sys.stdout.flush()


def main() -> None:
    url, folder, backend, trials, step_seconds, *searched = sys.argv[1:]
    *searched, deadly = searched if len(searched) == 3 else [*searched, ""]
    study = specification(Path(folder), backend, int(trials), *searched)
    result = launch(
        study,
        storage_url=url,
        observer=tell,
        factory=TrivialFactory(step_seconds=float(step_seconds), dies_at={int(deadly): 3} if deadly else {}),
        lease_seconds=20,
    )
    sys.stdout.write(f"{result.finished}: {result.reason}\n")


if __name__ == "__main__":
    main()
