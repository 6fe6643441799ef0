"""Launch of a study: all checks, then its creation or continuation, and its workers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

from studies.backends.backend import RunnerFactory
from studies.errors import StorageError
from studies.launch.execution import LaunchResult, run_fleet
from studies.launch.preparation import absolute_url, initial_design_of, plan_of, prepared, space_of
from studies.launch.study_creation import as_begun, create_or_continue, existing_ledger, with_warm_start
from studies.launch_warnings import launch_warnings
from studies.ledger.database import superuser
from studies.ledger.invariants import lost_weights
from studies.ledger.keeper_writes import LEASE_SECONDS
from studies.ledger.ledger import Ledger
from studies.observer import Observer
from studies.records import StudyRecord
from studies.resource_estimates.data import data_facts
from studies.resource_estimates.machine import check_gpu, gpu_warning
from studies.resource_estimates.noise import noise_warning
from studies.runtime.progress import ProgressCallback
from studies.runtime.workload import replaceable_holder
from studies.study_file import Specification
from studies.study_file.recorded_specification import BegunSpecification
from trial_runner.gc_pause import uncollected
from trial_runner.tasks.input_digest import InputDigest
from trial_runner.tasks.kind import Prepared

_MOST_NAMED = 10

Announce = Callable[[Sequence[str]], None]


def launch(  # noqa: PLR0913 - one argument per option
    specification: Specification,
    *,
    storage_url: str,
    observer: ProgressCallback | None = None,
    announce: Announce | None = None,
    factory: RunnerFactory | None = None,
    lease_seconds: float = LEASE_SECONDS,
    take_over: bool = False,
    observers: Sequence[Observer] = (),
) -> LaunchResult:
    """Run a study until it is finished, its time budget is exhausted, or the user interrupts it.

    Every problem of the study is found before any work begins. An existing study is continued.

    Args:
        specification: Study file.
        storage_url: URL of the storage.
        observer: Function that receives the progress about twice a second.
        announce: Function that receives the warnings before any work begins (see `studies.launch_warnings`).
        factory: Factory of the workers' runners; None to train the study's task on its backbone.
        lease_seconds: Seconds of silence after which a worker has lost its trials.
        take_over: Whether to stop another launch that runs the study; else this one is refused.
        observers: Observers of trials and readings of this launch; see `studies.observer`.

    Raises:
        StudyHeldError: If another launch runs the study and ``take_over`` is false.
        StudiesError: If the study cannot be launched, or the launch cannot continue.
        SearchSpaceError: If nothing fits the budget, or the backbone's family is not supported.
        RunnerError: If the backbone or the task cannot be loaded.
    """
    storage_url = absolute_url(storage_url)
    with ExitStack() as opened:
        ledger, instead_of, begun = None, None, BegunSpecification.of(specification)
        with suppress(StorageError):  # missing or unreadable storage is reported when it is opened for creation
            ledger = opened.enter_context(existing_ledger(storage_url))
        if ledger is not None:
            begun = as_begun(specification, ledger)
            instead_of = replaceable_holder(specification.name, ledger, take_over=take_over)
        space = space_of(begun)
        task = None if factory is not None else _checked_task(begun)
        if task is not None:
            inputs = InputDigest.of(task, begun.backbone.name)
            begun = begun.model_copy(update={"inputs": inputs, "dropped": task.dropped, "cuts": task.cuts})
        initial_design_of(begun, task)  # it may raise before anything is recorded
        if ledger is None:
            ledger = opened.enter_context(Ledger.open(storage_url))
        begun = with_warm_start(begun, ledger, space)
        study, done = create_or_continue(begun, ledger, space.shape)
        counts = ledger.state_counts(study.id)
        known = () if announce is None else (*done, *_ledger_lines(ledger, study))
        ended = sum(count for state, count in counts.items() if state.is_terminal)
        if ended >= begun.trials and ended == sum(counts.values()):
            if announce is not None:
                announce(known)
            return LaunchResult(study=study, finished=True, reason=f"already finished: all {ended} trials have ended")
        plan = plan_of(begun, study, space, storage_url=storage_url, task=task)
        plan = replace(plan, lease_seconds=lease_seconds)
        if announce is not None:
            warnings = launch_warnings(space, plan.initial_design, trials=begun.trials)
            announce((*known, *data_lines(task), *warnings, *filter(None, (gpu_warning(begun.fleet),))))
        return run_fleet(
            begun, study, plan, ledger, factory=factory, observer=observer, observers=observers, instead_of=instead_of
        )


def _checked_task(specification: Specification) -> Prepared:
    """Return the task of a study that this machine can train."""
    check_gpu(specification.fleet)
    with uncollected():
        return prepared(specification)


def _ledger_lines(ledger: Ledger, study: StudyRecord) -> Iterator[str]:
    """Yield warnings on trained trials whose files are missing or changed, and on a superuser's role."""
    trials, role = [str(artefact.trial) for artefact in lost_weights(ledger, study)], ledger.read(superuser)
    if trials:
        shown = ", ".join(trials[:_MOST_NAMED]) + (" and more" if len(trials) > _MOST_NAMED else "")
        yield (
            f"the weights of {len(trials)} trained trials are missing or changed: trial {shown}. "
            f"'deltaspace export {study.name} {trials[0]} DIR --retrain' trains one again with its seed."
        )
    if role is not None:
        yield f"the role {role} is a superuser of the server; use one that owns the database alone."


def data_lines(task: Prepared | None) -> tuple[str, ...]:
    """Return the lines of a launch on its data, a short form of `deltaspace check`."""
    if task is None:
        return ()
    facts = data_facts(task)
    noise = noise_warning(facts)
    return (f"{facts.summary}.", *facts.losses, *((noise,) if noise else ()))
