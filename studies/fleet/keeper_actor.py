"""The keeper in a process of its own, and how workers reach it, also while it is being restarted."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from studies.errors import FencedError, LaunchError, StudiesError
from studies.keeping.keeper import StudyKeeper
from studies.keeping.messages import Answer, Report
from studies.keeping.plan import StudyPlan
from studies.store.patience import Patience

PULSE = "pulse"
"""Answered beside all other calls, also while the keeper waits for its database."""

_PATIENCE_SECONDS = 60.0
_LONGEST_CALL_SECONDS = 600.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """A sign of life of the keeper.

    Attributes:
        waits_for: See `studies.keeping.progress.Progress.waits_for`.
        crew: The actors of the workers that were met, by the name of the worker.
    """

    waits_for: str = ""
    crew: dict[str, Any] = field(default_factory=dict)


class KeeperActor:
    """A `StudyKeeper` that Ray restarts when its process dies; it then takes the study over from its former self.

    An error of the takeover is kept and answers every call: Ray would bury it in a traceback.
    """

    def __init__(self, plan: StudyPlan, launch_name: str) -> None:
        """Be there to answer; the study is taken over at the first call."""
        self._plan = plan
        self._launch_name = launch_name
        self._keeper: StudyKeeper | None = None
        self._error: StudiesError | None = None
        self._waits_for = self._stop = ""
        self._crew: dict[str, Any] = {}

    def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the keeper."""
        if self._keeper is None:
            self._keeper = self._taken_over()
        if self._stop:
            self._keeper.drain(self._stop)
        return getattr(self._keeper, method)(*arguments)

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def pulse(self, stop: str) -> Pulse:
        """Say that it lives, and send the workers away if there is a reason to stop."""
        self._stop = self._stop or stop
        return Pulse(waits_for=self._waits_for, crew=dict(self._crew))

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def meet(self, worker: str, actor: Any) -> None:
        """Know the actor of a worker, so that it can be ended when it falls silent."""
        place = worker.partition("/")[0]
        self._crew = {name: one for name, one in self._crew.items() if name.partition("/")[0] != place}
        self._crew[worker] = actor

    def _taken_over(self) -> StudyKeeper:
        """The study's keeper, unless another launch has taken it over since this one began."""
        if self._error is not None:
            raise self._error
        patience = Patience(seconds=self._plan.patience_seconds, tell=self._tell, is_over=lambda: bool(self._stop))
        try:
            if ray.get_runtime_context().was_current_actor_reconstructed:
                _refuse_stolen_study(self._plan, self._launch_name, patience)
            return StudyKeeper(self._plan, name=self._launch_name, patience=patience)
        except StudiesError as error:
            self._error = error
            raise

    def _tell(self, text: str) -> None:
        self._waits_for = text


def _refuse_stolen_study(plan: StudyPlan, launch_name: str, patience: Patience) -> None:
    """See that nobody has taken the study over since this launch did, if it ever did.

    Raises:
        FencedError: If another launch has.
    """
    from studies.store.ledger import Ledger

    with Ledger.open(plan.storage_url, create=False, patience=patience) as ledger:
        keepers = ledger.keepers(ledger.study(plan.study).id)
    if launch_name in keepers and keepers[-1] != launch_name:
        raise FencedError(
            f"study '{plan.study}' was taken over: keeper {len(keepers)} is {keepers[-1]}. This launch must stop."
        )


class KeeperClient:
    """The keeper as workers see it (`studies.keeping.messages.Keeper`)."""

    def __init__(self, handle: Any) -> None:
        """Speak to an actor."""
        self._handle = handle

    def meet(self, worker: str, actor: Any) -> None:
        """See `KeeperActor.meet`. Nobody waits for it."""
        self._handle.meet.remote(worker, actor)

    def join(self, worker: str) -> None:
        """See `studies.keeping.messages.Keeper`."""
        self._call("join", worker)

    def exchange(self, worker: str, reports: Sequence[Report], free_slots: int) -> Answer:
        """See `studies.keeping.messages.Keeper`."""
        answer: Answer = self._call("exchange", worker, reports, free_slots)
        return answer

    def heartbeat(self, worker: str) -> bool:
        """See `studies.keeping.messages.Keeper`."""
        return bool(self._call("heartbeat", worker))

    def leave(self, worker: str, reports: Sequence[Report]) -> None:
        """See `studies.keeping.messages.Keeper`."""
        self._call("leave", worker, reports)

    def crash(self, worker: str, text: str) -> None:
        """See `studies.keeping.keeper.StudyKeeper.crash`."""
        self._call("crash", worker, text)

    def halt(self, error: StudiesError) -> None:
        """See `studies.keeping.keeper.StudyKeeper.halt`."""
        self._call("halt", error)

    def _call(self, method: str, *arguments: object) -> Any:
        """Call, and call again while the actor is being restarted.

        Raises:
            StudiesError: What the keeper raised; or `LaunchError` if it does not answer or come back.
        """
        patience, pause = time.monotonic() + _PATIENCE_SECONDS, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return ray.get(self._handle.call.remote(method, *arguments), timeout=_LONGEST_CALL_SECONDS)
            except RayTaskError as error:
                if isinstance(error.cause, StudiesError):
                    raise error.cause from None
                raise
            except GetTimeoutError as error:
                raise LaunchError("the keeper must answer; it was silent for too long.") from error
            except RayActorError as error:
                if time.monotonic() > patience:
                    raise LaunchError(f"the keeper must answer; it was lost: {error}") from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
