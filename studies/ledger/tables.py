"""The tables of the ledger. The database itself refuses what must not be.

Rows never leave the store; see `studies.records` for what does.
"""

from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Connection,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    event,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeEngine

from studies.errors import DamagedError

_LARGEST = "1e308"
_TERMINAL = "('complete', 'pruned', 'failed')"

ORIGINS = "('published', 'proposed', 'replicate')"
REPLICATES = "(origin = 'replicate') = (replicate_of IS NOT NULL) AND replicate_of BETWEEN 0 AND number - 1"


def _where(condition: str) -> dict[str, Any]:
    """Arguments that make an index cover only some rows, on both databases."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


class UtcTime(TypeDecorator[datetime]):
    """An aware time in UTC; on SQLite a text of fixed width that ends in ``+00:00``, so that it sorts."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Text on SQLite, a timestamp with time zone elsewhere."""
        return dialect.type_descriptor(String(32) if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """To the database."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"times must carry their zone; got {value.isoformat()}.")
        value = value.astimezone(UTC)
        return value.isoformat(timespec="microseconds") if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """From the database.

        Raises:
            DamagedError: If it is no time.
        """
        if value is None or isinstance(value, datetime):
            return None if value is None else value.astimezone(UTC)
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, TypeError, OverflowError) as error:
            raise DamagedError.of("a time", error) from error


class Base(DeclarativeBase):
    """Root of the mapping; every constraint has a name, so that a later revision can find it."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012
        datetime: UtcTime(),
        float: Double(),
        str: Text(),
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON(none_as_null=True),
    }


class VersionRow(Base):
    """The version of the tables, as Alembic stamps it; other programs in the same database have stamps of their own."""

    __tablename__ = "deltaspace_version"

    version_num: Mapped[str] = mapped_column(String(32), primary_key=True)


