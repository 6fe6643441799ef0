"""Watches the keeper and the workers from the driver: whoever falls silent is ended, and Ray starts another."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayActorError

from studies.backends.keeper_actor import Pulse, answer_of
from studies.errors import LaunchError, said_line
from studies.runtime.progress import ListeningClock, Standing
from studies.runtime.study_plan import StudyPlan

_ASK_SECONDS = 0.5
_MOST_REPLACED = 3
_BEGIN_SECONDS = 120.0
"""How long a keeper may take to begin, at the least."""


class _Question:
    """A question to an actor that is asked again and again, one at a time; nobody waits for the answer."""

    def __init__(self, ask: Callable[[], Any], clock: ListeningClock) -> None:
        self._ask = ask
        self._clock = clock
        self._asked: Any = None
        self._since = clock.look()
        self._next_at = 0.0

    @property
    def unanswered_seconds(self) -> float:
        """Since the last answer, or since the beginning."""
        return self._clock.look() - self._since

    def begin_anew(self) -> None:
        """Forget how long it was not answered."""
        self._since = self._clock.look()

    def forget(self) -> None:
        """Ask at once, whatever was asked before: its answer is nobody's."""
        self._asked, self._next_at = None, 0.0

    def answer(self) -> Any:
        """What was answered since the last time; None without an answer.

        Raises:
            StudiesError: What the keeper raised; or `LaunchError` if it can never begin.
        """
        if self._asked is None:
            if time.monotonic() < self._next_at:
                return None
            self._asked = self._ask()
        if not ray.wait([self._asked], timeout=0)[0]:
            return None
        asked, self._asked = self._asked, None
        self._next_at = time.monotonic() + _ASK_SECONDS
        try:
            found = answer_of(asked)
        except RayActorError as error:
            if error.actor_init_failed:
                raise _never_begun(error) from error
            return None  # it is being restarted
        self.begin_anew()
        return found


def _never_begun(error: RayActorError) -> LaunchError:
    """Ray restarts no actor that has failed to begin."""
    said = said_line(error, type(error).__name__, place=-1)
    return LaunchError(
        f"the keeper must begin where Ray places it; it stopped: {said}. "
        "Every machine of the cluster needs deltaspace, of one version."
    )


class KeeperWatch:
    """Asks the keeper how it is and where the study stands.

    Attributes:
        stop_reason: Why the workers are to be sent away; empty while they are not.
        waits_for: See `studies.runtime.progress.Progress.waits_for`.
        standing: The newest; None before the first.
    """

    def __init__(self, handle: Any, plan: StudyPlan) -> None:
        """Watch the keeper behind an actor's handle."""
        self.stop_reason = ""
        self.waits_for = ""
        self.standing: Standing | None = None
        self._handle = handle
        self._plan = plan
        clock = ListeningClock(plan.lease_seconds)
        self._pulse = _Question(lambda: handle.pulse.remote(self.stop_reason), clock)
        self._stand = _Question(lambda: handle.call.remote("standing", tuple(self._crew)), clock)
        self._crew: dict[str, Any] = {}
        self._ended: set[str] = set()
        self._replaced = 0
        self._has_answered = False

    @property
    def met(self) -> frozenset[str]:
        """The workers that the keeper knows, the newest of each place."""
        return frozenset(self._crew)

    def look(self) -> bool:
        """Ask again, and see to those who are silent; True when a new standing was heard.

        Raises:
            StudiesError: What the keeper raised; or `LaunchError` if no keeper answers.
        """
        pulse: Pulse | None = self._pulse.answer()
        if pulse is not None:
            self._replaced, self._has_answered = 0, True
            self.waits_for, crew = pulse
            places = {worker.partition("/")[0] for worker in crew}
            others = {name: one for name, one in self._crew.items() if name.partition("/")[0] not in places}
            self._crew = others | crew
        standing: Standing | None = self._stand.answer()
        if standing is not None:
            self.standing = standing
            self._end_silent(standing.silent)
        if self._is_silent():
            self._replace_keeper()
        return standing is not None

    def _is_silent(self) -> bool:
        """Whether the keeper gives no sign of life, or is longer at a call than its database could keep it."""
        lease = self._plan.lease_seconds
        alive = lease if self._has_answered else max(lease, _BEGIN_SECONDS)
        longest = self._plan.patience_seconds + max(2 * lease, _BEGIN_SECONDS)
        return self._pulse.unanswered_seconds > alive or self._stand.unanswered_seconds > longest

    def ask_anew(self) -> None:
        """Hear nothing of how the study stood before this moment."""
        self._stand.forget()

    def asked(self, method: str, *arguments: object) -> Callable[[], bool]:
        """Call a method of the keeper; what is returned says whether it was answered, and raises what that raised."""
        one = self._handle.call.remote(method, *arguments)

        def is_answered() -> bool:
            if not ray.wait([one], timeout=0)[0]:
                return False
            with suppress(RayActorError):  # the keeper is being restarted
                answer_of(one)
            return True

        return is_answered

    def _replace_keeper(self) -> None:
        """End the keeper's process; Ray starts another, which fences it wherever it may still be.

        Raises:
            LaunchError: If that was done in vain.
        """
        if self._replaced >= _MOST_REPLACED:
            raise LaunchError(
                f"the keeper must answer; it was replaced {self._replaced} times and did not. "
                "Nothing is lost: launch again to continue."
            )
        self._replaced += 1
        self._has_answered = False
        ray.kill(self._handle, no_restart=False)
        self._pulse.begin_anew()
        self._stand.begin_anew()

    def _end_silent(self, silent: tuple[str, ...]) -> None:
        """End the processes of workers whose trials were taken back; Tune puts others in their places."""
        for worker in silent:
            if worker in self._crew and worker not in self._ended:
                self._ended.add(worker)
                ray.kill(self._crew[worker])
