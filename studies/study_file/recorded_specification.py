"""The study file that a study of the ledger was begun with, and what the launch found out then."""

from importlib.metadata import version

from pydantic import ValidationError
from pydantic.dataclasses import dataclass

from search_space.backbones import family_of_shape, shape_of
from search_space.backbones.declared import declared_family_of, table_sha256
from search_space.backbones.shape import BackboneShape
from search_space.space.space import SearchSpace
from studies.errors import StudiesError, StudyChangedError, WishError
from studies.records import StudyKind, StudyRecord
from studies.search.initial_design import InitialDesign
from studies.search.warm_start import WarmStart
from studies.study_file.study import FOUND_OUT, Specification
from trial_runner.backbones import config_of
from trial_runner.tasks.input_digest import InputDigest
from trial_runner.tasks.kind import Cut
from trial_runner.tasks.splits import Dropped

_TRANSFORMERS = "transformers"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTable:
    """Which table it is.

    Attributes:
        sha256: Of its ports and sizes.
        transformers: The release that gave the model it was made of.
    """

    sha256: str
    transformers: str

    @classmethod
    def of(cls, shape: BackboneShape) -> "MadeTable | None":
        """That of a backbone; None where its family has a table of its own."""
        return (
            None
            if declared_family_of(shape) is None
            else cls(sha256=_sha256(shape), transformers=version(_TRANSFORMERS))
        )

    def check(self, shape: BackboneShape, study: str) -> None:
        """See that a backbone has it still.

        Raises:
            StudyChangedError: If its edits would be at other places now.
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
    """A study file as its study was begun with it, and what the launch found out then.

    Attributes:
        lessons: What was learned from earlier studies; continuing changes nothing in it, whatever has become of them.
        made_table: Which table of ports was made of a backbone of no family; with another the study is neither
            continued, nor confirmed, nor exported.
        inputs: Digest of the data and the backbone that its trials read; with others the study is neither continued,
            nor confirmed, nor exported. None where no launch has recorded it.
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
        """Return a study file with what was found out when its study was begun."""
        own = {name: getattr(specification, name) for name in Specification.model_fields}
        found = {} if begun is None else {name: getattr(begun, name) for name in FOUND_OUT}
        return cls.model_construct(**own, **(found | {"inputs": None}))  # each launch reads its own

    @property
    def initial_design(self) -> InitialDesign:
        """Initial design of the study."""
        warm_start = self.lessons or WarmStart()
        points = self.space_options.published_points
        return InitialDesign(
            published=tuple(point for point in points if point not in warm_start.replaced), warm_start=warm_start
        )


def recorded_specification(study: StudyRecord) -> BegunSpecification:
    """The study file of a study that searches.

    Raises:
        StudiesError: If the study is a confirmation, or was recorded by a release with other keys.
    """
    if study.kind is not StudyKind.SEARCH:
        raise WishError(f"'{study.name}' must be a study that searches; it is a confirmation. Name its study.")
    return specification_of(study)


def specification_of(study: StudyRecord) -> BegunSpecification:
    """The study file of a study of either kind.

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
    """What a study of the ledger may propose.

    Raises:
        StudiesError: If the study is a confirmation, or was recorded by a release with other keys.
        RunnerError: If its backbone cannot be had.
    """
    options = recorded_specification(study).space_options
    return SearchSpace(shape=shape_of(config_of(study.backbone)), budget=study.budget_parameters, options=options)
