"""The study file that a study of the ledger was begun with."""

from pydantic import ValidationError

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.errors import StudiesError, WishError
from studies.records import StudyKind, StudyRecord
from studies.specification import Specification
from trial_runner.backbones import config_of


def recorded_specification(study: StudyRecord) -> Specification:
    """The study file of a study that searches.

    Raises:
        StudiesError: If the study is a confirmation, or was recorded by a release with other keys.
    """
    if study.kind is not StudyKind.SEARCH:
        raise WishError(f"'{study.name}' must be a study that searches; it is a confirmation. Name its study.")
    try:
        return Specification.from_json(study.specification)
    except ValidationError as error:
        raise StudiesError(
            f"study '{study.name}' must have a study file that this release can read; {error.error_count()} of its "
            "keys are not known or not valid. Use the release that wrote it."
        ) from error


def recorded_space(study: StudyRecord) -> SearchSpace:
    """What a study of the ledger may propose.

    Raises:
        StudiesError: If the study is a confirmation, or was recorded by a release with other keys.
        RunnerError: If its backbone cannot be had.
    """
    options = recorded_specification(study).search
    return SearchSpace(shape=shape_of(config_of(study.backbone)), budget=study.budget_parameters, options=options)
