"""Transactions: all or nothing, tried again when a server's connection drops, explained when they fail."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from studies.store.address import StorageAddress
from studies.store.engine import WRITES
from studies.store.failures import explained, is_dropped

T = TypeVar("T")

# Together about 16 s: a server that restarts is back by then.
RETRY_PAUSES_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)


class Database:
    """A database that is open."""

    def __init__(self, engine: Engine, address: StorageAddress) -> None:
        """Take an engine over."""
        self.address = address
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

    def read(self, work: Callable[[Connection], T]) -> T:
        """The result of ``work`` on one consistent state of the database.

        Raises:
            StorageError: If the database cannot be read.
        """

        def look(connection: Connection, _: T | None) -> T:
            return work(connection)

        return self._try(self._reader, look)

    def write(self, work: Callable[[Connection, T | None], T]) -> T:
        """The result of ``work``, committed.

        When the connection drops while a commit is on its way, nobody can tell whether it arrived. ``work`` then runs
        again and is handed the result of the run in doubt (else None), so that it recognises its own writes.

        Raises:
            StorageError: If the database cannot be written, also after trying again.
        """
        return self._try(self._writer, work)

    def _try(self, engine: Engine, work: Callable[[Connection, T | None], T]) -> T:
        """Run a transaction; again after a pause when the connection dropped."""
        in_doubt: T | None = None
        pauses = iter(RETRY_PAUSES_SECONDS)
        while True:
            done: list[T] = []
            try:
                with engine.begin() as connection:
                    done.append(work(connection, in_doubt))
                return done[0]
            except DBAPIError as error:
                pause = next(pauses, None) if is_dropped(error) else None
                if pause is None:
                    raise explained(error, self.address) from error
                in_doubt = done[0] if done else in_doubt
            time.sleep(pause)
