"""A study that is whole has no violations; each damage is one line, and the exit code of the command says so."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.fixed_ledger import fixed_ledger
from support.small_study import small_study
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from deltaspace.commands.main import main
from studies import verification
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.study import Study as Handle
from trial_runner.tasks import prepared_for

TRIALS = 12


class Study:
    """A finished study of trivial trials, and a hand in its database."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'ledger.db'}"
        self.file = folder / "ledger.db"

    @classmethod
    def launched(cls, folder: Path, sampler: str, replicates: int = 0) -> "Study":
        found = cls(folder)
        study = specification(folder / "artefacts", "inline", TRIALS, sampler, str(replicates))
        assert launch(study, storage_url=found.url, factory=TrivialFactory(fails_at={5: 3})).finished
        return found

    def violations(self) -> list[str]:
        return Handle.open("trivial", self.url).verify()

    def change(self, *statements: str) -> None:
        """Run statements without the trigger that refuses them."""
        with closing(sqlite3.connect(self.file)) as link, link:
            trigger = link.execute("SELECT sql FROM sqlite_master WHERE name = 'trials_are_final'").fetchone()
            link.execute("DROP TRIGGER trials_are_final")
            for statement in statements:
                assert link.execute(statement).rowcount == 1
            link.execute(*trigger)

    def delta(self) -> tuple[int, Path]:
        with Ledger.open(self.url, read_only=True) as ledger:
            (first, *_) = ledger.artefacts(ledger.study("trivial").id)
        return first.trial, Path(first.path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished study, for tests that only read."""
    folder = tmp_path_factory.mktemp("finished")
    Study.launched(folder, "tpe")
    return folder


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Study:
    """Copy the finished study."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return Study(tmp_path)


@pytest.mark.parametrize("sampler", ["random", "qmc"])
def test_a_finished_study_is_whole(tmp_path, sampler):
    assert Study.launched(tmp_path, sampler).violations() == []


@pytest.mark.parametrize("sampler", ["tpe", "nsga2", "factored"])
def test_a_study_with_replicates_is_whole(tmp_path, sampler):
    study = Study.launched(tmp_path, sampler, replicates=3)
    with Ledger.open(study.url, read_only=True) as ledger:
        origins = [trial.origin for trial in ledger.trials(ledger.study("trivial").id)]
    assert origins[-4:] == ["proposed", *["replicate"] * 3]
    assert study.violations() == []


def test_a_file_outside_the_studys_folder_is_a_violation_and_not_read(study, tmp_path):
    trial, file = study.delta()
    outside = tmp_path / "elsewhere" / "trial-0" / "attempt-1" / "secret"
    outside.parent.mkdir(parents=True)
    file.rename(outside)
    study.change(
        f"UPDATE artefacts SET path = '{outside}' WHERE path = '{file.relative_to(tmp_path / 'artefacts' / 'trivial')}'"
    )
    (line,) = study.violations()
    assert line == f"trial {trial}: {outside} must be a file in the study's folder; it is not"


DAMAGE = {
    "readings must be of the rungs of their steps; got ['1 in place of 0 at step 4 of trial 7']": (
        "UPDATE readings SET rung = 1 WHERE step = 4 AND trial_id = (SELECT id FROM trials WHERE number = 7)",
    ),
    "trial 0: its steps and scores must be those of its last reading, (16, ": (
        "UPDATE trials SET score = score + 1 WHERE number = 0",
    ),
    "its fingerprint must be that of its proposal, ": ("UPDATE trials SET fingerprint = 'f00' WHERE number = 7",),
    "its proposal must make a configuration; ": ("UPDATE trials SET proposal = '{}' WHERE number = 7",),
    "every epoch from 1 to 1 must have its event; got ['keeper 2']": (
        "UPDATE events SET text = 'keeper 2 is another' WHERE kind = 'takeover'",
    ),
    "trial 7: its attempts must be numbered from 1 to 2; got 1": ("UPDATE trials SET attempt = 2 WHERE number = 7",),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_manual_change_is_a_violation(study, message):
    study.change(*DAMAGE[message])
    assert any(message in line for line in study.violations())


@pytest.fixture
def call(study: Study, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["verify", *arguments, "--storage", study.url])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_schema_and_unnamed_files_are_violations(study, tmp_path):
    with closing(sqlite3.connect(study.file)) as link, link:
        link.executescript("DROP VIEW curves; CREATE INDEX odd ON trials (score); CREATE TABLE own (id); ANALYZE own")
    odd = tmp_path / "artefacts" / "trivial" / "trial-0" / "odd.json"
    odd.write_text("")
    (odd.parent / ".hidden").write_text("")
    (odd.parent.parent / "trial-77" / "attempt-1").mkdir(parents=True)
    copy = "'deltaspace backup' copies all studies into a file with the right one."
    assert study.violations() == [
        f"the schema's curves must be that of this release; got none. {copy}",
        f"the schema's odd must not be there; got another. {copy}",
        f"the study's folder must hold nothing but the files of its records; got ['{odd}']",
    ]


def test_verify_prepares_the_data_once(study, monkeypatch):
    calls = []

    def counted(*given):
        calls.append(given)
        return prepared_for(*given)

    monkeypatch.setattr(verification, "prepared_for", counted)
    assert study.violations() == []
    assert len(calls) == 1


def test_launches_events_count_the_trials_that_ended(study):
    last = "id = (SELECT max(id) FROM trials)"
    tables = {"readings": "trial_", "artefacts": "trial_", "attempts": "trial_", "trials": ""}
    with closing(sqlite3.connect(study.file)) as link, link:
        for table, prefix in tables.items():
            link.execute(f"DELETE FROM {table} WHERE {prefix}{last}")
    found = study.violations()
    assert f"at least as many trials must have ended as a launch reported, {TRIALS}; got {TRIALS - 1}" in found


def test_verify_prints_violations_and_exits_1(study, call):
    assert call("trivial") == (0, "", "trivial: nothing is broken.\n")
    code, out, _ = call("trivial", "--json")
    assert (code, json.loads(out)) == (0, {"study": "trivial", "is_whole": True, "violations": [], "leftovers": []})
    study.delta()[1].unlink()
    code, out, err = call("trivial")
    assert (code, err) == (1, "trivial: 1 violation.\n")
    assert len(out.splitlines()) == 1
    code, out, _ = call("trivial", "--json")
    assert (code, len(json.loads(out)["violations"])) == (1, 1)


def test_a_confirmation_that_this_release_cannot_read_is_one_line(tmp_path, capsys):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    fixed_ledger(url, tmp_path)
    assert main(["verify", "finished-confirm", "--storage", url]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(
        "deltaspace: study 'finished-confirm' must have a study file that this release can read; "
    )
    assert len(printed.splitlines()) == 1


def test_decisions_of_a_former_rule_are_not_decided_again(study):
    with closing(sqlite3.connect(study.file)) as link:
        ((pruned, reason),) = link.execute(
            "SELECT number, reason FROM trials WHERE state = 'pruned' LIMIT 1"
        ).fetchall()
    other = f"{reason.partition(',')[0]}, and 3 of 4 are better by more than their noise"
    study.change(f"UPDATE trials SET reason = '{other}' WHERE number = {pruned}")
    (found,) = study.violations()
    assert found.startswith(f"trial {pruned}: after the reading of step")
    for former in ("significance", "chance"):
        study.change(f"UPDATE studies SET specification = json_set(specification, '$.pruning.rule', '{former}')")
        assert study.violations() == []


@pytest.mark.parametrize(
    ("space", "name", "other"),
    [
        ("lora", "lora_dropout", "'0.7'"),
        ({"learning_rates": {"head": [1e-4, 1e-2]}}, "learning_rate.head", "0.7"),
    ],
)
def test_published_methods_without_a_searched_value_of_training_are_whole(tmp_path, space, name, other):
    study = Study(tmp_path)
    search = {"sampler": "random", "published": ["lora_qv"]}
    specification = small_study(tmp_path, trials=TRIALS, space=space, search=search)
    assert launch(specification, storage_url=study.url, factory=TrivialFactory()).finished
    with Ledger.open(study.url, read_only=True) as ledger:
        trials = ledger.trials(ledger.study("trivial").id)
    assert {name in trial.proposal for trial in trials} == {True, False}
    assert study.violations() == []
    searched = next(trial.number for trial in trials if name in trial.proposal)
    study.change(f"UPDATE trials SET proposal = json_set(proposal, '$.\"{name}\"', {other}) WHERE number = {searched}")
    assert study.violations()
