"""The study file of a small study: on RoBERTa-base, of the embedded task, with one worker in this process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from studies.study_file import Specification, specification_from_mapping

BACKBONE = Path(__file__).parents[1] / "data" / "backbones" / "roberta_base"


def small_study(
    folder: Path,
    *,
    trials: int,
    steps: int = 16,
    first_rung: int | None = 4,
    fleet: Mapping[str, object] | None = None,
    **given: Any,
) -> Specification:
    """Return a small study with its files in ``artefacts`` of a folder; other keys replace those of the file."""
    own: dict[str, object] = {
        "name": "trivial",
        "backbone": str(BACKBONE),
        "task": {"name": "docstrings"},
        "budget": "0.5%",
        "trials": trials,
        "training": {"steps": steps},
        "pruning": {"first_rung_steps": first_rung},
        "fleet": {"backend": "inline", "pack": 2, "artefacts": str(folder / "artefacts"), **(fleet or {})},
    }
    return specification_from_mapping(own | given)
