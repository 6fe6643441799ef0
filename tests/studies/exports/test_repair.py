"""Weights that are gone or changed are named at launch, trained anew, and put back if they are the same."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.asked_ledger import asked
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from studies.errors import StudiesError
from studies.exports.repair import Mended, mend
from studies.launch.launch import launch
from studies.ledger.invariants import lost_weights
from studies.records import ArtefactRecord
from studies.verification import verify

TRIALS = 8


class Study:
    """A finished study of trivial trials."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "ledger.db"
        self.url = f"sqlite:///{self.file}"
        self.specification = specification(folder / "artefacts", "inline", TRIALS)
        assert self.launch() == []

    def launch(self) -> list[str]:
        """What is announced."""
        told: list[str] = []
        launch(self.specification, storage_url=self.url, factory=TrivialFactory(), announce=told.extend)
        return told

    def weights(self) -> list[ArtefactRecord]:
        files = asked(self.url, "trivial", lambda ledger, study: ledger.artefacts(study.id))
        return [one for one in files if one.kind == "delta"]

    def mend(self) -> list[Mended]:
        told: list[Mended] = []
        given = {"tell": told.append, "factory": TrivialFactory()}
        asked(self.url, "trivial", lambda ledger, study: mend(ledger, study.name, **given))
        return told

    def violations(self) -> list[str]:
        return asked(self.url, "trivial", lambda ledger, study: verify(ledger, study.name))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)


def test_lost_and_changed_weights_are_named_at_launch_and_put_back_by_training(study):
    gone, changed, *_ = study.weights()
    Path(gone.path).unlink()
    Path(gone.path).parent.rmdir()
    Path(changed.path).write_bytes(b"another")
    (line,) = study.launch()
    assert f"the weights of 2 trained trials are gone or changed: trial {gone.trial}, {changed.trial}." in line
    assert "'deltaspace verify trivial --retrain'" in line
    assert len(study.violations()) == 2
    mended = study.mend()
    assert [(one.trial, one.is_put_back) for one in mended] == [(gone.trial, True), (changed.trial, True)]
    assert all(one.score == one.recorded_score for one in mended)
    assert "were put back" in mended[0].sentence("trivial")
    assert study.violations() == []
    assert study.launch() == study.mend() == []


def test_weights_that_are_not_the_recorded_ones_are_not_written(study):
    gone = study.weights()[0]
    Path(gone.path).unlink()
    with closing(sqlite3.connect(study.file)) as link, link:
        link.execute("UPDATE artefacts SET sha256 = ? WHERE sha256 = ?", ("0" * 64, gone.sha256))
    (mended,) = study.mend()
    assert (mended.trial, mended.is_put_back) == (gone.trial, False)
    assert f"'deltaspace export trivial {gone.trial} DIR --retrain'" in mended.sentence("trivial")
    assert not Path(gone.path).exists()


def test_nothing_is_written_outside_the_folder_of_the_study(study, tmp_path):
    """Whoever wrote the ledger may have named any place."""
    gone = study.weights()[0]
    outside = tmp_path / "trial-0" / "attempt-1" / "weights"
    with closing(sqlite3.connect(study.file)) as link, link:
        link.execute("UPDATE artefacts SET path = ? WHERE sha256 = ?", (str(outside), gone.sha256))
    assert [one.path for one in asked(study.url, "trivial", lost_weights)] == [str(outside)]
    (mended,) = study.mend()
    assert not mended.is_put_back
    assert not outside.parent.exists()


def test_a_confirmation_is_not_mended(study):
    with closing(sqlite3.connect(study.file)) as link, link:
        link.execute("UPDATE studies SET kind = 'confirmation', parent_id = id")
    with pytest.raises(StudiesError, match="is a confirmation"):
        study.mend()
