"""A ledger that an earlier version wrote is opened, shown, continued, exported and verified by this one."""

import json
from pathlib import Path

import optuna
import pytest
from support import rotation
from support.earlier_ledger import VERSIONS, Earlier, EarlierOnServer

from studies.store.ledger import Ledger
from studies.store.migrations import MIGRATIONS
from studies.store.records import ExampleCounts, TrialState
from studies.study import Study

ENDED = {
    1: {"complete": 3, "pruned": 6},
    2: {"complete": 1, "pruned": 8},
    3: {"complete": 2, "pruned": 14},
    4: {"complete": 2, "pruned": 12},
}
RUNNING = {1: [8], 2: [8, 10], 3: [16, 17], 4: [14]}
WITH_SNAPSHOTS = {1: (12, 8, 2), 2: (12, 8, 1), 4: (20, 14, 1)}
"""Trials of the study, which one goes on, and how many of its readings are of its first attempt."""
BEST = {1: [4, 7, 0], 2: [7, 0, 1], 3: [0, 1, 4], 4: [0, 1, 4]}


@pytest.fixture
def earlier(tmp_path: Path, request: pytest.FixtureRequest) -> Earlier:
    return Earlier(tmp_path, getattr(request, "param", 2))


of_every_version = pytest.mark.parametrize("earlier", VERSIONS, ids="version_{}".format, indirect=True)


OF_STUDY = "FROM trials JOIN studies ON studies.id = trials.study_id WHERE studies.name = "


@of_every_version
def test_its_tables_are_brought_up_to_date_and_no_trial_changes(earlier: Earlier) -> None:
    columns = "number, state, score, reason, steps, attempt, fingerprint, configuration, proposal, created_at"
    sql = f"SELECT study_id, {columns} FROM trials ORDER BY study_id, number"
    before = earlier.rows(sql)
    earlier.migrate()
    assert earlier.rows("SELECT max(version) FROM deltaspace_schema") == [(MIGRATIONS[-1].version,)]
    assert earlier.rows(sql) == before


@of_every_version
def test_it_is_shown(earlier: Earlier, capsys: pytest.CaptureFixture[str]) -> None:
    earlier.migrate()
    assert earlier.call("studies", "--json") == 0
    summaries = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert earlier.version == 1 or summaries["finished-confirm"]["confirms"] == "finished"
    counts = {"queued": 0, "running": len(RUNNING[earlier.version]), "failed": 0} | ENDED[earlier.version]
    assert summaries["middle"]["counts"] == counts
    assert earlier.call("show", "finished", "--json") == 0
    board = json.loads(capsys.readouterr().out)
    assert [row["number"] for row in board["rows"]][:3] == BEST[earlier.version]
    pruned_first = {1: 1, 2: 8, 3: 1, 4: 1}[earlier.version]
    assert earlier.call("trial", "middle", str(pruned_first), "--json") == 0
    page = json.loads(capsys.readouterr().out)
    assert [(one["trial"], one["step"], one["rung"]) for one in page["readings"]] == [(pruned_first, 2, 0)]


def test_its_confirmation_is_read_and_not_repeated(earlier: Earlier, capsys: pytest.CaptureFixture[str]) -> None:
    earlier.migrate()
    again = ["confirm", "finished", "--top", "1", "--seeds", "2", "--against", "lora_qv", "--json", "--quiet"]
    assert earlier.call(*again) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["finished"]
    assert said["winner"] == "trial 7"
    scores = {one["label"]: one["scores"] for one in said["confirmation"]["contenders"]}
    assert scores == {"trial 7": [1 / 6, 0.16266666666666665], "lora_qv": [1 / 6, 0.16933333333333334]}


@pytest.mark.slow
@pytest.mark.parametrize("earlier", rotation.parts([*WITH_SNAPSHOTS]), ids="version_{}".format, indirect=True)
def test_a_study_that_was_killed_goes_on_from_its_snapshot_with_its_own_sampler(
    earlier: Earlier, capsys: pytest.CaptureFixture[str]
) -> None:
    all_trials, number, measured = WITH_SNAPSHOTS[earlier.version]
    kept = "SELECT number, state, score, steps, fingerprint, proposal " + OF_STUDY + "'middle' AND ended_at IS NOT NULL"
    before = earlier.rows(kept)
    assert earlier.launch("middle") == 0
    assert set(before) <= set(earlier.rows(kept))
    with Ledger.open(earlier.url, read_only=True) as ledger:
        study = ledger.study("middle")
        trials = ledger.trials(study.id)
        continued = ledger.readings(study.id, number)
    assert [trial.number for trial in trials] == list(range(all_trials))
    assert all(trial.state.is_terminal for trial in trials)
    assert trials[number].attempt == 2
    assert [one.attempt for one in continued] == [1] * measured + [2] * (len(continued) - measured)
    assert study.specification["search"]["sampler"] == ("factored" if earlier.version == 4 else "tpe")
    capsys.readouterr()
    optuna_file = earlier.folder / "optuna.db"
    assert earlier.call("export", "middle", str(optuna_file), "--format", "optuna") == 0
    exported = optuna.load_study(study_name="middle", storage=f"sqlite:///{optuna_file}").trials
    assert [trial.params for trial in exported] == [dict(trial.proposal) for trial in trials]


