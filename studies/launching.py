"""Launches a study: checks everything, then creates or continues it and runs its workers to the end."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import ValidationError

from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.published.whole_model import HEAD_ONLY
from search_space.space.space import SearchSpace
from studies.errors import (
    SchemaVersionError,
    StorageError,
    StudiesError,
    StudyChangedError,
    StudyHeldError,
    UnknownStudyError,
    WishError,
)
from studies.fleet import BACKENDS
from studies.fleet.backend import Observer, RunnerFactory, Watch, options_of
from studies.fleet.interrupts import Interrupts
from studies.fleet.runners import TorchRunnerFactory
from studies.foresight.data import data_facts
from studies.foresight.noise import noise_warning_of
from studies.keeping.artefacts import study_folder
from studies.keeping.occupying import current_holder, occupied, placed, replaceable, running_launch
from studies.keeping.plan import StudyPlan
from studies.keeping.progress import Progress, Standing
from studies.keeping.replicates import replicate_count
from studies.observing import Observer as TrialObserver
from studies.observing import Telling
from studies.outlook import outlook
from studies.search.opening import Opening
from studies.specification import Specification, difference
from studies.store.address import StorageAddress
from studies.store.files import lost_weights
from studies.store.holding import LaunchName
from studies.store.ledger import LEASE_SECONDS, Ledger
from studies.store.records import NewStudy, StudyKind, StudyRecord
from studies.store.roles import superuser
from trial_runner.backbones import config_of, load_tokenizer, position_limit, tokenizer_id
from trial_runner.tasks import METRICS, prepare_task
from trial_runner.tasks.kind import Prepared

Announce = Callable[[Sequence[str]], None]

_MOST_NAMED = 10
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchResult:
    """How a launch ended.

    Attributes:
        finished: Whether nothing is left to do; else launching again continues.
        reason: One phrase for people.
        is_interrupted: Whether a signal of the user ended it before it was finished.
        complaints: Which observers raised, a line each; they were told nothing more.
    """

    study: StudyRecord
    finished: bool
    reason: str
    is_interrupted: bool = False
    complaints: tuple[str, ...] = ()


def launch(  # noqa: PLR0913 - one argument per wish
    specification: Specification,
    *,
    storage_url: str,
    observer: Observer | None = None,
    announce: Announce | None = None,
    factory: RunnerFactory | None = None,
    lease_seconds: float = LEASE_SECONDS,
    take_over: bool = False,
    join: bool = False,
    observers: Sequence[TrialObserver] = (),
) -> LaunchResult:
    """Run a study until it is finished, its time budget is used up, or the user interrupts it.

    Everything that can be wrong with the study is found before any work begins. A study that exists is continued.

    Args:
        observer: Shown the progress about twice a second.
        announce: Told once, before any work begins, what is worth knowing of the study (see `studies.outlook`).
        factory: Makes the workers' runners; None trains the study's task on its backbone.
        lease_seconds: A worker that is silent for so long has lost its trials.
        observers: Told of every trial and reading of this launch, see `studies.observing`.
        take_over: Whether another launch that runs the study is to stop.
        join: Whether this one works for another that runs the study, and runs it itself from when that one has ended.
            With neither of the two it is refused.

    Raises:
        StudyHeldError: If another launch runs the study and is to go on.
        StudiesError: If the study cannot be launched, or the launch cannot go on.
        SearchSpaceError: If nothing fits the budget, or the backbone's family is not supported.
        RunnerError: If the backbone or the task cannot be had.
    """
    storage_url = absolute_url(storage_url)
    specification = _as_begun(specification, storage_url)
    instead_of = None if join else _instead_of(specification.name, storage_url, take_over=take_over)
    config = config_of(specification.backbone)
    shape = shape_of(config)
    budget = specification.parameter_budget().parameters(shape)
    space = SearchSpace(shape=shape, budget=budget, options=specification.search)
    task = None if factory is not None else prepared(specification)
    labels, examples = (0, None) if task is None else (len(task.labels), _example_count(task, specification))
    with Ledger.open(storage_url) as ledger:
        specification = taught(specification, ledger, space)
        study = _create_or_continue(specification, ledger, shape)
        study = placed(study, ledger) if join else study
        counts = ledger.state_counts(study.id)
        joined = _joined(ledger, study) if join else ()
        known = () if announce is None else (*joined, *_lost(ledger, study), *_role(ledger))
    ended = sum(count for state, count in counts.items() if state.is_terminal)
    if ended >= specification.trials and ended == sum(counts.values()):
        if announce is not None:
            announce(known)
        return LaunchResult(study=study, finished=True, reason=f"already finished: all {ended} trials have ended")
    plan = plan_of(specification, study, space, storage_url=storage_url, labels=labels, examples=examples)
    rungs = replace(plan.rungs, guessing_loss=None if task is None else task.guessing_loss)
    constant = None if task is None else task.constant_score
    plan = replace(plan, rungs=rungs, lease_seconds=lease_seconds, constant_score=constant)
    plan = replace(plan, opening=opening_of(specification, task))
    if announce is not None:
        told = (*known, *_data_lines(task), *outlook(space, plan.opening, trials=specification.trials))
        announce(told)
    wishes = Wishes(factory=factory, observer=observer, observers=observers, instead_of=instead_of, join=join)
    return run_fleet(specification, study, plan, wishes)


def _lost(ledger: Ledger, study: StudyRecord) -> tuple[str, ...]:
    """What is said of trained trials whose files are gone or changed, in a line; nothing where all are there."""
    trials = [str(artefact.trial) for artefact in lost_weights(ledger, study)]
    if not trials:
        return ()
    shown = ", ".join(trials[:_MOST_NAMED]) + (" and more" if len(trials) > _MOST_NAMED else "")
    return (
        f"the weights of {len(trials)} trained trials are gone or changed: trial {shown}. "
        f"'deltaspace verify {study.name} --retrain' trains them anew, with their seeds.",
    )


def _joined(ledger: Ledger, study: StudyRecord) -> tuple[str, ...]:
    """For whom a launch works that joins, in a line."""
    present = running_launch(study.name, ledger)
    return () if present is None else (f"{present.words} runs the study; this launch works for it.",)


def _role(ledger: Ledger) -> tuple[str, ...]:
    """What is said of a role that may do more than is needed, in a line."""
    role = ledger.read(superuser)
    if role is None:
        return ()
    return (f"the role {role} is a superuser of the server; one that owns the database is enough, and safer.",)


def _instead_of(name: str, storage_url: str, *, take_over: bool) -> str | None:
    """The launch that this one may replace; see `replaceable`."""
    try:
        ledger = Ledger.open(storage_url, read_only=True)
    except StorageError:
        return None  # as in `_as_begun`
    with ledger:
        return replaceable(name, ledger, take_over=take_over)


def opening_of(specification: Specification, task: Prepared | None) -> Opening:
    """What comes first in a study. Texts have no task head that could be trained alone."""
    opening = specification.search.opening
    if task is not None and not task.labels and isinstance(specification.search.published, str):
        return opening.without(HEAD_ONLY.name)
    return opening


def _data_lines(task: Prepared | None) -> tuple[str, ...]:
    """What a launch says of the data: `deltaspace check` in short."""
    if task is None:
        return ()
    facts = data_facts(task)
    noise = noise_warning_of(facts)
    return (f"{facts.summary}.", *((noise,) if noise else ()))


def taught(specification: Specification, ledger: Ledger, space: SearchSpace) -> Specification:
    """The study file of a study that is begun, with what it learns from earlier ones of a ledger.

    What it has learned already stays, whatever has become of them.

    Raises:
        UnknownStudyError: If there is no study of a name that it should learn from.
        LaunchError: If one of them cannot be learned from.
    """
    search = specification.search
    if search.learn_from == "none" or search.lessons is not None:
        return specification
    from studies.queries.sources import named_sources, related_sources
    from studies.search.learning import lessons_of

    if isinstance(search.learn_from, str):
        sources = related_sources(ledger, family=space.shape.family, metric=specification.task.metric)
    else:
        sources = named_sources(ledger, search.learn_from)
    lessons = lessons_of(sources, space, replaceable=search.replaceable)
    return specification.model_copy(update={"search": replace(search, lessons=lessons)})


def absolute_url(storage_url: str) -> str:
    """The URL as it reads from any working directory."""
    file = StorageAddress.parse(storage_url).file
    return storage_url if file is None else f"sqlite:///{file}"


def plan_of(
    specification: Specification,
    study: StudyRecord,
    space: SearchSpace,
    *,
    storage_url: str,
    labels: int,
    examples: int | None = None,
) -> StudyPlan:
    """What a keeper is told of a study that is in the storage.

    Args:
        space: What may be proposed.
        labels: How many labels the task has; each adds a row to the task head.
        examples: Of the validation split, which tell how sure a score is; None if that is not known.

    Raises:
        LaunchError: If the folder of artefacts cannot be written.
    """
    return StudyPlan(
        study=study.name,
        storage_url=storage_url,
        target_trials=specification.trials,
        space=space,
        sampler=specification.search.sampler,
        opening=specification.search.opening,
        seed=specification.seed,
        training=specification.training_plan(),
        head_parameters=labels * (space.shape.width + 1),
        rungs=specification.rung_plan(examples),
        over_structures=specification.search.draws == "structures",
        artefacts=study_folder(specification.artefact_folder(), study),
        goal=specification.search.goal(study.budget_parameters),
        hears_losses=specification.search.hears_losses,
        stuck_seconds=specification.fleet.stuck_after or math.inf,
        replicates=replicate_count(specification.search.replicates, specification.trials),
        replicates_rival=specification.search.replicates_rival,
    )


def _look_away(progress: Progress) -> None:
    """Show nothing."""


def label_count(specification: Specification) -> int:
    """Prepare the task, so that whatever is wrong with it is said now, and count its labels."""
    return len(prepared(specification).labels)


def _example_count(task: Prepared, specification: Specification) -> int | None:
    """Examples that tell how sure a score is, where it is a share of them."""
    is_share = METRICS[specification.task.metric].bounds == (0.0, 1.0)
    return len(task.splits["validation"]) if is_share else None


def prepared(specification: Specification) -> Prepared:
    """The task of a study, in tokens of its backbone."""
    tokenizer = load_tokenizer(specification.backbone)
    config = config_of(specification.backbone)
    return prepare_task(
        specification.task,
        tokenizer,
        tokenizer_id(tokenizer),
        position_limit_tokens=position_limit(config),
        stack=shape_of(config).kind,
    )


def _as_begun(specification: Specification, storage_url: str) -> Specification:
    """The study file as it continues the study of its name, if there is one; nothing is created.

    Raises:
        StudyChangedError: With one line per key that differs.
        WishError: If it is no study that searches.
    """
    try:
        study = _begun(specification.name, storage_url)
    except (StorageError, UnknownStudyError):
        # nothing there yet, or nothing readable: that is said when it is opened for writing
        return specification
    with suppress(ValidationError):
        specification = specification.continuing(Specification.from_json(study.specification))
    _refuse_change(specification, study)
    return specification


def _begun(name: str, storage_url: str) -> StudyRecord:
    try:
        with Ledger.open(storage_url, read_only=True) as ledger:
            return ledger.study(name)
    except SchemaVersionError:
        # tables of an earlier version are brought up to date
        with Ledger.open(storage_url) as ledger:
            return ledger.study(name)


def _refuse_change(specification: Specification, study: StudyRecord) -> None:
    """Continue a study only with the study file it was begun with.

    Raises:
        StudyChangedError: With one line per key that differs.
        WishError: If it is no study that searches.
    """
    if study.kind is StudyKind.CONFIRMATION:
        raise WishError(
            f"a study needs a name of its own; '{study.name}' is a confirmation. Choose another, or continue it "
            "with: deltaspace confirm."
        )
    try:
        begun_with = Specification.from_json(study.specification).search_identity()
    except ValidationError:
        begun_with = dict(study.specification)
    changes = difference(begun_with, specification.search_identity())
    if changes:
        raise StudyChangedError(
            f"study '{study.name}' must be continued with the study file it was begun with; got other values. "
            "Restore them, or choose another name:\n" + "\n".join(f"  {change}" for change in changes)
        )


def _create_or_continue(specification: Specification, ledger: Ledger, shape: BackboneShape) -> StudyRecord:
    try:
        study = ledger.study(specification.name)
    except UnknownStudyError:
        try:
            return ledger.create_study(new_study(specification, shape))
        except StudiesError:
            if all(other.name != specification.name for other in ledger.studies()):
                raise
            study = ledger.study(specification.name)  # another launch has just begun it
    _refuse_change(specification, study)
    return study


def new_study(specification: Specification, shape: BackboneShape) -> NewStudy:
    """A study on a backbone, before it is recorded."""
    return NewStudy(
        name=specification.name,
        specification=specification.as_json(),
        backbone=specification.backbone,
        backbone_parameters=shape.parameters,
        budget_parameters=specification.parameter_budget().parameters(shape),
        metric=specification.task.metric,
        seed=specification.seed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a user wants of a launch beside what the study is.

    Attributes:
        factory: Makes the workers' runners; None trains the study's task on its backbone.
        observer: Shown the progress about twice a second; None for nobody.
        observers: Told of every trial and reading.
        instead_of: Another launch that is replaced if it runs the study; see `replaceable`.
        join: Whether the workers work for another launch while one runs the study.
    """

    factory: RunnerFactory | None = None
    observer: Observer | None = None
    observers: Sequence[TrialObserver] = ()
    instead_of: str | None = None
    join: bool = False


