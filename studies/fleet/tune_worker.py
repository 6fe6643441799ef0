"""A worker as a trial of Ray Tune that lives as long as the launch."""

import threading
import time
import uuid
from typing import Any

import ray
from ray.tune import Trainable

from studies.errors import LaunchError, StudiesError
from studies.fleet.backend import RunnerFactory
from studies.fleet.keeper_actor import KeeperClient
from studies.fleet.worker import PackWorker, crash_reason
from studies.keeping.plan import StudyPlan
from trial_runner.errors import RunnerError
from trial_runner.requests import TrainingPlan

_STEP_SECONDS = 5.0
_HEARTBEAT_SECONDS = 1.0


class PackTrainable(Trainable):  # type: ignore[misc]
    """One `PackWorker`; a step of Tune is a few seconds of its work. Tune restarts it when its process dies.

    The keeper's ledger holds everything, so a checkpoint of Tune holds nothing.
    """

    def setup(  # noqa: PLR0913 - Tune calls it
        self,
        config: dict[str, Any],
        *,
        plan: StudyPlan,
        factory: RunnerFactory,
        slots: int,
        fitting: TrainingPlan | None,
        threads: int,
        keeper: str,
        namespace: str,
    ) -> None:
        """Join the keeper under a new incarnation of this place, then load what is needed."""
        self._worker: PackWorker | None = None
        self._began_at = time.monotonic()
        self._stuck_seconds = plan.stuck_seconds
        self._is_leaving = threading.Event()
        self._is_closed = threading.Event()
        self._name = f"{config['place']}/{uuid.uuid4().hex[:8]}"
        self._keeper = KeeperClient(ray.get_actor(keeper, namespace))
        try:
            self._keeper.meet(self._name, ray.get_runtime_context().current_actor)
            self._keeper.join(self._name)
            threading.Thread(target=self._beat, daemon=True).start()
            self._worker = PackWorker(
                name=self._name,
                keeper=self._keeper,
                runner=factory(threads),
                slots=slots,
                fitting=fitting,
                folder=plan.artefacts,
                should_leave=self._is_leaving.is_set,
            )
        except RunnerError as error:
            self._keeper.halt(LaunchError(str(error)))
        except StudiesError:
            # the keeper knows, and the launching process hears it from there
            return
        except Exception as error:
            self._crash(error)
            raise

    def step(self) -> dict[str, Any]:
        """Work for a while."""
        is_over = True
        try:
            if self._worker is not None:
                is_over = self._worker.work(_STEP_SECONDS)
        except StudiesError as error:
            self._halt(error)
        except Exception as error:
            self._crash(error)
            raise
        return {"done": is_over}

    def save_checkpoint(self, checkpoint_dir: str) -> dict[str, Any]:
        """Nothing: the ledger has it."""
        return {}

    def load_checkpoint(self, checkpoint: dict[str, Any] | None) -> None:
        """Nothing: the ledger has it."""

    def cleanup(self) -> None:
        """Stop the heart."""
        self._is_closed.set()

    def _beat(self) -> None:
        """Keep the leases alive during long steps, and hear when it is time to leave.

        Of a worker that hangs nothing is heard, so that it is replaced.
        """
        while not self._is_closed.wait(_HEARTBEAT_SECONDS):
            moved_at = self._began_at if self._worker is None else self._worker.moved_at
            if time.monotonic() - moved_at > self._stuck_seconds:
                continue
            try:
                self._keeper.meet(self._name, ray.get_runtime_context().current_actor)
                if self._keeper.heartbeat(self._name):
                    self._is_leaving.set()
            except StudiesError:
                self._is_leaving.set()
                return

    def _halt(self, error: StudiesError) -> None:
        """End the launch; a keeper that raised the error itself knows it already."""
        try:
            self._keeper.halt(error)
        except StudiesError:
            return

    def _crash(self, error: Exception) -> None:
        """Say why this process is about to be replaced."""
        try:
            self._keeper.crash(self._name, crash_reason(error))
        except StudiesError:
            return
