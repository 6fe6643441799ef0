"""Transactions: all or nothing, tried again when a server's connection drops, explained when they fail."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from studies.errors import DamagedError
from studies.store.address import StorageAddress
from studies.store.engine import WRITES
from studies.store.failures import explained, is_dropped, is_locked
from studies.store.holders import holders
from studies.store.patience import Patience

T = TypeVar("T")

# Together about 16 s: a server that restarts is back by then.
RETRY_PAUSES_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
_GIVEN_UP = object()


class Database:
    """A database that is open."""

    def __init__(self, engine: Engine, address: StorageAddress, patience: Patience | None = None) -> None:
        """Take an engine over.

        Args:
            patience: For a database that is locked or away; None tries again only when a connection dropped.
        """
        self.address = address
        self._patience = patience
        self._engine = engine
        self._reader = engine.execution_options(**({} if address.file else {"isolation_level": "REPEATABLE READ"}))
        self._writer = engine.execution_options(**{WRITES: True})

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def once(self, *, writes: bool) -> Iterator[Connection]:
        """A transaction that is not tried again.

        Raises:
            StorageError: In place of every error of the driver.
        """
        try:
            with (self._writer if writes else self._reader).begin() as connection:
                yield connection
        except DBAPIError as error:
            raise explained(error, self.address) from error
        except UnicodeDecodeError as error:
            raise DamagedError.of("UTF-8", error) from error

    def read(self, work: Callable[[Connection], T]) -> T:
        """The result of ``work`` on one consistent state of the database.

        Raises:
            StorageError: If the database cannot be read.
        """

        def look(connection: Connection, _: T | None) -> T:
            return work(connection)

        return self._try(self._reader, look)

    def look(self, work: Callable[[Connection], T]) -> T:
        """The first look at it: as `read`, and not tried again without patience."""
        if self._patience is not None:
            return self.read(work)
        with self.once(writes=False) as connection:
            return work(connection)

    def write(self, work: Callable[[Connection, T | None], T]) -> T:
        """The result of ``work``, committed.

        When the connection drops while a commit is on its way, nobody can tell whether it arrived. ``work`` then runs
        again and is handed the result of the run in doubt (else None), so that it recognises its own writes.

        Raises:
            StorageError: If the database cannot be written, also after trying again.
        """
        return self._try(self._writer, work)

    def _try(self, engine: Engine, work: Callable[[Connection, T | None], T]) -> T:
        """Run a transaction; again after a pause when the connection dropped, or while there is patience."""
        in_doubt: T | None = None
        pauses, has_waited = self._pauses(), False
        while True:
            done: list[T] = []
            try:
                with engine.begin() as connection:
                    done.append(work(connection, in_doubt))
            except DBAPIError as error:
                if not self._may_pass(error) or next(pauses, _GIVEN_UP) is _GIVEN_UP:
                    raise explained(error, self.address) from error
                in_doubt, has_waited = done[0] if done else in_doubt, True
            except UnicodeDecodeError as error:
                raise DamagedError.of("UTF-8", error) from error
            else:
                if has_waited and self._patience is not None:
                    self._patience.tell("")
                return done[0]

    def _may_pass(self, error: DBAPIError) -> bool:
        """Whether trying again may help; says what is waited for."""
        if self._patience is None:
            return is_dropped(error)
        if not (is_dropped(error) or is_locked(error)):
            return False
        by = holders(self._engine, self.address) if is_locked(error) else ""
        shown, seconds = self.address.shown, self._patience.seconds
        happened = f"is locked by {by or 'another process'}" if is_locked(error) else "cannot be reached"
        self._patience.tell(f"{shown} {happened}; waiting for it, {seconds:g} s at most")
        return True

    def _pauses(self) -> Iterator[None]:
        """Waits at every turn, and ends when it is time to give up."""
        if self._patience is not None:
            yield from self._patience.pauses()
            return
        for pause in RETRY_PAUSES_SECONDS:
            time.sleep(pause)
            yield
