"""Observers of running studies: trackers, and classes that users write.

The launching process reads the ledger at intervals and calls the observers; workers and keeper are independent of
them. An observer therefore cannot slow down training, may differ at every launch, and is not part of a study.
"""

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from search_space.closest_name import name_hint
from studies.errors import InvalidRequestError, StudiesError
from studies.ledger.database import NO_PATIENCE
from studies.ledger.ledger import Ledger
from studies.records import Reading, StudyRecord, TrialRecord, TrialState
from studies.runtime.messages import crash_reason

T = TypeVar("T")

READ_INTERVAL_SECONDS = 2.0
"""Least seconds between two reads of the ledger."""

_REST = 9  # times as long as a look takes, nothing is looked at


class Observer(Protocol):
    """Interface of an observer, called in the launching process while a study runs; a call may be slow, and may raise.

    For a trial that a later launch continues, ``trial_began`` is called again, with the readings that follow.

    Example:
        >>> class Printer:
        ...     def trial_began(self, study, trial):
        ...         print("trial", trial.number, trial.description)
        ...
        ...     def reading(self, study, trial, reading):
        ...         print(trial.number, reading.step, reading.score)
        ...
        ...     def trial_ended(self, study, trial):
        ...         print(trial.number, trial.state, trial.score)
        ...
        ...     def launch_ended(self, study):
        ...         print(study.name, "is over")
        >>> deltaspace.launch("docstrings", observers=[Printer()])
    """

    def trial_began(self, study: StudyRecord, trial: TrialRecord) -> None:
        """Handle the start of a trial; called once per launch, before its first reading."""
        ...

    def reading(self, study: StudyRecord, trial: TrialRecord, reading: Reading) -> None:
        """Handle a reading of a trial; called in the order of the steps."""
        ...

    def trial_ended(self, study: StudyRecord, trial: TrialRecord) -> None:
        """Handle a trial that is complete, pruned or failed; called once, after its last reading."""
        ...

    def launch_ended(self, study: StudyRecord) -> None:
        """Handle the end of the launch; nothing is called afterwards."""
        ...


class ObserverDispatcher:
    """Reads the ledger at intervals and calls observers for new trials and readings; drops one that raises.

    Attributes:
        observer_errors: One line for each observer that raised, with the error.
    """

    def __init__(self, study: StudyRecord, ledger: Ledger, observers: Sequence[Observer]) -> None:
        """Start from the present state: earlier launches have reported what came before."""
        self.observer_errors: list[str] = []
        self._study = study
        self._ledger = ledger.with_patience(NO_PATIENCE)
        self._observers = list(observers)
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._delivered: set[tuple[int, int]] = set()
        self._look_again_at = 0.0
        if observers:
            self._ended = {trial.number for trial in ledger.trials(study.id) if trial.state.is_terminal}
            self._delivered = {(reading.trial, reading.step) for reading in ledger.readings(study.id)}

    def after(self, show: Callable[[T], None]) -> Callable[[T], None]:
        """Return a progress function that calls ``show`` and then, at intervals, the observers."""

        def shown(progress: T) -> None:
            show(progress)
            if self._observers and time.monotonic() >= self._look_again_at:
                began_at = time.monotonic()
                self._dispatch()
                ended_at = time.monotonic()
                self._look_again_at = ended_at + max(READ_INTERVAL_SECONDS, _REST * (ended_at - began_at))

        return shown

    def _dispatch(self) -> None:
        if not self._observers:
            return
        try:
            trials = self._ledger.trials(self._study.id)
            readings = self._ledger.readings_by_trial(self._study.id)
        except StudiesError:
            return  # the keeper says what is wrong with the ledger
        for trial in trials:
            if trial.number not in self._ended and trial.state is not TrialState.QUEUED:
                self._dispatch_trial(trial, readings.get(trial.number, ()))

    def end(self) -> None:
        """Call the observers for new trials and readings, and for the end of the launch."""
        self._dispatch()
        self._call("launch_ended", self._study)

    def _dispatch_trial(self, trial: TrialRecord, readings: Sequence[Reading]) -> None:
        if trial.number not in self._begun:
            self._begun.add(trial.number)
            self._call("trial_began", self._study, trial)
        for reading in readings:
            if (trial.number, reading.step) not in self._delivered:
                self._delivered.add((trial.number, reading.step))
                self._call("reading", self._study, trial, reading)
        if trial.state.is_terminal:
            self._ended.add(trial.number)
            self._call("trial_ended", self._study, trial)

    def _call(self, method: str, *arguments: object) -> None:
        for observer in list(self._observers):
            try:
                getattr(observer, method)(*arguments)
            except Exception as error:  # noqa: BLE001 - whatever an observer raises ends no launch
                self._observers.remove(observer)
                who, met = type(observer).__name__, crash_reason(error)
                self.observer_errors.append(f"observer {who} is not called again; it raised {met}. The launch goes on.")


def named_observer(text: str, known: Mapping[str, str]) -> Observer:
    """Return the observer of a name: a built-in one, or ``module:name`` of a class or a function that returns one.

    Args:
        text: The name.
        known: Built-in observers by name.

    Raises:
        InvalidRequestError: If there is no such observer, or it cannot be made.
    """
    place = known.get(text, text)
    module, colon, name = place.partition(":")
    if not (module and colon and name):
        raise InvalidRequestError(
            f"an observer is {', '.join(known)} or module:name; got {text!r}.{name_hint(text, known)}"
        )
    try:
        made: Observer = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise InvalidRequestError(f"observer {text!r} must be there; got {type(error).__name__}: {error}.") from error
    return made
