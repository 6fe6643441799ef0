"""Facts of a trial for trackers, with the same names for all of them."""

import math
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from studies.analysis.methods import method_name
from studies.errors import LaunchError
from studies.records import Reading, StudyRecord, TrialRecord
from studies.trackers import PACKAGES


def facts_of(study: StudyRecord, trial: TrialRecord) -> dict[str, str | int | float]:
    """Return the hyper-parameters, dimensions and sizes of a trial."""
    facts: dict[str, str | int | float | None] = {
        "study": study.name,
        "trial": trial.number,
        "method": method_name(trial),
        "description": trial.description,
        "backbone": str(study.source),
        "stored_parameters": trial.stored_parameters,
        "trained_parameters": trial.trained_parameters,
        "attention_share": trial.attention_share,
        "seed": trial.seed,
    }
    for name, side in (("attention", trial.attention), ("ffn", trial.ffn)):
        if side is not None:
            facts |= {
                f"{name}_form": side.form,
                f"{name}_bottleneck": side.bottleneck,
                f"{name}_learning_rate": side.learning_rate,
            }
    return {name: value for name, value in facts.items() if value is not None}


def run_name(trial: TrialRecord) -> str:
    """Return the name of a trial's run."""
    return f"trial-{trial.number}"


def measured(reading: Reading) -> dict[str, float]:
    """Return the values of a reading, without those that are not finite."""
    values = {"score": reading.score, "train_loss": reading.train_loss, "seconds": reading.seconds, **reading.metrics}
    return {name: float(value) for name, value in values.items() if math.isfinite(value)}


def needed(tracker: str) -> Any:
    """Return the package of a tracker.

    Raises:
        LaunchError: If it is not installed.
    """
    package = PACKAGES[tracker]
    try:
        return import_module(package)
    except ImportError:
        installed = [name for name, other in PACKAGES.items() if other != package and find_spec(other) is not None]
        raise LaunchError(
            f"cannot report to {tracker}: the package {package} is not installed (installed trackers: "
            f"{', '.join(installed) or 'none'}). Run: pip install 'deltaspace[{tracker}]'"
        ) from None