@pytest.mark.parametrize("earlier", [3], ids="version_{}".format, indirect=True)
def test_version_3_keeps_its_replicates_and_examples_and_knows_no_times_of_readings(earlier: Earlier) -> None:
    sql = "SELECT trial_id, step, attempt, score, rung FROM readings ORDER BY 1, 2"
    losses, readings = earlier.rows("SELECT * FROM examples ORDER BY 1, 2"), earlier.rows(sql)
    earlier.migrate()
    assert earlier.rows("SELECT * FROM examples ORDER BY 1, 2") == losses
    assert earlier.rows(sql) == readings
    assert earlier.rows("SELECT count(*), count(heard_at) FROM readings") == [(len(readings), 0)]
    assert earlier.rows("SELECT number, replicate_of " + OF_STUDY + "'finished' AND origin = 'replicate'") == [(7, 0)]
    with Ledger.open(earlier.url, read_only=True) as ledger:
        study = ledger.study("finished")
        assert {reading.heard_at for reading in ledger.readings(study.id)} == {None}
        assert ledger.example_counts(study.id) == ExampleCounts(whole=24, rungs=24)


@pytest.mark.slow
@pytest.mark.parametrize("earlier", [3], ids="version_{}".format, indirect=True)
def test_version_3_goes_on_without_its_files_and_new_readings_have_their_time(earlier: Earlier) -> None:
    kept = "SELECT number, state, score, steps, fingerprint, proposal " + OF_STUDY + "'middle' AND ended_at IS NOT NULL"
    before = earlier.rows(kept)
    assert earlier.launch("middle") == 0
    assert set(before) <= set(earlier.rows(kept))
    with Ledger.open(earlier.url, read_only=True) as ledger:
        study = ledger.study("middle")
        trials, readings = ledger.trials(study.id), ledger.readings(study.id)
    assert len(trials) == 20
    assert all(trial.state.is_terminal for trial in trials)
    assert [trial.origin for trial in trials[18:]] == ["replicate"] * 2
    heard = {reading.trial: reading.heard_at for reading in readings}
    assert [number for number, at in heard.items() if at is not None] == [16, 17, 18, 19]


def test_it_is_verified_and_the_files_that_are_gone_are_all_that_is_missing(
    earlier: Earlier, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier.migrate()
    gone = {"middle": [], "finished": [0, 1], "finished-confirm": [0, 1, 2, 3]}
    for study, trials in gone.items():
        assert earlier.call("verify", study, "--json") == bool(trials)
        found = json.loads(capsys.readouterr().out)["violations"]
        expected = [f"trial {trial}: the delta of step 8 must exist" for trial in trials]
        assert [line.split(";")[0] for line in found] == expected


def test_a_finished_study_is_finished(earlier: Earlier, capsys: pytest.CaptureFixture[str]) -> None:
    assert earlier.launch("finished", "--json") == 0
    assert json.loads(capsys.readouterr().out)["reason"] == "already finished: all 8 trials have ended"


def test_a_finished_study_is_exported_to_optuna(earlier: Earlier, capsys: pytest.CaptureFixture[str]) -> None:
    earlier.migrate()
    file = earlier.folder / "optuna.db"
    assert earlier.call("export", "finished", str(file), "--format", "optuna", "--json") == 0
    assert json.loads(capsys.readouterr().out)["trials"] == 8
    study = optuna.load_study(study_name="finished", storage=f"sqlite:///{file}")
    assert study.best_trial.number == 7
    assert study.best_value == pytest.approx(0.225, abs=1e-12)
    states = [trial.state for trial in study.trials]
    assert states.count(optuna.trial.TrialState.PRUNED) == 5


def test_the_best_trial_is_exported_with_the_weights_that_it_was_trained_to(
    earlier: Earlier, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier.migrate()
    folder = earlier.folder / "best"
    assert earlier.call("export", "finished", "best", str(folder), "--json") == 0
    assert json.loads(capsys.readouterr().out)["trial"] == 7
    facts = json.loads((folder / "delta.json").read_text())
    assert (facts["study"], facts["trial"], facts["scores"]["score"]) == ("finished", 7, 0.225)
    card = (folder / "README.md").read_text()
    assert "Test accuracy over 2 fresh seeds" in card
    with Ledger.open(earlier.url, read_only=True) as ledger:
        best = ledger.trial(ledger.study("finished").id, 7)
    assert best.state is TrialState.COMPLETE
    assert facts["configuration"] == best.configuration


@pytest.fixture
def on_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> EarlierOnServer:
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))
    return EarlierOnServer(tmp_path, request.param, request.getfixturevalue("postgres_url"))


@pytest.mark.postgres
@pytest.mark.parametrize("on_server", VERSIONS, ids="version_{}".format, indirect=True)
def test_on_a_server_its_tables_are_brought_up_to_date_and_what_it_holds_is_whole(on_server: EarlierOnServer) -> None:
    columns = "number, state, score, reason, steps, attempt, fingerprint, configuration::text, proposal::text"
    sql = f"SELECT {columns}, created_at FROM trials ORDER BY number"
    before = on_server.rows(sql)
    assert len(before) in (11, 13)
    on_server.migrate()
    assert on_server.rows("SELECT max(version) FROM deltaspace_schema") == [(MIGRATIONS[-1].version,)]
    assert on_server.rows(sql) == before
    found = Study.open("middle", on_server.url).verify()
    assert [line for line in found if "must exist; no file" not in line] == []


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("on_server", rotation.parts(VERSIONS), ids="version_{}".format, indirect=True)
def test_on_a_server_a_study_that_was_killed_is_continued_to_its_end(on_server: EarlierOnServer) -> None:
    kept = "SELECT number, state, score, steps, fingerprint, proposal::text FROM trials WHERE ended_at IS NOT NULL"
    before = on_server.rows(kept)
    assert on_server.launch("middle") == 0
    after = on_server.rows(kept)
    assert set(before) < set(after)
    assert sorted(row[0] for row in after) == list(range(20 if on_server.version > 2 else 12))
