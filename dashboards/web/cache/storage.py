"""Cache of a storage, which need not exist yet."""

import secrets
import threading
from concurrent.futures import ThreadPoolExecutor

from dashboards.web.cache.study import WatchedStudy
from studies.errors import InvalidRequestError, UnknownStudyError
from studies.ledger.ledger import Ledger
from studies.maintenance import delete_study, rename_study
from studies.records import EventKind, StudyRecord


class WatchedStorage:
    """The studies of a storage, each read again only where it changed.

    Args:
        url: URL of the database, which need not exist yet.
        query_url: The same database for SQL queries, with another role; empty for the same URL.
    """

    def __init__(self, url: str, query_url: str = "") -> None:
        """Open no connection yet."""
        self.url = url
        self.query_url = query_url or url
        """URL for SQL queries."""
        self.session = secrets.token_hex(8)
        """Random id of the process; versions are valid only within it."""
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dashboard")
        self._lock = threading.Lock()
        self._ledger: Ledger | None = None
        self._studies: dict[int, WatchedStudy] = {}

    @property
    def ledger(self) -> Ledger:
        """The open storage.

        Raises:
            StorageError: If it does not exist or cannot be read.
        """
        with self._lock:
            if self._ledger is None:
                self._ledger = Ledger.open(self.url, read_only=True)
            return self._ledger

    def studies(self) -> list[WatchedStudy]:
        """Return all studies, oldest first.

        Raises:
            StorageError: If the storage does not exist or cannot be read.
        """
        return [self._watched(record) for record in self.ledger.studies()]

    def study(self, key: int) -> WatchedStudy:
        """Return the study of a key.

        Raises:
            UnknownStudyError: If there is none.
        """
        known = self._studies.get(key)
        if known is not None:
            return known
        for record in self.ledger.studies():
            if record.id == key:
                return self._watched(record)
        raise UnknownStudyError(f"no study {key}. Look for it in the list of studies.")

    def named(self, name: str) -> WatchedStudy:
        """Return the study of a name.

        Raises:
            UnknownStudyError: If there is none; the message lists those that exist.
        """
        return self._watched(self.ledger.study(name))

    def annotate(
        self, study: WatchedStudy, kind: EventKind, text: str, trial: int | None, known: str | None = None
    ) -> None:
        """Record an annotation; the storage is open for writing only meanwhile.

        Raises:
            StudiesError: If there is no such trial, another text than the known one, or the storage cannot be written.
        """
        with Ledger.open(self.url, create=False) as ledger:
            ledger.annotate(study.record.id, kind, text, trial, known)
        study.forget()

    def maintain(self, key: int, name: str, new: str | None) -> list[str]:
        """Rename a study; without a new name delete it and return a line for each file that could not be deleted.

        Args:
            key: Key of the study.
            name: Its present name, which must be right.
            new: Its new name; None to delete it.

        Raises:
            StudiesError: If the study has another name, a launch runs it, or the storage cannot be written.
        """
        with Ledger.open(self.url, create=False) as ledger:
            if all((one.id, one.name) != (key, name) for one in ledger.studies()):
                raise InvalidRequestError(
                    f"the name must be that of the study; got {name!r}. Type it as the page shows it."
                )
            left = delete_study(ledger, name)[1] if new is None else []
            if new is not None:
                rename_study(ledger, name, new)
        with self._lock:
            self._studies.clear()
        return left

    def close(self) -> None:
        """Stop computations and close all connections."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        if self._ledger is not None:
            self._ledger.close()

    def _watched(self, record: StudyRecord) -> WatchedStudy:
        ledger = self.ledger
        with self._lock:
            known = self._studies.get(record.id)
            if known is None:
                known = self._studies[record.id] = WatchedStudy(ledger, record, self._executor)
            known.record = record
            return known
