"""The keeper in a process of its own, and how workers reach it, also while it is being restarted."""

import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from studies.errors import FencedError, LaunchError, StudiesError
from studies.keeping.keeper import StudyKeeper
from studies.keeping.messages import Answer, Report
from studies.keeping.plan import StudyPlan
from studies.keeping.progress import Standing

_PATIENCE_SECONDS = 60.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0


class KeeperActor:
    """A `StudyKeeper` that Ray restarts when its process dies; it then takes the study over from its former self.

    An error of the takeover is kept and answers every call: Ray would bury it in a traceback.
    """

    def __init__(self, plan: StudyPlan, launch_name: str) -> None:
        """Take the study over, unless another launch has done so since this one began."""
        self._keeper: StudyKeeper | None = None
        self._error: StudiesError | None = None
        try:
            if ray.get_runtime_context().was_current_actor_reconstructed:
                _refuse_stolen_study(plan, launch_name)
            self._keeper = StudyKeeper(plan, name=launch_name)
        except StudiesError as error:
            self._error = error

    def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the keeper."""
        if self._keeper is None:
            raise self._error or LaunchError("the keeper must be there; it is not.")
        return getattr(self._keeper, method)(*arguments)


def _refuse_stolen_study(plan: StudyPlan, launch_name: str) -> None:
    """See that nobody has taken the study over since this launch did, if it ever did.

    Raises:
        FencedError: If another launch has.
    """
    from studies.store.ledger import Ledger

    with Ledger.open(plan.storage_url, create=False) as ledger:
        keepers = ledger.keepers(ledger.study(plan.study).id)
    if launch_name in keepers and keepers[-1] != launch_name:
        raise FencedError(
            f"study '{plan.study}' was taken over: keeper {len(keepers)} is {keepers[-1]}. This launch must stop."
        )


class KeeperClient:
    """The keeper as workers and the launching process see it (`studies.keeping.messages.Keeper`)."""

    def __init__(self, handle: Any) -> None:
        """Speak to an actor."""
        self._handle = handle

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

    def drain(self, reason: str) -> None:
        """See `studies.keeping.keeper.StudyKeeper.drain`."""
        self._call("drain", reason)

    def standing(self) -> Standing:
        """See `studies.keeping.keeper.StudyKeeper.standing`."""
        standing: Standing = self._call("standing")
        return standing

    def finish(self, text: str) -> None:
        """See `studies.keeping.keeper.StudyKeeper.finish`."""
        self._call("finish", text)

    def _call(self, method: str, *arguments: object) -> Any:
        """Call, and call again while the actor is being restarted.

        Raises:
            StudiesError: What the keeper raised; or `LaunchError` if it does not come back.
        """
        patience, pause = time.monotonic() + _PATIENCE_SECONDS, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return ray.get(self._handle.call.remote(method, *arguments))
            except RayTaskError as error:
                if isinstance(error.cause, StudiesError):
                    raise error.cause from None
                raise
            except RayActorError as error:
                if time.monotonic() > patience:
                    raise LaunchError(f"the keeper must answer; it was lost: {error}") from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