class StudyRow(Base):
    """A study; its epoch is the number of the keeper that may write. A confirmation names the study it confirms."""

    __tablename__ = "studies"
    __table_args__ = (
        CheckConstraint("epoch >= 0", name="epoch"),
        CheckConstraint("backbone_parameters > 0 AND budget_parameters > 0", name="parameters"),
        CheckConstraint("kind IN ('search', 'confirmation')", name="kind"),
        CheckConstraint("(kind = 'confirmation') = (parent_id IS NOT NULL)", name="parent_exactly_of_confirmations"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    specification: Mapped[dict[str, Any]]
    backbone: Mapped[str]
    backbone_parameters: Mapped[int] = mapped_column(BigInteger)
    budget_parameters: Mapped[int] = mapped_column(BigInteger)
    metric: Mapped[str]
    seed: Mapped[int] = mapped_column(BigInteger)
    epoch: Mapped[int]
    created_at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(server_default="search")
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("studies.id"))
    folder: Mapped[str | None]
    holder: Mapped[str | None]
    held_until: Mapped[datetime | None]


class ConfirmationRow(Base):
    """What a confirmation was asked for, and whom it trains."""

    __tablename__ = "confirmations"
    __table_args__ = (
        CheckConstraint("top >= 1", name="top"),
        CheckConstraint("most_parameters >= 0", name="most_parameters"),
    )

    study_id: Mapped[int] = mapped_column(ForeignKey("studies.id"), primary_key=True)
    top: Mapped[int]
    against: Mapped[list[Any]]
    seeds: Mapped[list[Any]]
    contenders: Mapped[list[Any]]
    left_out: Mapped[dict[str, Any]]
    most_parameters: Mapped[int | None] = mapped_column(BigInteger)


def _all_or_none(site: str) -> CheckConstraint:
    """A site without edits has no dimensions; one with edits has those that every form has."""
    always = ("write", "insertion", "gate", "heads", "learning_rate")
    sometimes = ("bottleneck", "activation", "scale")
    same = " AND ".join(f"({site}_form IS NULL) = ({site}_{name} IS NULL)" for name in always)
    none = " AND ".join(f"{site}_{name} IS NULL" for name in sometimes)
    return CheckConstraint(f"{same} AND ({site}_form IS NOT NULL OR ({none}))", name=f"{site}_dimensions")


class TrialRow(Base):
    """A trial, with one column per design dimension. A terminal row never changes (a trigger sees to it)."""

    __tablename__ = "trials"
    __table_args__ = (
        UniqueConstraint("study_id", "number"),
        UniqueConstraint("study_id", "fingerprint"),
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
        CheckConstraint(
            "stored_parameters >= 0 AND trained_parameters >= 0 AND head_parameters >= 0", name="parameters"
        ),
        _all_or_none("attention"),
        _all_or_none("ffn"),
        CheckConstraint(REPLICATES, name="replicate_of_exactly_of_replicates"),
        CheckConstraint("extra_flops >= 0", name="extra_flops"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("studies.id"))
    number: Mapped[int]
    state: Mapped[str]
    score: Mapped[float | None]
    reason: Mapped[str | None]
    steps: Mapped[int]
    last_score: Mapped[float | None]
    attempt: Mapped[int]
    origin: Mapped[str]
    method: Mapped[str | None]
    description: Mapped[str]
    attention_form: Mapped[str | None]
    attention_write: Mapped[str | None]
    attention_insertion: Mapped[str | None]
    attention_gate: Mapped[str | None]
    attention_heads: Mapped[str | None]
    attention_bottleneck: Mapped[int | None]
    attention_activation: Mapped[str | None]
    attention_scale: Mapped[float | None]
    attention_learning_rate: Mapped[float | None]
    ffn_form: Mapped[str | None]
    ffn_write: Mapped[str | None]
    ffn_insertion: Mapped[str | None]
    ffn_gate: Mapped[str | None]
    ffn_heads: Mapped[str | None]
    ffn_bottleneck: Mapped[int | None]
    ffn_activation: Mapped[str | None]
    ffn_scale: Mapped[float | None]
    ffn_learning_rate: Mapped[float | None]
    attention_share: Mapped[float]
    stored_parameters: Mapped[int] = mapped_column(BigInteger)
    trained_parameters: Mapped[int] = mapped_column(BigInteger)
    head_parameters: Mapped[int] = mapped_column(BigInteger)
    seed: Mapped[int] = mapped_column(BigInteger)
    fingerprint: Mapped[str]
    configuration: Mapped[dict[str, Any]]
    proposal: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    replicate_of: Mapped[int | None]
    extra_flops: Mapped[int | None] = mapped_column(BigInteger)


class AttemptRow(Base):
    """One execution of a trial: at most one is open, at most one ends the trial."""

    __tablename__ = "attempts"
    __table_args__ = (
        CheckConstraint("attempt >= 1", name="attempt"),
        CheckConstraint("ending IN ('complete', 'pruned', 'failed', 'lost')", name="ending"),
        CheckConstraint("(ending IS NULL) = (ended_at IS NULL)", name="ended_exactly_with_ending"),
        Index("uq_attempts_one_open", "trial_id", unique=True, **_where("ended_at IS NULL")),
        Index("uq_attempts_one_final", "trial_id", unique=True, **_where(f"ending IN {_TERMINAL}")),
    )

    trial_id: Mapped[int] = mapped_column(ForeignKey("trials.id"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    worker: Mapped[str]
    lease_expires_at: Mapped[datetime]
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    ending: Mapped[str | None]


class ReadingRow(Base):
    """A validation measurement; one per trial and step."""

    __tablename__ = "readings"
    __table_args__ = (
        ForeignKeyConstraint(["trial_id", "attempt"], ["attempts.trial_id", "attempts.attempt"]),
        CheckConstraint("step >= 1", name="step"),
        CheckConstraint("rung >= 0", name="rung"),
        CheckConstraint(f"score BETWEEN -{_LARGEST} AND {_LARGEST}", name="score_is_finite"),
        CheckConstraint(f"train_loss BETWEEN -{_LARGEST} AND {_LARGEST}", name="train_loss_is_finite"),
        CheckConstraint(f"seconds BETWEEN 0 AND {_LARGEST}", name="seconds"),
        {"sqlite_with_rowid": False},
    )

    trial_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    attempt: Mapped[int]
    score: Mapped[float]
    metrics: Mapped[dict[str, Any]]
    train_loss: Mapped[float]
    seconds: Mapped[float]
    rung: Mapped[int | None]
    heard_at: Mapped[datetime | None]


class ExampleRow(Base):
    """What a reading measured example by example: a loss each as half floats, and a bit each where it was right."""

    __tablename__ = "examples"
    __table_args__ = (
        ForeignKeyConstraint(["trial_id", "step"], ["readings.trial_id", "readings.step"]),
        CheckConstraint("length(losses) > 0", name="losses"),
    )

    trial_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    losses: Mapped[bytes]
    correct: Mapped[bytes | None]


class ArtefactRow(Base):
    """A file that belongs to a trial."""

    __tablename__ = "artefacts"
    __table_args__ = (
        UniqueConstraint("trial_id", "kind", "step"),
        CheckConstraint("kind IN ('snapshot', 'delta')", name="kind"),
        CheckConstraint("step >= 0 AND size_bytes >= 0", name="sizes"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    trial_id: Mapped[int] = mapped_column(ForeignKey("trials.id"))
    kind: Mapped[str]
    step: Mapped[int]
    path: Mapped[str]
    sha256: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)


class EventRow(Base):
    """Something worth knowing later."""

    __tablename__ = "events"

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("studies.id"), index=True)
    at: Mapped[datetime]
    kind: Mapped[str]
    trial: Mapped[int | None]
    text: Mapped[str]


METADATA = Base.metadata
VERSIONS = cast(Table, VersionRow.__table__)
STUDIES = cast(Table, StudyRow.__table__)
CONFIRMATIONS = cast(Table, ConfirmationRow.__table__)
TRIALS = cast(Table, TrialRow.__table__)
ATTEMPTS = cast(Table, AttemptRow.__table__)
READINGS = cast(Table, ReadingRow.__table__)
EXAMPLES = cast(Table, ExampleRow.__table__)
ARTEFACTS = cast(Table, ArtefactRow.__table__)
EVENTS = cast(Table, EventRow.__table__)

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
    """Make terminal trials final, whoever writes."""
    for statement in _FINAL_TRIGGERS[connection.dialect.name]:
        connection.exec_driver_sql(statement)
