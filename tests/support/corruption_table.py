"""The table "column x change: planted, found" of `verify`, over a search, a confirmation of it and an ablation.

    PYTHONPATH=.:tests python -m support.corruption_table           the table
    PYTHONPATH=.:tests python -m support.corruption_table --lines   each change with the first line of verify, before it

Trials are trivial. The last lines are the changes that are not found, with the reason.
"""

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from support import trivial_runner
from support.corruptions import Damage, corruptions
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from studies.confirmation.execution import confirm
from studies.confirmation.request import AblationRequest, ConfirmationRequest
from studies.errors import StudiesError
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.verification import verify
from trial_runner.errors import RunnerError
from trial_runner.example_losses import ExampleLosses

STUDIES = ("trivial", "trivial-confirm", "trivial-ablate")
EXAMPLES = 24
_NOTHING = "nothing else follows from it"
NOT_FOUND = {
    "artefacts.id": "a key without a meaning; another one is whole as well",
    "attempts.lease_expires_at": "when a lease would have run out says nothing once its attempt has ended",
    "attempts.worker": _NOTHING,
    "events.at": _NOTHING,
    "readings.seconds": "a duration; only its sign follows",
    "readings.train_loss": _NOTHING,
    "studies.held_until": "whoever runs a study says so himself",
    "studies.holder": "whoever runs a study says so himself",
    **{
        f"confirmations.contenders: change of the ablation json_set(contenders, '$[{place}].change', 'other')": "words"
        for place in range(3)
    },
    "confirmations.most_parameters: of the confirmation 1000000000": "a bound that no configuration reaches",
    "studies.specification: trials of trivial": "how many trials the next launch wants",
}
"""Columns, or changes, that are not found, and why; ``docs/explanation/ledger-and-crashes.md`` has them."""


def write_studies(folder: Path) -> Path:
    """Write a ledger with a finished search with replicates and examples, a confirmation and an ablation of it."""
    url = f"sqlite:///{folder / 'whole.db'}"
    study = specification(folder / "artefacts", "inline", 18, "tpe", "2")
    with mock.patch.object(trivial_runner.TrivialPack, "reading", _with_examples):
        assert launch(study, storage_url=url, factory=TrivialFactory()).finished
        confirmed = ConfirmationRequest(study="trivial", top=2, seeds=2, against=("bitfit",))
        with Ledger.open(url, read_only=True) as ledger:
            trials = [one for one in ledger.trials(1) if one.method is None and one.replicate_of is None and one.score]
        best = max(trials, key=lambda one: (bool(one.attention and one.ffn), one.score or 0))
        ablated = AblationRequest(study="trivial", trial=best.number, against="bitfit", seeds=2)
        assert all(confirm(one, storage_url=url, factory=TrivialFactory()).finished for one in (confirmed, ablated))
    return folder / "whole.db"


_measured = trivial_runner.TrivialPack.reading


def _with_examples(self: Any, slot: Any) -> Any:
    """Return a reading whose score is the share of its examples that are right."""
    reading = _measured(self, slot)
    draw = np.random.default_rng([slot.request.seed, slot.step])
    right = np.arange(EXAMPLES) < round(reading.score * EXAMPLES)
    losses = np.where(right, draw.uniform(0.05, 0.6, EXAMPLES), draw.uniform(0.8, 3, EXAMPLES))
    order = draw.permutation(EXAMPLES)
    score, loss = float(right.mean()), float(losses.mean())
    metrics = {"accuracy": score, "validation_loss": loss}
    examples = ExampleLosses.of(losses[order], right[order])
    return replace(reading, score=score, metrics=metrics, train_loss=loss, examples=examples)


def found_in(file: Path) -> list[str]:
    """Return the findings of `verify` in the first study of a ledger that has any."""
    try:
        with Ledger.open(f"sqlite:///{file}", read_only=True) as ledger:
            return next(filter(None, (verify(ledger, name) for name in STUDIES)), [])
    except (StudiesError, RunnerError) as error:
        return [str(error)]


@contextmanager
def planted(one: Damage, whole: Path) -> Iterator[Path | None]:
    """Return a damaged copy of a ledger and its folder; None if the database refuses the damage."""
    file = whole.parent / "corrupt" / "ledger.db"
    file.parent.mkdir()
    shutil.copytree(whole.parent / "artefacts", file.parent / "artefacts")
    yield file if one.plant(whole, file) else None
    shutil.rmtree(file.parent)


def results(whole: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield every change that a ledger admits, with the findings of `verify`."""
    for one in corruptions():
        with planted(one, whole) as file:
            if file is not None:
                yield one.name, found_in(file)


def reason_of(name: str) -> str:
    """Why a change is not found; empty if it is to be."""
    return NOT_FOUND.get(name, NOT_FOUND.get(name.partition(":")[0], ""))


def main() -> None:
    """Print the table."""
    counts: Counter[tuple[str, str]] = Counter()
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        whole = write_studies(Path(folder))
        assert found_in(whole) == [], found_in(whole)
        for name, lines in results(whole):
            column = name.partition(":")[0]
            counts[column, "planted"] += 1
            counts[column, "found"] += bool(lines)
            missed += [] if lines else [name]
            if "--lines" in sys.argv:
                sys.stdout.write(f"{name}\n    {lines[0] if lines else ''}\n")
    columns = dict.fromkeys(column for column, _ in counts)
    lines = [f"{column:<34}{counts[column, 'planted']:>8}{counts[column, 'found']:>8}" for column in columns]
    total = [sum(counts[column, name] for column in columns) for name in ("planted", "found")]
    lines = [f"{'column':<34}{'planted':>8}{'found':>8}", *lines, f"{'all':<34}{total[0]:>8}{total[1]:>8}", ""]
    lines += [f"not found: {name}; {reason_of(name) or 'it follows from other records'}" for name in missed]
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
