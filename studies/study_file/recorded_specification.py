"""Recorded study file of a study, with the values that its launch added."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Self

from pydantic import ValidationError
from pydantic.dataclasses import dataclass

from search_space.backbones import family_of_shape, shape_of
from search_space.backbones.declared import declared_family_of, table_sha256
from search_space.backbones.shape import BackboneShape
from search_space.space.space import SearchSpace
from studies.errors import InvalidRequestError, StudiesError, StudyChangedError
from studies.pruning.rungs import Rule
from studies.records import StudyKind, StudyRecord
from studies.search.initial_design import InitialDesign
from studies.search.warm_start import WarmStart
from studies.study_file.study import FOUND_OUT, Specification
from trial_runner.backbones import config_of
from trial_runner.tasks.input_digest import InputDigest
from trial_runner.tasks.kind import Cut
from trial_runner.tasks.splits import Dropped

_TRANSFORMERS = "transformers"
FORMER_RULES = ("significance", "chance")


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTable:
    """Identity of a table of ports that was made of a backbone without a family.

    Attributes:
        sha256: Hash of its ports and sizes.
        transformers: Release of transformers that gave the model.
    """

    sha256: str
    transformers: str

    @classmethod
    def of(cls, shape: BackboneShape) -> "MadeTable | None":
        """Return the table of a backbone; None if its family has a table of its own."""
        return (
            None
            if declared_family_of(shape) is None
            else cls(sha256=_sha256(shape), transformers=version(_TRANSFORMERS))
        )

    def check(self, shape: BackboneShape, study: str) -> None:
        """Refuse a backbone whose table has changed.

        Raises:
            StudyChangedError: If it has, since its edits would be at other places now.
        """
        if _sha256(shape) != self.sha256:
            raise StudyChangedError(
                f"study '{study}' must keep the table of ports that was made of its {shape.family} backbone when it "
                f"was begun, with transformers {self.transformers}; {version(_TRANSFORMERS)} gives another. Install "
                "that release, or begin another study."
            )


def _sha256(shape: BackboneShape) -> str:
    return table_sha256(shape, family_of_shape(shape).ports(shape))


class BegunSpecification(Specification):
    """Study file of a study as it was begun, with the values that its launch added.

    Attributes:
        lessons: Knowledge from earlier studies, fixed when the study is begun.
        made_table: Table of ports that was made of a backbone without a family. With another one the study is neither
            continued, nor confirmed, nor exported.
        inputs: Digest of the data and the backbone. With others the study is neither continued, nor confirmed, nor
            exported. None if no launch has recorded it.
        dropped: Counts of the rows that are not used, by split and reason.
        cuts: Counts of the texts that are cut to the largest lengths.
    """

    lessons: WarmStart | None = None
    made_table: MadeTable | None = None
    inputs: InputDigest | None = None
    dropped: tuple[Dropped, ...] = ()
    cuts: tuple[Cut, ...] = ()

    @classmethod
    def of(cls, specification: Specification, begun: "BegunSpecification | None" = None) -> "BegunSpecification":
        """Return a study file with the values that its launch added."""
        own = {name: getattr(specification, name) for name in Specification.model_fields}
        found = {} if begun is None else {name: getattr(begun, name) for name in FOUND_OUT}
        return cls.model_construct(**own, **(found | {"inputs": None}))  # each launch reads its own

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Self:
        """Return a recorded study file; a rule of pruning that earlier releases had becomes ``median``."""
        pruning = stored.get("pruning")
        if isinstance(pruning, Mapping) and pruning.get("rule") in FORMER_RULES:
            stored = {**stored, "pruning": {**pruning, "rule": Rule.MEDIAN.value}}
        return super().from_json(stored)

    @property
    def initial_design(self) -> InitialDesign:
        """Initial design of the study."""
        warm_start = self.lessons or WarmStart()
        points = self.space_options.published_points
        return InitialDesign(
            published=tuple(point for point in points if point not in warm_start.replaced), warm_start=warm_start
        )


def recorded_specification(study: StudyRecord) -> BegunSpecification:
    """Return the recorded study file of a search study.

    Raises:
        StudiesError: If the study is a confirmation, or was recorded by a release with other keys.
    """
    if study.kind is not StudyKind.SEARCH:
        raise InvalidRequestError(
            f"'{study.name}' must be a study that searches; it is a confirmation. Name its study."
        )
    return begun_specification(study)


def begun_specification(study: StudyRecord) -> BegunSpecification:
    """Return the recorded study file of a study of either kind.

    Raises:
        StudiesError: If it was recorded by a release with other keys.
    """
    try:
        return BegunSpecification.from_json(study.specification)
    except ValidationError as error:
        raise StudiesError(
            f"study '{study.name}' must have a study file that this release can read; {error.error_count()} of its "
            "keys are not known or not valid. Use the release that wrote it."
        ) from error


def recorded_space(study: StudyRecord) -> SearchSpace:
    """Return the search space of a recorded study.

    Raises:
        StudiesError: If the study is a confirmation, or was recorded by a release with other keys.
        RunnerError: If its backbone cannot be loaded.
    """
    options = recorded_specification(study).space_options
    return SearchSpace(shape=shape_of(config_of(study.backbone)), budget=study.budget_parameters, options=options)
