"""Tables of the ledger, with constraints by which the database refuses inconsistent rows.

Rows never leave this package; see `studies.records` for the values that do.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Dialect, event, schema, text, types
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CheckConstraint, Column, ForeignKey, Index, Table

from studies.errors import DamagedError

_LARGEST = "1e308"
_TERMINAL = "('complete', 'pruned', 'failed')"

ORIGINS = "('published', 'proposed', 'replicate')"
REPLICATES = "(origin = 'replicate') = (replicate_of IS NOT NULL) AND replicate_of BETWEEN 0 AND number - 1"


@compiles(schema.CreateIndex, "postgresql")
def _create_index(create: schema.CreateIndex, compiler: Any, **options: Any) -> str:
    """Return a partial index with the condition for SQLite; PostgreSQL's dialect is imported when needed."""
    index = create.element
    index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
    return str(compiler.visit_create_index(create, **options))


_MOST_CHARACTERS = 64


class UtcTime(types.TypeDecorator[datetime]):
    """Aware time in UTC; on SQLite a text of fixed width that ends in ``+00:00``, so that it sorts."""

    impl = types.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> types.TypeEngine[Any]:
        """Return a text type on SQLite, a timestamp with time zone elsewhere."""
        return dialect.type_descriptor(types.String(32) if dialect.name == "sqlite" else types.DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Convert a time for the database."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"times must have a time zone; got {value.isoformat()}.")
        value = value.astimezone(UTC)
        return value.isoformat(timespec="microseconds") if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Convert a value of the database.

        Raises:
            DamagedError: If it is not a time.
        """
        if value is None or isinstance(value, datetime):
            return None if value is None else value.astimezone(UTC)
        try:
            # a longer text is no time, and the error repeats it
            return datetime.fromisoformat(value[:_MOST_CHARACTERS]).astimezone(UTC)
        except (ValueError, TypeError, OverflowError) as error:
            raise DamagedError.of("a time", error) from error


METADATA = schema.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)
"""Metadata with a name for every constraint, so that later revisions can find it."""

VERSIONS = Table(
    "deltaspace_version",
    METADATA,
    Column("version_num", types.String(32), primary_key=True),
)
"""The version of the tables, as Alembic stamps it; other programs have stamps of their own."""

STUDIES = Table(
    "studies",
    METADATA,
    Column("id", types.Integer, primary_key=True),
    Column("name", types.Text, unique=True, nullable=False),
    Column("specification", types.JSON(none_as_null=True), nullable=False),
    Column("backbone", types.Text, nullable=False),
    Column("backbone_parameters", types.BigInteger, nullable=False),
    Column("budget_parameters", types.BigInteger, nullable=False),
    Column("metric", types.Text, nullable=False),
    Column("seed", types.BigInteger, nullable=False),
    Column("epoch", types.Integer, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("kind", types.Text, server_default="search", nullable=False),
    Column("parent_id", types.Integer, ForeignKey("studies.id")),
    Column("folder", types.Text),
    Column("holder", types.Text),
    Column("held_until", UtcTime),
    CheckConstraint("epoch >= 0", name="epoch"),
    CheckConstraint("backbone_parameters > 0 AND budget_parameters > 0", name="parameters"),
    CheckConstraint("kind IN ('search', 'confirmation')", name="kind"),
    CheckConstraint("(kind = 'confirmation') = (parent_id IS NOT NULL)", name="parent_exactly_of_confirmations"),
)
"""A study; its epoch is the number of the keeper that may write."""

CONFIRMATIONS = Table(
    "confirmations",
    METADATA,
    Column("study_id", types.Integer, ForeignKey("studies.id"), primary_key=True),
    Column("top", types.Integer, nullable=False),
    Column("against", types.JSON(none_as_null=True), nullable=False),
    Column("seeds", types.JSON(none_as_null=True), nullable=False),
    Column("contenders", types.JSON(none_as_null=True), nullable=False),
    Column("left_out", types.JSON(none_as_null=True), nullable=False),
    Column("most_parameters", types.BigInteger),
    CheckConstraint("top >= 1", name="top"),
    CheckConstraint("most_parameters >= 0", name="most_parameters"),
)
"""What a confirmation was asked for, and whom it trains."""


def _dimensions(site: str) -> list[Column[Any]]:
    """Return the columns of the edits at a kind of sublayer, null without edits."""
    kinds = {"bottleneck": types.Integer, "scale": types.Double, "learning_rate": types.Double}
    names = ("form", "write", "insertion", "gate", "heads", "bottleneck", "activation", "scale", "learning_rate")
    return [Column(f"{site}_{name}", kinds.get(name, types.Text)) for name in names]


def _all_or_none(site: str) -> CheckConstraint:
    """Return the constraint that a site without edits has no dimensions, and one with edits has those of every form."""
    always = ("write", "insertion", "gate", "heads", "learning_rate")
    sometimes = ("bottleneck", "activation", "scale")
    same = " AND ".join(f"({site}_form IS NULL) = ({site}_{name} IS NULL)" for name in always)
    none = " AND ".join(f"{site}_{name} IS NULL" for name in sometimes)
    return CheckConstraint(f"{same} AND ({site}_form IS NOT NULL OR ({none}))", name=f"{site}_dimensions")


TRIALS = Table(
    "trials",
    METADATA,
    Column("id", types.Integer, primary_key=True),
    Column("study_id", types.Integer, ForeignKey("studies.id"), nullable=False),
    Column("number", types.Integer, nullable=False),
    Column("state", types.Text, nullable=False),
    Column("score", types.Double),
    Column("reason", types.Text),
    Column("steps", types.Integer, nullable=False),
    Column("last_score", types.Double),
    Column("attempt", types.Integer, nullable=False),
    Column("origin", types.Text, nullable=False),
    Column("method", types.Text),
    Column("description", types.Text, nullable=False),
    *_dimensions("attention"),
    *_dimensions("ffn"),
    Column("attention_share", types.Double, nullable=False),
    Column("stored_parameters", types.BigInteger, nullable=False),
    Column("trained_parameters", types.BigInteger, nullable=False),
    Column("head_parameters", types.BigInteger, nullable=False),
    Column("seed", types.BigInteger, nullable=False),
    Column("fingerprint", types.Text, nullable=False),
    Column("configuration", types.JSON(none_as_null=True), nullable=False),
    Column("proposal", types.JSON(none_as_null=True), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("replicate_of", types.Integer),
    Column("extra_flops", types.BigInteger),
    schema.UniqueConstraint("study_id", "number"),
    schema.UniqueConstraint("study_id", "fingerprint"),
    Index(None, "study_id", "state"),
    CheckConstraint("number >= 0", name="number"),
    CheckConstraint("state IN ('queued', 'running', 'complete', 'pruned', 'failed')", name="state"),
    CheckConstraint(f"origin IN {ORIGINS}", name="origin"),
    CheckConstraint("(state = 'complete') = (score IS NOT NULL)", name="score_exactly_when_complete"),
    CheckConstraint("(state IN ('pruned', 'failed')) = (reason IS NOT NULL)", name="reason_exactly_when_cut"),
    CheckConstraint(f"(state IN {_TERMINAL}) = (ended_at IS NOT NULL)", name="ended_exactly_when_terminal"),
    CheckConstraint("attempt >= CASE WHEN state = 'queued' THEN 0 ELSE 1 END", name="attempt"),
    CheckConstraint("steps >= 0 AND (steps > 0) = (last_score IS NOT NULL)", name="last_score_exactly_with_steps"),
    CheckConstraint(f"score BETWEEN -{_LARGEST} AND {_LARGEST}", name="score_is_finite"),
    CheckConstraint(f"last_score BETWEEN -{_LARGEST} AND {_LARGEST}", name="last_score_is_finite"),
    CheckConstraint("attention_share BETWEEN 0 AND 1", name="attention_share"),
    CheckConstraint("stored_parameters >= 0 AND trained_parameters >= 0 AND head_parameters >= 0", name="parameters"),
    _all_or_none("attention"),
    _all_or_none("ffn"),
    CheckConstraint(REPLICATES, name="replicate_of_exactly_of_replicates"),
    CheckConstraint("extra_flops >= 0", name="extra_flops"),
)
"""A trial, with one column per design dimension. A terminal row never changes (a trigger sees to it)."""

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("trial_id", types.Integer, ForeignKey("trials.id"), primary_key=True),
    Column("attempt", types.Integer, primary_key=True, autoincrement=False),
    Column("worker", types.Text, nullable=False),
    Column("lease_expires_at", UtcTime, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("ended_at", UtcTime),
    Column("ending", types.Text),
    CheckConstraint("attempt >= 1", name="attempt"),
    CheckConstraint("ending IN ('complete', 'pruned', 'failed', 'lost')", name="ending"),
    CheckConstraint("(ending IS NULL) = (ended_at IS NULL)", name="ended_exactly_with_ending"),
    Index("uq_attempts_one_open", "trial_id", unique=True, sqlite_where=text("ended_at IS NULL")),
    Index("uq_attempts_one_final", "trial_id", unique=True, sqlite_where=text(f"ending IN {_TERMINAL}")),
)
"""One execution of a trial: at most one is open, at most one ends the trial."""

READINGS = Table(
    "readings",
    METADATA,
    Column("trial_id", types.Integer, primary_key=True, autoincrement=False),
    Column("step", types.Integer, primary_key=True, autoincrement=False),
    Column("attempt", types.Integer, nullable=False),
    Column("score", types.Double, nullable=False),
    Column("metrics", types.JSON(none_as_null=True), nullable=False),
    Column("train_loss", types.Double, nullable=False),
    Column("seconds", types.Double, nullable=False),
    Column("rung", types.Integer),
    Column("heard_at", UtcTime),
    schema.ForeignKeyConstraint(["trial_id", "attempt"], ["attempts.trial_id", "attempts.attempt"]),
    CheckConstraint("step >= 1", name="step"),
    CheckConstraint("rung >= 0", name="rung"),
    CheckConstraint(f"score BETWEEN -{_LARGEST} AND {_LARGEST}", name="score_is_finite"),
    CheckConstraint(f"train_loss BETWEEN -{_LARGEST} AND {_LARGEST}", name="train_loss_is_finite"),
    CheckConstraint(f"seconds BETWEEN 0 AND {_LARGEST}", name="seconds"),
    sqlite_with_rowid=False,
)
"""A validation measurement; one per trial and step."""

EXAMPLES = Table(
    "examples",
    METADATA,
    Column("trial_id", types.Integer, primary_key=True, autoincrement=False),
    Column("step", types.Integer, primary_key=True, autoincrement=False),
    Column("losses", types.LargeBinary, nullable=False),
    Column("correct", types.LargeBinary),
    schema.ForeignKeyConstraint(["trial_id", "step"], ["readings.trial_id", "readings.step"]),
    CheckConstraint("length(losses) > 0", name="losses"),
)
"""What a reading measured of each example: its loss, half a float, and a bit where it was right."""

ARTEFACTS = Table(
    "artefacts",
    METADATA,
    Column("id", types.Integer, primary_key=True),
    Column("trial_id", types.Integer, ForeignKey("trials.id"), nullable=False),
    Column("kind", types.Text, nullable=False),
    Column("step", types.Integer, nullable=False),
    Column("path", types.Text, nullable=False),
    Column("sha256", types.Text, nullable=False),
    Column("size_bytes", types.BigInteger, nullable=False),
    schema.UniqueConstraint("trial_id", "kind", "step"),
    CheckConstraint("kind IN ('snapshot', 'delta')", name="kind"),
    CheckConstraint("step >= 0 AND size_bytes >= 0", name="sizes"),
)
"""A file that belongs to a trial."""

EVENTS = Table(
    "events",
    METADATA,
    Column("id", types.Integer, primary_key=True),
    Column("study_id", types.Integer, ForeignKey("studies.id"), index=True, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("kind", types.Text, nullable=False),
    Column("trial", types.Integer),
    Column("text", types.Text, nullable=False),
)
"""Something worth knowing later."""

_FINAL_TRIGGERS = {
    "sqlite": (
        f"CREATE TRIGGER IF NOT EXISTS trials_are_final BEFORE UPDATE ON trials WHEN OLD.state IN {_TERMINAL} "
        "BEGIN SELECT RAISE(ABORT, 'a terminal trial never changes'); END",
    ),
    "postgresql": (
        "CREATE FUNCTION deltaspace_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'a terminal trial never changes' USING ERRCODE = 'integrity_constraint_violation'; "
        "END $$",
        f"CREATE TRIGGER trials_are_final BEFORE UPDATE ON trials FOR EACH ROW WHEN (OLD.state IN {_TERMINAL}) "
        "EXECUTE FUNCTION deltaspace_refuse_change()",
    ),
}


@event.listens_for(TRIALS, "after_create")
def _create_with_table(_table: Table, connection: Connection, **_options: Any) -> None:
    create_triggers(connection)


def create_triggers(connection: Connection) -> None:
    """Make terminal trials immutable for every writer."""
    for statement in _FINAL_TRIGGERS[connection.dialect.name]:
        connection.exec_driver_sql(statement)