def run_fleet(specification: Specification, study: StudyRecord, plan: StudyPlan, wishes: Wishes) -> LaunchResult:
    """Run the workers of a study under the clock and the user's signals, until it is finished or told to stop.

    Args:
        specification: Says what the workers load, how many there are and how long they may work.
        plan: What its keeper is told.

    Raises:
        StudyHeldError: If another launch runs the study.
        StudiesError: If the launch cannot go on. Nothing is lost: launching again continues.
    """
    # open to the end: whoever closes a file last leaves it whole without its log, however the keeper has ended
    with Ledger.open(plan.storage_url, create=False) as ledger, Interrupts() as interrupts:
        telling = Telling(study, plan.storage_url, wishes.observers)
        watch = Watch(telling.beside(wishes.observer or _look_away), interrupts, specification.fleet.time_budget)
        try:
            standing = _run(specification, study, plan, wishes, watch, ledger)
        finally:
            telling.end()
    if standing.halted is not None:
        raise standing.halted
    return LaunchResult(
        study=study,
        finished=standing.is_done,
        reason=standing.summary,
        is_interrupted=bool(interrupts.reason) and not standing.is_done,
        complaints=tuple(telling.complaints),
    )


def _run(
    specification: Specification, study: StudyRecord, plan: StudyPlan, wishes: Wishes, watch: Watch, ledger: Ledger
) -> Standing:
    """Run the study, or work for the launch that does until it has ended, and so on."""
    fleet = specification.fleet
    factory = wishes.factory or TorchRunnerFactory(
        backbone=specification.backbone,
        task=specification.task,
        precision=specification.training.precision,
    )
    options = options_of(fleet)
    backend = BACKENDS[fleet.backend]
    while True:
        try:
            with occupied(study, ledger, seconds=plan.lease_seconds, instead_of=wishes.instead_of) as name:
                return backend(replace(plan, launch=name), factory, options, watch)
        except StudyHeldError:
            if not wishes.join:
                raise
        other = current_holder(study, ledger)
        name = str(LaunchName.of_this_process())
        standing = backend(replace(plan, launch=name, has_joined=True), factory, options, watch)
        if not standing.is_alone or watch.reason_to_stop():
            return standing
        while other is not None and current_holder(study, ledger) == other and not watch.reason_to_stop():
            time.sleep(_LOOK_SECONDS)
