"""Execution of a study by workers, with the time budget and the user's signals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from studies.backends import BACKENDS
from studies.backends.backend import Interrupts, RunnerFactory, TorchRunnerFactory, Watch
from studies.errors import LaunchError
from studies.ledger.ledger import Ledger
from studies.observer import Observer, ObserverDispatcher
from studies.records import StudyRecord
from studies.runtime.progress import ProgressCallback
from studies.runtime.study_plan import StudyPlan
from studies.runtime.workload import hold_study
from studies.study_file.recorded_specification import BegunSpecification


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchResult:
    """Outcome of a launch.

    Attributes:
        finished: Whether nothing is left to do; else launching again continues.
        reason: Short description of the end.
        is_interrupted: Whether a signal of the user ended it before it was finished.
        observer_errors: Observers that raised an error, a line each; they were dropped.
    """

    study: StudyRecord
    finished: bool
    reason: str
    is_interrupted: bool = False
    observer_errors: tuple[str, ...] = ()


def run_fleet(  # noqa: PLR0913 - one argument per option
    specification: BegunSpecification,
    study: StudyRecord,
    plan: StudyPlan,
    ledger: Ledger,
    *,
    factory: RunnerFactory | None,
    observer: ProgressCallback | None,
    observers: Sequence[Observer],
    instead_of: str | None,
) -> LaunchResult:
    """Run the workers of a study until it is finished or stopped by the time budget or the user.

    Args:
        specification: Study file with the workers' backbone, task, number and time budget.
        study: Record of the study.
        plan: Plan of the keeper.
        ledger: Open ledger of the study, which stays open to the end.
        factory: Factory of the workers' runners; None to train the study's task on its backbone.
        observer: Function that receives the progress about twice a second; None for none.
        observers: Observers of trials and readings.
        instead_of: Launch that is replaced if it runs the study; see `replaceable_holder`.

    Raises:
        StudyHeldError: If another launch runs the study.
        LaunchError: If another launch has replaced the study since it was read.
        StudiesError: If the launch cannot continue. Nothing is lost: launching again continues.
    """
    fleet = specification.fleet
    factory = factory or TorchRunnerFactory.of(specification, specification.inputs)
    backend = BACKENDS[fleet.backend]
    with Interrupts() as interrupts:
        dispatcher = ObserverDispatcher(study, ledger, observers)
        watch = Watch(dispatcher.after(observer or (lambda progress: None)), interrupts, fleet.time_budget)
        try:
            with hold_study(study, ledger, seconds=plan.lease_seconds, instead_of=instead_of) as name:
                if ledger.study(study.name).created_at != study.created_at:
                    raise LaunchError(f"study '{study.name}' was replaced by another launch. Launch it again.")
                status = backend(replace(plan, launch=name), factory, fleet, watch, ledger)
        finally:
            dispatcher.end()
    if status.halted is not None:
        raise status.halted
    return LaunchResult(
        study=study,
        finished=status.is_done,
        reason=status.summary,
        is_interrupted=bool(interrupts.reason) and not status.is_done,
        observer_errors=tuple(dispatcher.observer_errors),
    )
