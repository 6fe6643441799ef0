"""Exclusive use of a study: one launch at a time runs it, unless another explicitly takes it over."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from studies.errors import StudiesError, UnknownStudyError
from studies.ledger.holds import Hold, LaunchName, held_error
from studies.ledger.ledger import Ledger
from studies.records import StudyRecord

_START_SECONDS = 60.0
"""Seconds for which a starting launch may be silent."""


def running_launch(name: str, ledger: Ledger) -> Hold | None:
    """Return the launch that runs a study; None if there is none or no such study."""
    try:
        present = ledger.holder(ledger.study(name).id)
    except UnknownStudyError:
        return None
    return present if present is not None and present.is_live else None


def replaceable_holder(name: str, ledger: Ledger, *, take_over: bool) -> str | None:
    """Return the holder of a study that a launch may replace; None if no launch runs it.

    Raises:
        StudyHeldError: If a launch runs it and ``take_over`` is false.
    """
    present = running_launch(name, ledger)
    if present is not None and not take_over:
        raise held_error(name, present)
    return None if present is None else present.holder


@contextmanager
def hold_study(study: StudyRecord, ledger: Ledger, *, seconds: float, instead_of: str | None) -> Iterator[str]:
    """Hold a study for the duration of the context; yields the name of the holder.

    Args:
        ledger: Ledger that stays open meanwhile, so that nothing is written to a file put in its place.
        seconds: Least seconds for which the study counts as running if this process dies.
        instead_of: Holder that may be replaced.

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
            ledger.release_hold(study.id, name)
