"""Corruptions that are planted in every column of a ledger, and `verify`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import trivial_runner
from support.corruptions import Damage, corruptions
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from studies.confirmation.execution import confirm
from studies.confirmation.request import ConfirmationRequest
from studies.errors import StudiesError
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.verification import verify
from trial_runner.errors import RunnerError
from trial_runner.example_losses import ExampleLosses

NOT_DETECTABLE = {
    "attempts.lease_expires_at",
    "attempts.worker",
    "confirmations.top",
    "events.at",
    "events.id",
    "events.text",
    "readings.seconds",
    "readings.train_loss",
    "studies.held_until",
    "studies.holder",
    "studies.study_file",  # the name of the sampler, and how many trials the next launch wants
    "trials.description",
}
"""Columns that nothing else tells: see ``docs/explanation/ledger-and-crashes.md``."""
STUDIES = ("trivial", "trivial-confirm")


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build a ledger with a finished study, replicates, examples and a confirmation."""
    measured = trivial_runner.TrivialPack.reading

    def with_examples(self: Any, slot: Any) -> Any:
        from dataclasses import replace

        reading = measured(self, slot)
        return replace(reading, examples=ExampleLosses.of(np.full(24, reading.metrics["validation_loss"])))

    monkeypatch.setattr(trivial_runner.TrivialPack, "reading", with_examples)
    url = f"sqlite:///{tmp_path / 'whole.db'}"
    study = specification(tmp_path / "artefacts", "inline", 14, "tpe", "2")
    assert launch(study, storage_url=url, factory=TrivialFactory()).finished
    request = ConfirmationRequest(study="trivial", top=2, seeds=2, against=("bitfit",))
    assert confirm(request, storage_url=url, factory=TrivialFactory()).finished
    return tmp_path / "whole.db"


def found_in(file: Path) -> list[str]:
    try:
        with Ledger.open(f"sqlite:///{file}", read_only=True) as ledger:
            return [line for name in STUDIES for line in verify(ledger, name)]
    except (StudiesError, RunnerError) as error:
        return [str(error)]


@pytest.mark.slow
def test_all_detectable_corruptions_are_found(whole, tmp_path):
    assert found_in(whole) == []
    missed: list[Damage] = []
    count = 0
    for one in corruptions():
        if one.plant(whole, tmp_path / "corrupt.db"):
            count += 1
            lines = found_in(tmp_path / "corrupt.db")
            assert all("\n" not in line for line in lines), one
            missed += [one] * (not lines)
    assert count >= 120
    assert {one.name.partition(":")[0] for one in missed} <= NOT_DETECTABLE
    assert len(missed) <= count // 10
