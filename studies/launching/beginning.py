"""The study file and the study of its name: begun with it, continued with it, or refused."""

from contextlib import suppress
from dataclasses import replace

from pydantic import ValidationError

from search_space.backbones.shape import BackboneShape
from search_space.space.space import SearchSpace
from studies.errors import (
    SchemaVersionError,
    StorageError,
    StudiesError,
    StudyChangedError,
    UnknownStudyError,
    WishError,
)
from studies.records import NewStudy, StudyKind, StudyRecord
from studies.specification import Specification, difference
from studies.specification.made_table import MadeTable
from studies.store.ledger import Ledger


def as_begun(specification: Specification, storage_url: str) -> Specification:
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


def create_or_continue(specification: Specification, ledger: Ledger, shape: BackboneShape) -> StudyRecord:
    """The study of a study file's name, recorded if there is none.

    Raises:
        StudyChangedError: With one line per key that differs.
        LaunchError: If it is no study that searches.
    """
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
    check_table(study, shape)
    return study


def check_table(study: StudyRecord, shape: BackboneShape) -> None:
    """Go on only with the table of ports that a study of the ledger was begun with, where one was made.

    Raises:
        StudyChangedError: If another was made by now.
    """
    with suppress(ValidationError):
        begun_with = Specification.from_json(study.specification).search.made_table
        if begun_with is not None:
            begun_with.check(shape, study.name)


def new_study(specification: Specification, shape: BackboneShape) -> NewStudy:
    """A study on a backbone, before it is recorded."""
    search = replace(specification.search, made_table=MadeTable.of(shape))
    specification = specification.model_copy(update={"search": search})
    return NewStudy(
        name=specification.name,
        specification=specification.as_json(),
        backbone=specification.backbone.name,
        backbone_parameters=shape.parameters,
        budget_parameters=specification.parameter_budget().parameters(shape),
        metric=specification.task.metric,
        seed=specification.seed,
    )


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
