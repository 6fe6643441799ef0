"""Monitor of the keeper and the workers in the driver: silent ones are ended, and Ray starts replacements."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayActorError

from studies.backends.keeper_actor import PingAnswer, actor_result
from studies.errors import LaunchError, message_line
from studies.runtime.progress import ActiveClock, LaunchStatus
from studies.runtime.study_plan import StudyPlan

_ASK_SECONDS = 0.5
_MOST_REPLACED = 3
BEGIN_SECONDS = 120.0
"""Least number of seconds for a keeper to begin."""


class _PolledCall:
    """Repeated call of an actor, one at a time, without waiting for the answer."""

    def __init__(self, ask: Callable[[], Any], clock: ActiveClock) -> None:
        self._ask = ask
        self._clock = clock
        self._pending: Any = None
        self._since = clock.seconds()
        self._next_at = 0.0

    @property
    def unanswered_seconds(self) -> float:
        """Seconds since the last answer, or since the beginning."""
        return self._clock.seconds() - self._since

    def begin_anew(self) -> None:
        """Restart the count of seconds without an answer."""
        self._since = self._clock.seconds()

    def forget(self) -> None:
        """Call again at once and ignore the pending answer."""
        self._pending, self._next_at = None, 0.0

    def answer(self) -> Any:
        """Return the answer since the last call; None without one.

        Raises:
            StudiesError: Error of the keeper, or `LaunchError` if it can never begin.
        """
        if self._pending is None:
            if time.monotonic() < self._next_at:
                return None
            self._pending = self._ask()
        if not ray.wait([self._pending], timeout=0)[0]:
            return None
        pending, self._pending = self._pending, None
        self._next_at = time.monotonic() + _ASK_SECONDS
        try:
            answer = actor_result(pending)
        except RayActorError as error:
            if error.actor_init_failed:
                raise _never_begun(error) from error
            return None  # it is being restarted
        self.begin_anew()
        return answer


def _never_begun(error: RayActorError) -> LaunchError:
    """Return the error of an actor that failed to begin; Ray does not restart it."""
    reason = message_line(error, type(error).__name__, place=-1)
    return LaunchError(
        f"cannot start the keeper where Ray places it: {reason}. "
        "Every machine of the cluster needs deltaspace, of one version."
    )


class KeeperWatch:
    """Monitor of the keeper and the status of the study.

    Attributes:
        stop_reason: Reason why the workers must be dismissed; empty without one.
        waits_for: See `studies.runtime.progress.Progress.waits_for`.
        status: Newest status; None before the first.
    """

    def __init__(self, handle: Any, plan: StudyPlan) -> None:
        """Watch the keeper of an actor's handle."""
        self.stop_reason = ""
        self.waits_for = ""
        self.status: LaunchStatus | None = None
        self._handle = handle
        self._plan = plan
        clock = ActiveClock(plan.lease_seconds)
        self._ping_call = _PolledCall(lambda: handle.ping.remote(self.stop_reason), clock)
        self._status_call = _PolledCall(lambda: handle.call.remote("status", tuple(self._actors)), clock)
        self._actors: dict[str, Any] = {}
        self._ended: set[str] = set()
        self._replaced = 0
        self._has_answered = False

    @property
    def workers(self) -> frozenset[str]:
        """Workers registered with the keeper, the newest of each place."""
        return frozenset(self._actors)

    def poll(self) -> bool:
        """Poll the keeper and end silent workers; return whether there is a new status.

        Raises:
            StudiesError: Error of the keeper, or `LaunchError` if no keeper answers.
        """
        answer: PingAnswer | None = self._ping_call.answer()
        if answer is not None:
            self._replaced, self._has_answered = 0, True
            self.waits_for, actors = answer
            places = {worker.partition("/")[0] for worker in actors}
            others = {name: one for name, one in self._actors.items() if name.partition("/")[0] not in places}
            self._actors = others | actors
        status: LaunchStatus | None = self._status_call.answer()
        if status is not None:
            self.status = status
            self._end_silent(status.silent)
        if self._is_silent():
            self._replace_keeper()
        return status is not None

    def _is_silent(self) -> bool:
        """Return whether the keeper answers no ping, or a call takes longer than its database could."""
        lease = self._plan.lease_seconds
        alive = lease if self._has_answered else max(lease, BEGIN_SECONDS)
        longest = self._plan.patience_seconds + max(2 * lease, BEGIN_SECONDS)
        return self._ping_call.unanswered_seconds > alive or self._status_call.unanswered_seconds > longest

    def discard_pending_status(self) -> None:
        """Discard a pending answer about the status."""
        self._status_call.forget()

    def call(self, method: str, *arguments: object) -> Callable[[], bool]:
        """Call a method of the keeper; return a function that returns whether it has answered, and raises its error."""
        pending = self._handle.call.remote(method, *arguments)

        def is_answered() -> bool:
            if not ray.wait([pending], timeout=0)[0]:
                return False
            with suppress(RayActorError):  # the keeper is being restarted
                actor_result(pending)
            return True

        return is_answered

    def _replace_keeper(self) -> None:
        """End the keeper's process; Ray starts another, which fences it.

        Raises:
            LaunchError: If it was replaced too often.
        """
        if self._replaced >= _MOST_REPLACED:
            raise LaunchError(
                f"the keeper did not respond after {self._replaced} replacements. "
                "Nothing is lost: launch again to continue."
            )
        self._replaced += 1
        self._has_answered = False
        ray.kill(self._handle, no_restart=False)
        self._ping_call.begin_anew()
        self._status_call.begin_anew()

    def _end_silent(self, silent: tuple[str, ...]) -> None:
        """End the processes of workers whose trials were reclaimed; Tune starts replacements."""
        for worker in silent:
            if worker in self._actors and worker not in self._ended:
                self._ended.add(worker)
                ray.kill(self._actors[worker])
