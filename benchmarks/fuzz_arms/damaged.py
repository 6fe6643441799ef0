"""Damaged exports, snapshots and databases."""

import atexit
import contextlib
import hashlib
import io
import json
import random
import shutil
from pathlib import Path

from support.export_cases import exported, fresh_model, rig_in_training, trial_of
from support.fixed_ledger import fixed_ledger
from support.postgres import PostgresServer
from support.tiny_models import TINY_FAMILIES, save_model, save_tokenizer

from deltaspace.commands.main import main
from fuzz_arms.mutations import NASTY, damaged_bytes, odd_json
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.errors import SearchSpaceError
from search_space.forms import Bottleneck, LowRank
from search_space.gates import Add, FixedScale
from trial_runner.errors import RunnerError
from trial_runner.export import load_delta, trained_delta
from trial_runner.packs.snapshots import load_snapshot, save_snapshot
from trial_runner.port_discovery.rig import Rig

_EDITS = (
    Edit(site=Site.FFN, write=Port.F, read=Port.X_FFN, form=Bottleneck(width=5), gate=FixedScale(value=4)),
    Edit(site=Site.ATTENTION, write=Port.Q, read=Port.X_ATTN, form=LowRank(width=3, widened=1), gate=Add()),
)

_COMMANDS = (("show", "STUDY"), ("verify", "STUDY"), ("studies",), ("query", "select * from leaderboard"))
_CONSTRAINTS = (
    "SELECT conrelid::regclass::text, quote_ident(conname) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'u', 'p') ORDER BY contype = 'p', 1, 2"
)
_COLUMNS = (
    "SELECT table_name, column_name, data_type FROM information_schema.columns JOIN information_schema.tables "
    "USING (table_schema, table_name) WHERE table_schema = 'public' AND table_type = 'BASE TABLE' "
    "AND table_name <> 'calls' ORDER BY 1, 2"
)
_NUMBERS = ("0", "-1", "2147483647", "-2147483648", "7")
_TIMES = ("infinity", "-infinity", "0001-01-01", "4000-01-01 BC", "9999-12-31 23:59:59.999999+00", "100000-01-01")
_VALUES: dict[str, tuple[str, ...]] = {
    "integer": _NUMBERS,
    "bigint": (*_NUMBERS, "9223372036854775807"),
    "double precision": ("NaN", "Infinity", "-Infinity", "1e308", "-0", "1e-320"),
    "timestamp with time zone": _TIMES,
    "bytea": ("", "\\xff", "\\x0000000000000000"),
    "json": ("null", "[]", "{}", "1e400", "-1", '""', "[[[[]]]]", '{"a": null}', "9" * 5000, "[" * 300 + "]" * 300),
}


def _rig(folder: Path) -> Rig:
    save_model(TINY_FAMILIES["roberta"], 0.0, folder)
    save_tokenizer(TINY_FAMILIES["roberta"].tokens, folder)
    return rig_in_training(folder)


class DamagedExports:
    """Load of a damaged export; often with a corrected hash, so that more than the hash is tested."""

    def __init__(self, folder: Path) -> None:
        backbone = folder / "backbone"
        backbone.mkdir()
        rig = _rig(backbone)
        self.model = fresh_model(rig)
        self.whole = exported(rig, trial_of(rig, *_EDITS), folder / "whole")
        rig.attachment.detach()
        self.texts = str(folder / "texts.jsonl")
        Path(self.texts).write_text('{"text": "red blue"}\n')
        self.folder = folder / "damaged"

    def __call__(self, draw: random.Random) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.whole, self.folder)
        facts, weights = self.folder / "delta.json", self.folder / "delta.safetensors"
        if draw.random() < 0.3:
            facts.write_text(json.dumps(odd_json(json.loads(facts.read_text()), draw)))
            _run("predict", str(self.folder), "--input", self.texts, "--output", f"{self.folder}/out", "--text", "text")
        elif draw.random() < 0.5:
            facts.write_bytes(damaged_bytes(facts.read_bytes(), draw))
        else:
            weights.write_bytes(damaged_bytes(weights.read_bytes(), draw, within=draw.choice((None, 600))))
            changed = json.loads(facts.read_text())
            changed["weights"]["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
            facts.write_text(json.dumps(changed))
        with contextlib.suppress(RunnerError, SearchSpaceError):
            load_delta(self.model, self.folder).detach()


class DamagedSnapshots:
    """Load of a damaged snapshot and of the trained weights in it."""

    def __init__(self, folder: Path) -> None:
        backbone = folder / "backbone"
        backbone.mkdir()
        self.rig = _rig(backbone)
        self.content = save_snapshot(trial_of(self.rig, *_EDITS).snapshot, folder).read_bytes()
        self.file = folder / "damaged.safetensors"

    def __call__(self, draw: random.Random) -> None:
        self.file.unlink(missing_ok=True)  # overwriting waits for the disk
        self.file.write_bytes(damaged_bytes(self.content, draw, within=draw.choice((None, 8, 4000, 4000))))
        with contextlib.suppress(RunnerError, SearchSpaceError):
            trained_delta(load_snapshot(self.file), self.rig.backbone.shape, frozen=self.rig.weights())


class DamagedDatabases:
    """Commands that read a damaged SQLite database."""

    def __init__(self, folder: Path) -> None:
        fixed_ledger(f"sqlite:///{folder / 'whole.db'}", folder)
        self.content = (folder / "whole.db").read_bytes()
        self.file = folder / "damaged.db"

    def __call__(self, draw: random.Random) -> None:
        self.file.unlink(missing_ok=True)
        self.file.write_bytes(damaged_bytes(self.content, draw))
        _read(draw, f"sqlite:///{self.file}", "finished")


class DamagedServers:
    """Commands that read a PostgreSQL database with a damaged value.

    The constraints of the database are dropped first, as its owner can.
    """

    def __init__(self, folder: Path) -> None:
        import psycopg

        self.server = PostgresServer()
        atexit.register(self.server.remove)
        self.url = self.server.url(self.server.new_database())
        fixed_ledger(self.url, folder)
        self.link = psycopg.connect(self.url, autocommit=True)
        for table, name in self.link.execute(_CONSTRAINTS).fetchall():
            self.link.execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name} CASCADE")
        self.columns = self.link.execute(_COLUMNS).fetchall()
        for table, column, _ in self.columns:
            self.link.execute(f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL")
            self.link.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")

    def __call__(self, draw: random.Random) -> None:
        table, column, kind = draw.choice(self.columns)
        rows = self.link.execute(f"SELECT ctid::text, {column}::text FROM {table}").fetchall()
        if not rows:
            return
        row, before = draw.choice(rows)
        value = draw.choice([*_VALUES.get(kind, NASTY), None])
        change = f"UPDATE {table} SET {column} = %s::{kind} WHERE ctid = %s::tid RETURNING ctid::text"
        import psycopg

        try:
            [(changed,)] = self.link.execute(change, (value, row)).fetchall()
        except psycopg.DataError:
            return  # the server itself refuses the value
        try:
            _read(draw, self.url, "middle")
        finally:
            self.link.execute(change, (before, changed))


def _read(draw: random.Random, url: str, study: str) -> None:
    """Run a random command that reads a database."""
    _run(*(study if word == "STUDY" else word for word in draw.choice(_COMMANDS)), "--storage", url)


def _run(*words: str) -> None:
    """Run a command, which may fail with an error of this library."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main(words)
    assert code in (0, 1, 2), errors.getvalue()
