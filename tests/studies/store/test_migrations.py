import json
import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from studies.errors import SchemaVersionError, StorageError
from studies.store import migrations
from studies.store.address import StorageAddress
from studies.store.engine import Access
from studies.store.ledger import Ledger
from studies.store.migrations import MIGRATIONS, Migration
from studies.store.records import Contender, StudyKind
from studies.store.tables import METADATA
from studies.store.views import statements

GOLDEN = Path(__file__).parent / "schemas"
DIALECTS = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}


def add_note(connection):
    connection.execute(text("ALTER TABLE studies ADD COLUMN note TEXT"))


def fail(connection):
    add_note(connection)
    connection.execute(text("SELECT * FROM nowhere"))


NEWEST = MIGRATIONS[-1].version
NEXT = Migration(version=NEWEST + 1, description="a note per study", apply=add_note)
LAST = Migration(version=NEWEST + 2, description="nothing", apply=lambda connection: None)


def columns(url):
    with Ledger.open(url, create=False) as ledger:
        return ledger.read(lambda link: [column["name"] for column in inspect(link).get_columns("studies")])


def versions(ledger):
    return ledger.read(
        lambda link: link.execute(text("SELECT version FROM deltaspace_schema ORDER BY 1")).scalars().all()
    )


def test_versions_count_up_from_one():
    assert [step.version for step in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def test_a_new_database_has_the_newest_version_in_a_table_of_its_own(ledger):
    assert versions(ledger) == [step.version for step in MIGRATIONS]
    tables = ledger.read(lambda link: inspect(link).get_table_names())
    assert set(tables) == set(METADATA.tables)
    assert "alembic_version" not in tables


def test_an_older_database_is_upgraded_step_by_step_and_keeps_what_it_holds(storage_url, values, monkeypatch):
    with Ledger.open(storage_url) as ledger:
        ledger.create_study(values.study())
    assert "note" not in columns(storage_url)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, NEXT, LAST))
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(
            SchemaVersionError, match=rf"must be of version {NEWEST + 2}; got version {NEWEST}. Launch a study there"
        ):
            Ledger.open(storage_url, **options)
    with Ledger.open(storage_url) as ledger:
        assert versions(ledger) == list(range(1, NEWEST + 3))
        names = ledger.read(lambda link: link.execute(text("SELECT name, note FROM studies")).all())
        assert names == [("sst2", None)]
    with Ledger.open(storage_url) as ledger:
        assert versions(ledger) == list(range(1, NEWEST + 3))
    assert columns(storage_url)[-1] == "note"


def test_a_step_that_fails_leaves_the_database_as_it_was(storage_url, ledger, monkeypatch):
    breaks = Migration(version=NEWEST + 1, description="breaks", apply=fail)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, breaks))
    with pytest.raises(StorageError, match="nowhere"):
        Ledger.open(storage_url)
    monkeypatch.undo()
    assert versions(ledger) == list(range(1, NEWEST + 1))
    assert "note" not in columns(storage_url)


def test_a_newer_database_is_refused_and_not_touched(storage_url, tamper, ledger):
    tamper("INSERT INTO deltaspace_schema (version, applied_at) VALUES (7, '2030-01-01 00:00:00.000000+00:00')")
    for options in ({}, {"create": False}, {"read_only": True}):
        with pytest.raises(
            SchemaVersionError, match=rf"must be of version {NEWEST} or older; got version 7. Upgrade deltaspace"
        ):
            Ledger.open(storage_url, **options)


def test_an_empty_database_is_not_filled_by_reading(storage_url, request):
    if storage_url.startswith("sqlite"):
        Path(storage_url.removeprefix("sqlite:///")).touch()
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StorageError, match=r"no studies in .*; launch a study first"):
            Ledger.open(storage_url, **options)
    with Ledger.open(storage_url) as ledger:
        assert ledger.studies() == []


