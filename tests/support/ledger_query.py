"""Query of a ledger that is opened for it alone."""

from collections.abc import Callable
from typing import TypeVar

from studies.ledger.ledger import Ledger
from studies.records import StudyRecord

T = TypeVar("T")


def query_study(url: str, name: str, query: Callable[[Ledger, StudyRecord], T]) -> T:
    """Return the result of a query about a study by name."""
    with Ledger.open(url, read_only=True) as ledger:
        return query(ledger, ledger.study(name))
