"""Shows a running study to observers trial by trial: trackers, and whatever a user writes in ten lines.

What is told stands in the ledger, which the launching process reads now and then; workers and keeper know nothing of
it. So an observer can slow nobody down but the launch's own view, can be another one at every launch, and is no part of
what a study is.
"""

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from search_space.closest_name import name_hint
from studies.errors import StudiesError, WishError
from studies.ledger.ledger import Ledger
from studies.records import Reading, StudyRecord, TrialRecord, TrialState
from studies.runtime.messages import crash_reason

T = TypeVar("T")

LOOK_SECONDS = 2.0
"""Least time between two looks at the ledger."""

_REST = 9  # times as long as a look takes, nothing is looked at


class Observer(Protocol):
    """Told of a study while it runs, in the launching process; each call may take its time, and may raise.

    A trial that is continued by a later launch is begun again there, with the readings that follow.

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
        """A trial runs that this observer was not told of; called before its first reading."""
        ...

    def reading(self, study: StudyRecord, trial: TrialRecord, reading: Reading) -> None:
        """A trial was measured; in the order of its steps."""
        ...

    def trial_ended(self, study: StudyRecord, trial: TrialRecord) -> None:
        """A trial is complete, pruned or failed; called once, after its last reading."""
        ...

    def launch_ended(self, study: StudyRecord) -> None:
        """Nothing more will come from this launch."""
        ...


class Telling:
    """Reads the ledger now and then, and tells observers what is new; one that raises is told nothing more.

    Attributes:
        complaints: Which observers are told nothing more and why, a line each.
    """

    def __init__(self, study: StudyRecord, storage_url: str, observers: Sequence[Observer]) -> None:
        """Begin: what has happened so far was told by earlier launches."""
        self.complaints: list[str] = []
        self._study = study
        self._storage_url = storage_url
        self._observers = list(observers)
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._told: set[tuple[int, int]] = set()
        self._look_again_at = 0.0
        if observers:
            with Ledger.open(storage_url, read_only=True) as ledger:
                self._ended = {trial.number for trial in ledger.trials(study.id) if trial.state.is_terminal}
                self._told = {(reading.trial, reading.step) for reading in ledger.readings(study.id)}

    def beside(self, show: Callable[[T], None]) -> Callable[[T], None]:
        """The same view of the progress; what is new is told now and then after it is shown."""

        def shown(progress: T) -> None:
            show(progress)
            if self._observers and time.monotonic() >= self._look_again_at:
                began_at = time.monotonic()
                self._tell()
                ended_at = time.monotonic()
                self._look_again_at = ended_at + max(LOOK_SECONDS, _REST * (ended_at - began_at))

        return shown

    def _tell(self) -> None:
        if not self._observers:
            return
        try:
            with Ledger.open(self._storage_url, read_only=True) as ledger:
                trials = ledger.trials(self._study.id)
                readings = ledger.readings_by_trial(self._study.id)
        except StudiesError:
            return  # the keeper says what is wrong with the ledger
        for trial in trials:
            if trial.number not in self._ended and trial.state is not TrialState.QUEUED:
                self._tell_of(trial, readings.get(trial.number, ()))

    def end(self) -> None:
        """Tell what is new, and that nothing more will come."""
        self._tell()
        self._call("launch_ended", self._study)

    def _tell_of(self, trial: TrialRecord, readings: Sequence[Reading]) -> None:
        if trial.number not in self._begun:
            self._begun.add(trial.number)
            self._call("trial_began", self._study, trial)
        for reading in readings:
            if (trial.number, reading.step) not in self._told:
                self._told.add((trial.number, reading.step))
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
                self.complaints.append(f"observer {who} is told nothing more; it raised {met}. The launch goes on.")


def named_observer(text: str, known: Mapping[str, str]) -> Observer:
    """The observer that a text names: one of ours, or ``module:name`` of a class or a function that makes one.

    Args:
        known: Ours, by name.

    Raises:
        WishError: If there is none, or it cannot be made.
    """
    place = known.get(text, text)
    module, colon, name = place.partition(":")
    if not (module and colon and name):
        raise WishError(f"an observer is {', '.join(known)} or module:name; got {text!r}.{name_hint(text, known)}")
    try:
        made: Observer = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise WishError(f"observer {text!r} must be there; got {type(error).__name__}: {error}.") from error
    return made