def test_a_database_of_optuna_is_refused_and_not_touched(tmp_path):
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    optuna.create_study(storage=url, study_name="theirs")
    with pytest.raises(
        StorageError, match=r"tables of another program \(studies, trials\). Give deltaspace a database"
    ):
        Ledger.open(url)
    assert optuna.load_study(storage=url, study_name="theirs").trials == []


OPENS = "import sys; from studies.store.ledger import Ledger; Ledger.open(sys.argv[1]).close()"


def test_processes_that_create_the_same_database_take_turns(storage_url):
    openers = [subprocess.Popen([sys.executable, "-c", OPENS, storage_url]) for _ in range(4)]
    assert [opener.wait(timeout=60) for opener in openers] == [0] * 4
    with Ledger.open(storage_url, create=False) as ledger:
        assert versions(ledger) == list(range(1, NEWEST + 1))


def schema(dialect):
    parts = []
    for table in METADATA.sorted_tables:
        parts.append(str(CreateTable(table).compile(dialect=DIALECTS[dialect])).strip())
        indexes = sorted(table.indexes, key=lambda index: index.name)
        parts += [str(CreateIndex(index).compile(dialect=DIALECTS[dialect])).strip() for index in indexes]
    parts += statements(dialect)
    return ";\n\n".join(line.replace(" \n", "\n").replace("\t", "    ") for line in parts) + ";\n"


def released(url, version):
    """Make the database that a release of some version has made, from its golden file."""
    dialect = "sqlite" if url.startswith("sqlite") else "postgresql"
    engine = create_engine(StorageAddress.parse(url).url)
    with engine.begin() as connection:
        for statement in (GOLDEN / f"{dialect}_{version}.sql").read_text().split(";\n"):
            if statement.strip():
                connection.execute(text(statement))
        for step in range(1, version + 1):
            connection.execute(
                text("INSERT INTO deltaspace_schema (version, applied_at) VALUES (:version, :at)"),
                {"version": step, "at": "2026-01-01 00:00:00.000000+00:00"},
            )
        connection.execute(
            text(
                "INSERT INTO studies (name, specification, backbone, backbone_parameters, budget_parameters, metric, "
                "seed, epoch, created_at) VALUES ('old', '{}', 'embedded', 100, 10, 'accuracy', 0, 1, "
                "'2026-01-01T00:00:00.000000+00:00')"
            )
        )
    engine.dispose()


def shape(ledger):
    """What can be told of every table: columns, keys and indexes."""

    def look(link):
        seen = inspect(link)
        return {
            name: (
                [{**column, "type": str(column["type"])} for column in seen.get_columns(name)],
                sorted((key["constrained_columns"], key["referred_table"]) for key in seen.get_foreign_keys(name)),
                sorted(check["name"] for check in seen.get_check_constraints(name)),
                sorted(index["name"] for index in seen.get_indexes(name)),
            )
            for name in sorted(seen.get_table_names())
        } | {name: seen.get_view_definition(name) for name in seen.get_view_names()}

    return ledger.read(look)


def test_confirmations_of_version_2_move_to_their_own_table(storage_url):
    released(storage_url, 2)
    engine = create_engine(StorageAddress.parse(storage_url).url)
    contender = {"label": "trial 4", "trial": 4, "validation_score": 0.5, "is_top": True, "baselines": ["lora_qv"]}
    asked = {"study": "old", "top": 2, "against": ["lora_qv"], "seeds": [5, 6], "left_out": {"bitfit": "too large."}}
    specification = {"name": "old-confirm", "trials": 2, "confirmation": {**asked, "contenders": [contender]}}
    columns = "backbone, backbone_parameters, budget_parameters, metric, seed, epoch, created_at"
    with engine.begin() as connection:
        connection.execute(
            text(
                f"INSERT INTO studies (name, specification, kind, parent_id, {columns}) "
                f"SELECT 'old-confirm', :specification, 'confirmation', id, {columns} FROM studies"
            ),
            {"specification": json.dumps(specification)},
        )
    engine.dispose()
    with Ledger.open(storage_url) as ledger:
        study = ledger.study("old-confirm")
        assert study.specification == {"name": "old-confirm", "trials": 2}
        found = ledger.confirmation(study)
    assert (found.study, found.top, found.against, found.seeds) == ("old", 2, ("lora_qv",), (5, 6))
    assert found.left_out == {"bitfit": "too large."}
    assert found.contenders == (Contender(**{**contender, "baselines": ("lora_qv",)}),)


