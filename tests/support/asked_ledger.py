"""A question to a ledger that is opened for it alone."""

from collections.abc import Callable
from typing import TypeVar

from studies.ledger.ledger import Ledger
from studies.records import StudyRecord

T = TypeVar("T")


def asked(url: str, name: str, ask: Callable[[Ledger, StudyRecord], T]) -> T:
    """The answer of a storage about the study of a name."""
    with Ledger.open(url, read_only=True) as ledger:
        return ask(ledger, ledger.study(name))
