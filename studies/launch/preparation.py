"""Preparation of a launch: the tokenized task, the initial design, the plan of the keeper."""

from dataclasses import replace

from search_space.backbones import shape_of
from search_space.published import HEAD_ONLY
from search_space.space.space import SearchSpace
from studies.errors import LaunchError
from studies.ledger.engine import StorageAddress
from studies.records import StudyRecord
from studies.resource_estimates.noise import is_share
from studies.runtime.artefacts import study_folder
from studies.runtime.replicates import replicate_count
from studies.runtime.study_plan import StudyPlan
from studies.search.initial_design import InitialDesign
from studies.study_file import Specification
from studies.study_file.recorded_specification import BegunSpecification
from trial_runner.backbones import config_of
from trial_runner.port_discovery.proof import ensure_supported
from trial_runner.tasks import prepared_for
from trial_runner.tasks.kind import Prepared


def prepared(specification: Specification) -> Prepared:
    """Return the task of a study in tokens of its backbone."""
    return prepared_for(specification.task, specification.backbone.name)


def space_of(specification: Specification, budget: int | None = None) -> SearchSpace:
    """Return the search space of a study; a backbone of an unknown family is analyzed first.

    Args:
        specification: Study file.
        budget: Largest number of parameters; None for that of the study file.
    """
    ensure_supported(specification.backbone.name)
    shape = shape_of(config_of(specification.backbone.name))
    most = specification.budget_parameters(shape) if budget is None else budget
    return SearchSpace(shape=shape, budget=most, options=specification.space_options)


def initial_design_of(specification: BegunSpecification, task: Prepared | None) -> InitialDesign:
    """Return the initial design of a study, without the task head alone where texts are generated.

    Raises:
        LaunchError: If it is listed explicitly there.
    """
    initial_design = specification.initial_design
    if task is None or task.labels or HEAD_ONLY.name not in initial_design.published:
        return initial_design
    if not isinstance(specification.search.published, str):
        raise LaunchError(
            f"search.published must list trainable methods; {HEAD_ONLY.name} has no task head to train where texts "
            "are generated. Leave it out."
        )
    return replace(initial_design, published=tuple(one for one in initial_design.published if one != HEAD_ONLY.name))


def absolute_url(storage_url: str) -> str:
    """Return the URL independent of the working directory."""
    file = StorageAddress.parse(storage_url).file
    return storage_url if file is None else f"sqlite:///{file}"


def plan_of(
    specification: BegunSpecification,
    study: StudyRecord,
    space: SearchSpace,
    *,
    storage_url: str,
    task: Prepared | None = None,
) -> StudyPlan:
    """Return the keeper's plan of a recorded study.

    Args:
        specification: Study file.
        study: Record of the study.
        space: Search space.
        storage_url: URL of the storage.
        task: Task with the size of the head, the noise of scores and the score of a constant prediction; None if
            unknown.

    Raises:
        LaunchError: If the folder of artefacts cannot be written.
    """
    rungs = specification.rung_plan()
    if task is not None:
        examples = len(task.splits["validation"]) if is_share(task.metric) else None
        rungs = replace(specification.rung_plan(examples), guessing_loss=task.guessing_loss)
    return StudyPlan(
        study=study.name,
        storage_url=storage_url,
        target_trials=specification.trials,
        space=space,
        sampler=specification.search.sampler,
        initial_design=initial_design_of(specification, task),
        seed=specification.seed,
        training=specification.training_plan(),
        head_parameters=0 if task is None else len(task.labels) * (space.shape.width + 1),
        rungs=rungs,
        artefacts=study_folder(specification.artefact_folder(), study),
        goal=specification.goal(study.budget_parameters),
        constant_score=None if task is None else task.constant_score,
        repeats_early=specification.search.replicates == "auto",
        replicates=replicate_count(specification.search.replicates, specification.trials),
    )
