"""Holds: which launch runs a study. Every function works inside a transaction of the caller.

A launch holds a study until a time that it extends while it lives. The fence of a keeper
(`studies.ledger.keeper_writes.take_over`) protects two launches from each other; a hold prevents a second launch from
ending the first by mistake.
"""

import os
import socket
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from sqlalchemy import ColumnElement, Connection, select, update

from studies.errors import DamagedError, StudyHeldError
from studies.ledger.clock import WRITTEN_TIME
from studies.ledger.rows import checked_row, named_rows
from studies.ledger.tables import STUDIES
from trial_runner.processes import has_ended, machine_mark, start_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchName:
    """Name of a launch from which any process can check whether it still runs; stored as text in the ledger.

    Attributes:
        host: Name of its machine.
        process: Number of its process.
        place: Identifier of the boot or container that numbers processes.
        began: Start time of the process as its machine counts; empty if unknown.
        mark: Identifier of the launch within its process.
    """

    host: str
    process: int
    place: str
    began: str
    mark: str

    @classmethod
    def of_this_process(cls) -> Self:
        """Return a new launch of this process."""
        process = os.getpid()
        return cls(
            host=socket.gethostname(),
            process=process,
            place=machine_mark(),
            began=(start_of(process) or ""),
            mark=uuid.uuid4().hex[:8],
        )

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the launch named by a text of the ledger; None for any other text."""
        host, *parts = text.rsplit(":", 4)
        if len(parts) != 4 or not parts[0].isdecimal():
            return None
        return cls(host=host, process=int(parts[0]), place=parts[1], began=parts[2], mark=parts[3])

    def __str__(self) -> str:
        """Return the text for the ledger."""
        return f"{self.host}:{self.process}:{self.place}:{self.began}:{self.mark}"

    @property
    def is_dead(self) -> bool:
        """Whether its process has certainly ended; False for processes of other machines."""
        return has_ended(self.place, self.process, self.began)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Launch that runs a study.

    Attributes:
        holder: Name in the ledger; see `LaunchName`.
        until: Time in UTC at which the hold ends unless extended.
    """

    holder: str
    until: datetime

    @property
    def is_live(self) -> bool:
        """Whether the launch runs: its hold has not expired, and its process is not found dead on this machine."""
        name = LaunchName.parse(self.holder)
        return self.until > WRITTEN_TIME.now() and not (name is not None and name.is_dead)

    @property
    def words(self) -> str:
        """Launch in words."""
        name = LaunchName.parse(self.holder)
        return self.holder if name is None else f"process {name.process} on {name.host}"


def holder(connection: Connection, study_id: int) -> Hold | None:
    """Return the hold on a study, live or not."""
    columns = [STUDIES.c[name] for name in ("holder", "held_until")]
    row = next(named_rows(connection.execute(select(*columns).where(_is(study_id)))), None)
    if row is None or row["holder"] is None:
        return None
    if checked_row(row, STUDIES)["held_until"] is None:
        raise DamagedError.of("the end of a hold", ValueError("it is missing"))
    return Hold(holder=row["holder"], until=row["held_until"])


def held_error(name: str, hold: Hold) -> StudyHeldError:
    """Return the error that another launch runs a study."""
    return StudyHeldError(
        f"study '{name}' is run by {hold.words} until at least {hold.until:%H:%M:%S} UTC. Wait for it, "
        "or take it over with --take-over (from Python: take_over=True)."
    )


def lock(connection: Connection, study_id: int) -> None:
    """Lock the hold on a study until the transaction ends."""
    connection.execute(select(STUDIES.c.id).where(_is(study_id)).with_for_update())


def hold(
    connection: Connection, study_id: int, launch: str, seconds: float, *, instead_of: str | None = None
) -> Hold | None:
    """Hold a study for a while; return the present hold if that is refused.

    Args:
        instead_of: Holder that may be replaced although it lives.
    """
    lock(connection, study_id)
    present = holder(connection, study_id)
    if present is not None and present.is_live and present.holder not in (launch, instead_of):
        return present
    connection.execute(update(STUDIES).where(_is(study_id)).values(holder=launch, held_until=_in(seconds)))
    return None


def renew_hold(connection: Connection, study_id: int, launch: str, seconds: float) -> None:
    """Extend the hold if it still is the launch's."""
    mine = update(STUDIES).where(_is(study_id), STUDIES.c.holder == launch)
    connection.execute(mine.values(held_until=_in(seconds)))


def release_hold(connection: Connection, study_id: int, launch: str) -> None:
    """End the hold if it still is the launch's."""
    mine = update(STUDIES).where(_is(study_id), STUDIES.c.holder == launch)
    connection.execute(mine.values(holder=None, held_until=None))


def _is(study_id: int) -> ColumnElement[bool]:
    return STUDIES.c.id == study_id


def _in(seconds: float) -> datetime:
    return WRITTEN_TIME.now() + timedelta(seconds=seconds)