FILES = {
    "/a/old/trial-0/attempt-1/x": "trial-0/attempt-1/x",
    "/b/old/trial-0/attempt-2/y": "/b/old/trial-0/attempt-2/y",
    "/a/old/trial-0/attempt-3/z": "trial-0/attempt-3/z",
    "/somewhere/w": "/somewhere/w",
    "w": "w",
}


def test_files_of_version_3_are_written_relative_to_the_newest_folder_of_their_study(storage_url):
    released(storage_url, 3)
    engine = create_engine(StorageAddress.parse(storage_url).url)
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO trials (study_id, number, state, steps, attempt, origin, description, attention_share, "
                "stored_parameters, trained_parameters, head_parameters, seed, fingerprint, configuration, proposal, "
                "created_at) SELECT id, 0, 'queued', 0, 0, 'proposed', '', 0, 1, 1, 1, 0, 'f', '{}', '{}', created_at "
                "FROM studies"
            )
        )
        for step, path in enumerate(FILES):
            connection.execute(
                text(
                    "INSERT INTO artefacts (trial_id, kind, step, path, sha256, size_bytes) "
                    "SELECT id, 'snapshot', :step, :path, '', 0 FROM trials"
                ),
                {"step": step, "path": path},
            )
    engine.dispose()
    with Ledger.open(storage_url) as ledger:
        assert ledger.study("old").folder == Path("/a/old")
        written = ledger.read(lambda link: link.execute(text("SELECT path FROM artefacts ORDER BY id")).scalars().all())
        assert written == list(FILES.values())
        found = [artefact.path for artefact in ledger.artefacts(ledger.study("old").id)]
    assert found == [*list(FILES)[:-1], "/a/old/w"]


@pytest.mark.parametrize("version", range(1, NEWEST))
def test_a_database_of_every_release_becomes_what_a_new_one_is(storage_url, tmp_path, request, version):
    released(storage_url, version)
    is_file = storage_url.startswith("sqlite")
    fresh_url = f"sqlite:///{tmp_path / 'fresh.db'}" if is_file else fresh_database(request)
    with Ledger.open(storage_url) as old, Ledger.open(fresh_url) as fresh:
        assert shape(old) == shape(fresh)
        assert versions(old) == versions(fresh)
        (study,) = old.studies()
        assert (study.name, study.kind, study.parent_id) == ("old", StudyKind.SEARCH, None)


def fresh_database(request):
    server = request.getfixturevalue("postgres_server")
    name = server.new_database()
    request.addfinalizer(lambda: server.drop_database(name))
    return server.url(name)


def test_an_upgraded_database_refuses_what_a_new_one_refuses(storage_url):
    released(storage_url, 1)
    with Ledger.open(storage_url) as ledger:
        for wrong in ("kind = 'confirmation'", "parent_id = id", "kind = 'other'", "kind = NULL"):
            with pytest.raises(StorageError, match="refuses the record"):
                ledger._database.write(lambda link, _, wrong=wrong: link.execute(text(f"UPDATE studies SET {wrong}")))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tables_do_not_change_without_a_migration(dialect):
    """To change a table, add a step to MIGRATIONS and a file of the new version."""
    golden = GOLDEN / f"{dialect}_{MIGRATIONS[-1].version}.sql"
    assert schema(dialect) == golden.read_text()


def test_access_is_named_as_sqlite_names_it():
    assert [access.value for access in Access] == ["rwc", "rw", "ro"]
