"""The study file and the study of its name: begun with it, continued with it, or refused."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress

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
from studies.ledger.ledger import Ledger
from studies.records import NewStudy, StudyKind, StudyRecord
from studies.study_file import Specification
from studies.study_file.recorded_specification import BegunSpecification, MadeTable

_ABSENT = object()


def as_begun(specification: Specification, storage_url: str) -> BegunSpecification:
    """The study file as it continues the study of its name, if there is one; nothing is created.

    Raises:
        StudyChangedError: With one line per key that differs.
        WishError: If it is no study that searches.
    """
    try:
        study = _begun(specification.name, storage_url)
    except (StorageError, UnknownStudyError):
        # nothing there yet, or nothing readable: that is said when it is opened for writing
        return BegunSpecification.of(specification)
    _refuse_change(specification, study)
    begun = BegunSpecification.from_json(study.specification)
    return BegunSpecification.of(specification, lessons=begun.lessons, made_table=begun.made_table)


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
        begun_with = BegunSpecification.from_json(study.specification).search_identity()
    except ValidationError:
        begun_with = dict(study.specification)
    changes = difference(begun_with, specification.search_identity())
    if changes:
        raise StudyChangedError(
            f"study '{study.name}' must be continued with the study file it was begun with; got other values. "
            "Restore them, or choose another name:\n" + "\n".join(f"  {change}" for change in changes)
        )


def create_or_continue(specification: BegunSpecification, ledger: Ledger, shape: BackboneShape) -> StudyRecord:
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
        begun_with = BegunSpecification.from_json(study.specification).made_table
        if begun_with is not None:
            begun_with.check(shape, study.name)


def new_study(specification: BegunSpecification, shape: BackboneShape) -> NewStudy:
    """A study on a backbone, before it is recorded."""
    specification = specification.model_copy(update={"made_table": MadeTable.of(shape)})
    return NewStudy(
        name=specification.name,
        specification=specification.as_json(),
        backbone=specification.backbone.name,
        backbone_parameters=shape.parameters,
        budget_parameters=specification.budget_parameters(shape),
        metric=specification.task.metric,
        seed=specification.seed,
    )


def taught(specification: BegunSpecification, ledger: Ledger, space: SearchSpace) -> BegunSpecification:
    """The study file of a study that is begun, with what it learns from earlier ones of a ledger.

    What it has learned already stays, whatever has become of them.

    Raises:
        UnknownStudyError: If there is no study of a name that it should learn from.
        LaunchError: If one of them cannot be learned from.
    """
    search = specification.search
    if search.learn_from == "none" or specification.lessons is not None:
        return specification
    from studies.analysis.sources import named_sources, related_sources
    from studies.search.transfer import lessons_of

    if isinstance(search.learn_from, str):
        sources = related_sources(ledger, family=space.shape.family, metric=specification.task.metric)
    else:
        sources = named_sources(ledger, search.learn_from)
    lessons = lessons_of(sources, space, replaceable=specification.replaceable)
    return specification.model_copy(update={"lessons": lessons})


def difference(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """One line per key that differs, such as ``training.steps: 200 -> 300``, in the order of the keys."""
    before, after = dict(_leaves(old)), dict(_leaves(new))
    return [
        f"{key}: {_text(before.get(key, _ABSENT))} -> {_text(after.get(key, _ABSENT))}"
        for key in {**before, **after}
        if before.get(key, _ABSENT) != after.get(key, _ABSENT)
    ]


def _leaves(mapping: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in mapping.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", list(value) if isinstance(value, tuple) else value


def _text(value: object) -> str:
    return "(absent)" if value is _ABSENT else json.dumps(value, default=str, ensure_ascii=False)
