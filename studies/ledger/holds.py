"""Who runs a study: every function works inside a transaction of the caller.

One launch runs a study, until a time that it moves on while it lives. The fence of a keeper
(`studies.ledger.keeper_writes.take_over`) keeps two launches from harming each other; a hold keeps a second launch from
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
from studies.ledger.rows import sound
from studies.ledger.tables import STUDIES
from trial_runner.processes import has_ended, machine_mark, start_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchName:
    """A launch, so that any process can tell whether it still runs; its text is what the ledger has.

    Attributes:
        host: Name of its machine.
        process: Number of its process.
        place: Tells apart what counts processes: machines since their start, containers.
        began: When the process began, as its machine counts; empty where that is not told.
        mark: Tells launches of one process apart.
    """

    host: str
    process: int
    place: str
    began: str
    mark: str

    @classmethod
    def of_this_process(cls) -> Self:
        """A new launch of this process."""
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
        """The launch that a text of the ledger names; None if it is no such text."""
        host, *parts = text.rsplit(":", 4)
        if len(parts) != 4 or not parts[0].isdecimal():
            return None
        return cls(host=host, process=int(parts[0]), place=parts[1], began=parts[2], mark=parts[3])

    def __str__(self) -> str:
        """As the ledger has it."""
        return f"{self.host}:{self.process}:{self.place}:{self.began}:{self.mark}"

    @property
    def is_dead(self) -> bool:
        """Whether its process has certainly ended; of another machine's nobody here can tell."""
        return has_ended(self.place, self.process, self.began)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A launch that runs a study.

    Attributes:
        holder: As the ledger has it; see `LaunchName`.
        until: UTC; unless it goes on, nobody runs the study then.
    """

    holder: str
    until: datetime

    @property
    def is_live(self) -> bool:
        """Whether the launch runs, as far as can be told from here."""
        name = LaunchName.parse(self.holder)
        return self.until > WRITTEN_TIME.now() and not (name is not None and name.is_dead)

    @property
    def words(self) -> str:
        """Who it is, for people."""
        name = LaunchName.parse(self.holder)
        return self.holder if name is None else f"process {name.process} on {name.host}"


def holder(connection: Connection, study_id: int) -> Hold | None:
    """Who holds a study, alive or not."""
    columns = [STUDIES.c[name] for name in ("holder", "held_until")]
    row = connection.execute(select(*columns).where(_is(study_id))).one_or_none()
    if row is None or row.holder is None:
        return None
    if sound(row, STUDIES).held_until is None:
        raise DamagedError.of("until when a study is held", ValueError("nothing is there"))
    return Hold(holder=row.holder, until=row.held_until)


def held_error(name: str, hold: Hold) -> StudyHeldError:
    """That a study is run by another launch."""
    return StudyHeldError(
        f"study '{name}' must not be run by another launch; {hold.words} runs it, and was heard of until "
        f"{hold.until:%H:%M:%S} UTC. Wait for it, or end it with --take-over "
        "(from Python: take_over=True)."
    )


def lock(connection: Connection, study_id: int) -> None:
    """Let nobody change who runs a study until the transaction ends."""
    connection.execute(select(STUDIES.c.id).where(_is(study_id)).with_for_update())


def hold(
    connection: Connection, study_id: int, launch: str, seconds: float, *, instead_of: str | None = None
) -> Hold | None:
    """Let a launch hold a study for a while; who holds it now if that is refused.

    Args:
        instead_of: The holder that it may take the study from, though that one lives.
    """
    lock(connection, study_id)
    present = holder(connection, study_id)
    if present is not None and present.is_live and present.holder not in (launch, instead_of):
        return present
    connection.execute(update(STUDIES).where(_is(study_id)).values(holder=launch, held_until=_in(seconds)))
    return None


def renew_hold(connection: Connection, study_id: int, launch: str, seconds: float) -> None:
    """Move the time on, if it still is the launch's."""
    mine = update(STUDIES).where(_is(study_id), STUDIES.c.holder == launch)
    connection.execute(mine.values(held_until=_in(seconds)))


def let_go(connection: Connection, study_id: int, launch: str) -> None:
    """End a hold, if it still is the launch's."""
    mine = update(STUDIES).where(_is(study_id), STUDIES.c.holder == launch)
    connection.execute(mine.values(holder=None, held_until=None))


def _is(study_id: int) -> ColumnElement[bool]:
    return STUDIES.c.id == study_id


def _in(seconds: float) -> datetime:
    return WRITTEN_TIME.now() + timedelta(seconds=seconds)
