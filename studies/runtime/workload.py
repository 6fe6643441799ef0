"""A study is run by one launch at a time: another is refused, unless its user says that it takes the study over."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from studies.errors import StudiesError, UnknownStudyError
from studies.ledger.holds import Hold, LaunchName, held_error
from studies.ledger.ledger import Ledger
from studies.records import StudyRecord

_START_SECONDS = 60.0
"""A launch that has just begun says nothing for so long at most."""


def running_launch(name: str, ledger: Ledger) -> Hold | None:
    """The launch that runs a study; None if nobody does, or if there is no such study."""
    try:
        present = ledger.holder(ledger.study(name).id)
    except UnknownStudyError:
        return None
    return present if present is not None and present.is_live else None


def replaceable(name: str, ledger: Ledger, *, take_over: bool) -> str | None:
    """The holder of a study that a launch may replace; None if nobody runs it.

    Raises:
        StudyHeldError: If somebody runs it who is to go on.
    """
    present = running_launch(name, ledger)
    if present is not None and not take_over:
        raise held_error(name, present)
    return None if present is None else present.holder


@contextmanager
def occupied(study: StudyRecord, ledger: Ledger, *, seconds: float, instead_of: str | None) -> Iterator[str]:
    """Run a study for as long as this lasts, under the name that this gives.

    Args:
        ledger: Stays open meanwhile: where its file is replaced, nothing is written into the other one in the end.
        seconds: For so long at least the study counts as run when this process dies unseen.
        instead_of: The holder that may be replaced.

    Raises:
        StudyHeldError: If another launch runs it.
    """
    name = str(LaunchName.of_this_process())
    present = ledger.hold(study.id, name, max(seconds, _START_SECONDS), instead_of=instead_of)
    if present is not None:
        raise held_error(study.name, present)
    try:
        yield name
    finally:
        with suppress(StudiesError):
            ledger.let_go(study.id, name)
