"""Study of a study file's name: created, continued, or refused."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from search_space.backbones.shape import BackboneShape
from search_space.space.space import SearchSpace
from studies.errors import (
    InvalidRequestError,
    SchemaVersionError,
    StorageError,
    StudiesError,
    StudyChangedError,
    UnknownStudyError,
)
from studies.inputs import input_differences, recorded_with_inputs
from studies.ledger.ledger import Ledger
from studies.maintenance import delete_study
from studies.records import NewStudy, StudyKind, StudyRecord, TrialRecord
from studies.study_file import Specification, specification_of
from studies.study_file.parser import example_names, is_name
from studies.study_file.recorded_specification import BegunSpecification, MadeTable, begun_specification

_ABSENT = object()


def requested(
    study: Specification | Mapping[str, object] | Path | str, overrides: Mapping[str, object] | None, storage_url: str
) -> Specification:
    """Return the specification of a study to launch.

    The name of a study of the storage stands for its recorded study file, with as many trials as it has or more. A file
    and a shipped example of that name come first, unless the study was begun with other settings than the example's.

    Args:
        study: Study file, name of a study or of a shipped example, mapping with the keys of a study file, or
            specification.
        overrides: Values by key path, such as ``trials``.
        storage_url: URL of the storage.

    Raises:
        SpecificationError: If there is no such study, or it is not valid.
        InvalidRequestError: If the name is that of a confirmation.
    """
    if not isinstance(study, str) or not is_name(study):
        return specification_of(study, overrides)
    try:
        with existing_ledger(storage_url, read_only=True) as ledger:
            record = ledger.study(study)
            count = sum(ledger.state_counts(record.id).values())
    except (StorageError, UnknownStudyError):
        return specification_of(study, overrides)
    if study in example_names():
        example = specification_of(study, overrides)
        if not _changes(example, record):
            return example
    elif record.kind is StudyKind.CONFIRMATION:
        raise InvalidRequestError(
            f"'{study}' must be a study that searches; it is a confirmation. Use 'deltaspace confirm'."
        )
    known = begun_specification(record)
    recorded = Specification.from_json(known.as_json())
    return specification_of(recorded, {"trials": max(known.trials, count), **(overrides or {})})


def existing_ledger(storage_url: str, *, read_only: bool = False) -> Ledger:
    """Return the open ledger of a storage with studies; tables of an earlier version are upgraded.

    Raises:
        StorageError: If there are no studies yet, or they cannot be read.
    """
    try:
        return Ledger.open(storage_url, create=False, read_only=read_only)
    except SchemaVersionError:
        return Ledger.open(storage_url)


def as_begun(specification: Specification, ledger: Ledger) -> BegunSpecification:
    """Return the study file with which the study of its name continues, if there is one; nothing is created.

    A study without a begun trial is ignored: `create_or_continue` replaces it.

    Raises:
        StudyChangedError: One line per key that differs.
        InvalidRequestError: If it is not a search study.
    """
    try:
        study = ledger.study(specification.name)
    except UnknownStudyError:
        return BegunSpecification.of(specification)
    if _changes(specification, study):
        _refuse_change(specification, study, ledger.trials(study.id))
        return BegunSpecification.of(specification)
    begun = BegunSpecification.from_json(study.specification)
    return BegunSpecification.of(specification, begun)


def _changes(specification: Specification, study: StudyRecord) -> list[str]:
    """Return the settings of a search study that differ from the study file, a line each.

    Raises:
        InvalidRequestError: If it is not a search study.
    """
    if study.kind is StudyKind.CONFIRMATION:
        raise InvalidRequestError(
            f"the name of a study must be unique; got '{study.name}', a confirmation. Choose another, or continue it "
            "with: deltaspace confirm."
        )
    try:
        begun_with = BegunSpecification.from_json(study.specification).search_identity()
    except ValidationError:
        begun_with = dict(study.specification)
    return difference(begun_with, specification.search_identity())


def _refuse_change(specification: Specification, study: StudyRecord, trials: Sequence[TrialRecord]) -> None:
    """Check that a study with a begun trial has the settings of the study file.

    Raises:
        StudyChangedError: If it has others; one line per key.
        InvalidRequestError: If it is not a search study.
    """
    changes = _changes(specification, study)
    if changes and _have_begun(trials):
        count = f"{len(trials)} trial{'s' if len(trials) != 1 else ''}"
        raise StudyChangedError(
            f"Study '{study.name}' exists ({count}) with other settings, below. Delete it (deltaspace delete "
            f"{study.name}) or pass --set name=…:\n" + "\n".join(f"  {change}" for change in changes)
        )


def _have_begun(trials: Sequence[TrialRecord]) -> bool:
    return any(trial.attempt for trial in trials)


def create_or_continue(
    specification: BegunSpecification, ledger: Ledger, shape: BackboneShape
) -> tuple[StudyRecord, list[str]]:
    """Return the study of a study file's name, created if necessary, and lines on the changes made to it.

    A study with other settings or data is replaced if no trial of it has begun.

    Raises:
        StudyChangedError: If settings, data or backbone have changed; names them.
        StudyHeldError: If it would be replaced, and another launch runs it.
        LaunchError: If it is not a search study.
    """
    study = next((one for one in ledger.studies() if one.name == specification.name), None)
    said: list[str] = []
    changes = [] if study is None else _all_changes(specification, study)
    if study is not None and changes and not _have_begun(ledger.trials(study.id)):
        delete_study(ledger, study.name)
        said, study = [f"study '{study.name}' had no trials and was replaced: {'; '.join(changes)}."], None
    if study is None:
        try:
            return ledger.create_study(new_study(specification, shape)), said
        except StudiesError:
            if all(other.name != specification.name for other in ledger.studies()):
                raise
            study = ledger.study(specification.name)  # another launch has just begun it
    _refuse_change(specification, study, ledger.trials(study.id))
    check_table(study, shape)
    if specification.inputs is None:
        return study, said
    return recorded_with_inputs(ledger, study, specification.inputs, otherwise="choose another name")


def _all_changes(specification: BegunSpecification, study: StudyRecord) -> list[str]:
    """Return the settings that differ, and the changes of the data and the backbone."""
    inputs = specification.inputs
    found = {} if inputs is None else input_differences(study, inputs)
    return [*_changes(specification, study), *found.values()]


def check_table(study: StudyRecord, shape: BackboneShape) -> None:
    """Check that the backbone's table of ports is the one with which the study was begun.

    Raises:
        StudyChangedError: If it is another one.
    """
    with suppress(ValidationError):
        begun_with = BegunSpecification.from_json(study.specification).made_table
        if begun_with is not None:
            begun_with.check(shape, study.name)


def new_study(specification: BegunSpecification, shape: BackboneShape) -> NewStudy:
    """Return a study on a backbone before it is recorded."""
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


def with_warm_start(specification: BegunSpecification, ledger: Ledger, space: SearchSpace) -> BegunSpecification:
    """Return the study file of a new study with its warm start from earlier studies of a ledger.

    An existing warm start stays unchanged.

    Raises:
        UnknownStudyError: If there is no study of a given name.
        LaunchError: If one of them cannot be used.
    """
    search = specification.search
    if search.learn_from == "none" or specification.lessons is not None:
        return specification
    from studies.analysis.sources import named_sources, related_sources
    from studies.search.transfer import warm_start_from

    if isinstance(search.learn_from, str):
        sources = related_sources(ledger, family=space.shape.family, metric=specification.task.metric)
    else:
        sources = named_sources(ledger, search.learn_from)
    lessons = warm_start_from(sources, space, replaceable=specification.replaceable)
    return specification.model_copy(update={"lessons": lessons})


def difference(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Return one line per key that differs, such as ``training.steps: 200 -> 300``, in the order of the keys."""
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
