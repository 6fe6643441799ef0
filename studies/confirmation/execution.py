"""Execution of a confirmation: a study of its own, whose trials are all recorded at its beginning."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from pydantic import ValidationError

from search_space.space.space import SearchSpace
from studies.analysis.discover import knowledge_of
from studies.analysis.estimates import estimates_of
from studies.analysis.ranks import mean_scores
from studies.backends.backend import RunnerFactory
from studies.confirmation.ablation import path_entries
from studies.confirmation.ablation_path import comparisons_of
from studies.confirmation.contenders import ContenderEntry, contender_entries, trials_of
from studies.confirmation.request import AblationRequest, Request
from studies.confirmation.results import confirmation_result
from studies.errors import ConfirmationError, StudyChangedError
from studies.inputs import recorded_with_inputs
from studies.launch.execution import LaunchResult, run_fleet
from studies.launch.launch import Announce
from studies.launch.preparation import absolute_url, prepared, space_of
from studies.launch.study_creation import check_table, difference
from studies.ledger.files import own_folder
from studies.ledger.keeper_writes import LEASE_SECONDS
from studies.ledger.ledger import Ledger
from studies.observer import Observer
from studies.pruning.rungs import RungPlan
from studies.records import ConfirmationRecord, NewStudy, StudyKind, StudyRecord, TrialRecord, TrialState
from studies.resource_estimates.machine import check_gpu
from studies.runtime.artefacts import study_folder
from studies.runtime.progress import ProgressCallback
from studies.runtime.study_plan import StudyPlan
from studies.runtime.workload import replaceable_holder
from studies.search.initial_design import InitialDesign
from studies.seeds import hashed_seed
from studies.study_file import specification_from_mapping
from studies.study_file.recorded_specification import BegunSpecification
from studies.study_file.study import FOUND_OUT
from trial_runner.tasks.input_digest import InputDigest

_SEED_BITS = 31


def confirm(  # noqa: PLR0913 - one argument per option
    request: Request,
    *,
    storage_url: str,
    observer: ProgressCallback | None = None,
    factory: RunnerFactory | None = None,
    lease_seconds: float = LEASE_SECONDS,
    take_over: bool = False,
    observers: Sequence[Observer] = (),
    announce: Announce | None = None,
) -> LaunchResult:
    """Train the winners of a study and the baselines with new seeds, and measure them on the test split.

    An ablation trains the path from a baseline to one trial in the same way. A confirmation is a study of its own in
    the ledger, with every trial recorded before the first begins; no trial is pruned. A stopped one is continued, a
    finished one is left unchanged.

    Args:
        request: Request of the confirmation.
        storage_url: URL of the storage.
        observer: Function that receives the progress about twice a second.
        factory: Factory of the workers' runners; None to train the study's task on its backbone.
        lease_seconds: Seconds of silence after which a worker has lost its trials.
        take_over: See `studies.launch.launch.launch`.
        observers: See `studies.launch.launch.launch`.
        announce: Function that receives the dropped rows and cut texts before any work begins.

    Raises:
        StudiesError: If the study cannot be confirmed, or the launch cannot continue.
        RunnerError: If the backbone or the task cannot be loaded.
    """
    storage_url = absolute_url(storage_url)
    with Ledger.open(storage_url, create=False) as ledger:
        parent = _searched(ledger, request.study)
        existing = _existing(ledger, parent, request)
        instead_of = replaceable_holder(request.confirmation, ledger, take_over=take_over)
        counts = {} if existing is None else ledger.state_counts(existing.id)
        if existing is not None and all(state.is_terminal or not count for state, count in counts.items()):
            _record_comparisons(ledger, existing)
            total = sum(counts.values())
            reason = f"already finished: all {total} trials have ended"
            return LaunchResult(study=existing, finished=True, reason=reason)
        specification = _specification(parent, request.fleet)
        space = space_of(specification, parent.budget_parameters)
        check_table(parent, space.shape)
        if factory is None:  # whatever is wrong with the task is said now
            check_gpu(specification.fleet)
            task = prepared(specification)
            inputs = InputDigest.of(task, specification.backbone.name)
            specification = specification.model_copy(update={"inputs": inputs})
            said = [*task.losses]
            for study in (parent, *([existing] if existing is not None else ())):
                said += recorded_with_inputs(ledger, study, inputs, otherwise="launch a study of another name")[1]
            if announce is not None:
                announce(said)
            parent = ledger.study(parent.name)
        new = _new(ledger, parent, request, space) if existing is None else None
        study = ledger.study(request.confirmation) if new is None else ledger.create_study(*new)
        target_trials = sum(ledger.state_counts(study.id).values())
        plan = confirmation_plan(specification, study, space, storage_url=storage_url, target_trials=target_trials)
        plan = replace(plan, lease_seconds=lease_seconds)
        found = run_fleet(
            specification,
            study,
            plan,
            ledger,
            factory=factory,
            observer=observer,
            observers=observers,
            instead_of=instead_of,
        )
        if found.finished:
            _record_comparisons(ledger, study)
    return found


def _record_comparisons(ledger: Ledger, study: StudyRecord) -> None:
    """Record the comparisons of a finished confirmation once, for SQL queries."""
    contenders = ledger.confirmation(study).contenders
    if all(one.comparison is None for one in contenders):
        found = comparisons_of(confirmation_result(ledger, study.name))
        told = {label: comparison.entry() for label, comparison in found.items()}
        ledger.set_contenders(study.id, [replace(one, comparison=told.get(one.label)) for one in contenders])


def _searched(ledger: Ledger, name: str) -> StudyRecord:
    """Return the study, unless it is a confirmation.

    Raises:
        ConfirmationError: If it is one.
    """
    study = ledger.study(name)
    if study.kind is StudyKind.CONFIRMATION:
        raise ConfirmationError(
            f"a confirmed study must be a search study; got '{name}', a confirmation of "
            f"'{ledger.confirmation(study).study}'. Confirm that one."
        )
    return study


def _specification(parent: StudyRecord, fleet: Mapping[str, object]) -> BegunSpecification:
    """Return the study file of a study with another fleet; its files are placed beside the study's own.

    Raises:
        ConfirmationError: If the study was recorded by another release.
        SpecificationError: If the fleet is not valid, or the task's folder is missing.
    """
    try:
        begun = BegunSpecification.from_json(parent.specification)
    except ValidationError:
        raise ConfirmationError(
            f"cannot read the study file of '{parent.name}': it is of another release. "
            "Use the release that launched it."
        ) from None
    own = {key: value for key, value in begun.as_json().items() if key not in FOUND_OUT}
    recorded = own["fleet"] if isinstance(own["fleet"], dict) else {}
    folder = own_folder(parent)
    beside = None if folder is None else str(folder.parent)
    own["fleet"] = {**recorded, "time_budget": None, "artefacts": beside, **fleet}
    specification = specification_from_mapping(own, origin=f"the confirmation of '{parent.name}'")
    return BegunSpecification.of(specification, begun)


def _existing(ledger: Ledger, parent: StudyRecord, request: Request) -> StudyRecord | None:
    """Return the confirmation of the request's name; None if there is none.

    Raises:
        ConfirmationError: If another study has the name.
        StudyChangedError: If it was begun with other arguments.
    """
    found = next((study for study in ledger.studies() if study.name == request.confirmation), None)
    if found is None:
        return None
    if found.parent_id != parent.id:
        raise ConfirmationError(
            f"the name of a confirmation must be unique; got '{found.name}', another study's. Choose one with --name."
        )
    recorded, asked = ledger.confirmation(found).fixed_arguments, request.fixed_arguments(parent)
    asked = {name: recorded.get(name) if value is None else value for name, value in asked.items()}
    changes = difference(recorded, asked)
    if changes:
        raise StudyChangedError(
            f"confirmation '{found.name}' exists with other arguments, below. "
            "Use the same, or begin another one with --name:\n" + "\n".join(f"  {change}" for change in changes)
        )
    return found


def _new(
    ledger: Ledger, parent: StudyRecord, request: Request, space: SearchSpace
) -> tuple[NewStudy, list[TrialRecord], ConfirmationRecord]:
    """Return a new confirmation, its trials and its record.

    Raises:
        ConfirmationError: If the study has no complete trial.
    """
    trials = ledger.trials(parent.id)
    if not any(trial.state is TrialState.COMPLETE for trial in trials):
        raise ConfirmationError(
            f"study '{parent.name}' must have a complete trial; got none among {len(trials)}. Launch it again."
        )
    entries, left_out = _entries(ledger, parent, request, space, trials)
    scores, found = mean_scores(trials), [entry.contender for entry in entries]
    record = ConfirmationRecord(
        study=parent.name,
        top=request.top,
        against=entries[-1].contender.baselines if isinstance(request, AblationRequest) else request.against,
        seeds=_seeds(parent, request, trials),
        contenders=tuple(
            one if one.trial is None else replace(one, validation_score=scores.get(one.trial)) for one in found
        ),
        left_out=left_out,
        most_parameters=request.most_parameters(parent),
    )
    planned = trials_of(entries, record.seeds)
    specification = {**parent.specification, "name": request.confirmation, "trials": len(planned)}
    own = {"name": request.confirmation, "kind": StudyKind.CONFIRMATION, "parent_id": parent.id}
    inherited = {one.name: getattr(parent, one.name) for one in fields(NewStudy)}
    return NewStudy(**inherited | own | {"specification": specification}), planned, record


def _entries(
    ledger: Ledger, parent: StudyRecord, request: Request, space: SearchSpace, trials: list[TrialRecord]
) -> tuple[list[ContenderEntry], dict[str, str]]:
    """Return the entries to train, and reasons for missing baselines by name.

    Raises:
        ConfirmationError: If the ends of a path are equal or missing, or if no complete trial is small enough.
        BudgetError: If a size cannot be parsed.
        StudiesError: If too few trials are measured to find a path.
    """
    estimates = estimates_of(ledger, parent, trials)
    if isinstance(request, AblationRequest):
        knowledge = knowledge_of(ledger, parent.name, lambda _: space)
        return path_entries(request, trials, space, knowledge.expected, estimates), {}
    most = request.most_parameters(parent)
    return contender_entries(trials, space, top=request.top, against=request.against, estimates=estimates, most=most)


def _seeds(parent: StudyRecord, request: Request, trials: list[TrialRecord]) -> tuple[int, ...]:
    """Return seeds that neither trials of the study nor other confirmations use."""
    used = {trial.seed for trial in trials}
    fresh: list[int] = []
    place = 0
    while len(fresh) < request.seeds:
        seed = hashed_seed("confirm", parent.name, parent.seed, request.confirmation, place, bits=_SEED_BITS)
        place += 1
        if seed not in used:
            used.add(seed)
            fresh.append(seed)
    return tuple(fresh)


def confirmation_plan(
    specification: BegunSpecification, study: StudyRecord, space: SearchSpace, *, storage_url: str, target_trials: int
) -> StudyPlan:
    """Return the keeper's plan: nothing is proposed or pruned, and the test split is measured once at the end."""
    training = specification.training_plan()
    return StudyPlan(
        study=study.name,
        storage_url=storage_url,
        target_trials=target_trials,
        space=space,
        sampler="random",
        initial_design=InitialDesign(),
        seed=study.seed,
        training=replace(training, evaluate_at_steps=(training.steps,), measured_split="test"),
        head_parameters=0,
        rungs=RungPlan(steps=()),
        artefacts=study_folder(specification.artefact_folder(), study),
    )
