"""Training and export of one configuration without a search or a ledger."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search_space.backbones import family_of
from search_space.backbones.shape import BackboneShape
from search_space.codec import configuration_from_json
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.errors import BudgetError, CodecError
from search_space.json_text import read_json_text
from search_space.parameter_counts.counts import count
from search_space.published.point import PublishedPoint
from search_space.space.rates import peak_lr_range
from search_space.space.space import Candidate
from studies.errors import InvalidRequestError, SpecificationError
from studies.exports.export import Export, write_export
from studies.exports.retrain import retrain
from studies.exports.source import ExportSource
from studies.search.candidates import new_trial
from studies.study_file import Specification
from studies.study_file.recorded_specification import BegunSpecification
from trial_runner.backbones import config_of

if TYPE_CHECKING:
    from trial_runner.requests import Reading

_NO_COMPARISON = "Trained once, without a search: the validation score is of one configuration and one seed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Configuration to train.

    Attributes:
        configuration: Configuration, validated on the backbone when it is counted.
        method: Published method or point; None for another configuration.
        learning_rates: Peak learning rates that it came with, of ``attention`` and ``ffn``; empty without any.
    """

    configuration: Configuration
    method: str | None
    learning_rates: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """Outcome of a training.

    Attributes:
        export: Exported weights.
        description: Short description.
        learning_rates: Peak learning rates of ``attention`` and ``ffn``; None without edits there.
        seed: Seed of initialization, data order and dropout.
        readings: Readings by step.
    """

    export: Export
    description: str
    learning_rates: Mapping[str, float | None]
    seed: int
    readings: tuple["Reading", ...]


def chosen_configuration(
    text: str, specification: Specification, shape: BackboneShape, *, is_budget_binding: bool = False
) -> Chosen:
    """Return the configuration of a user's text.

    Args:
        text: JSON file (a configuration, or the ``delta.json`` of an export), a published method, which is resized to
            the budget, or a point of fixed size such as ``lora_qv:r=8``.
        specification: Study file, whose budget resizes methods.
        shape: Shape of the backbone.
        is_budget_binding: Whether configurations of fixed size must fit the budget, too.

    Raises:
        SearchSpaceError: If there is no such method, or the configuration is not valid or exceeds the budget.
        StudiesError: If the file cannot be read.
    """
    budget = specification.budget_parameters(shape)
    if text.endswith(".json") or Path(text).is_file():
        chosen = _read_configuration(Path(text))
    else:
        point = PublishedPoint(text)
        is_free = not is_budget_binding and (point.has_fixed_size or point.trains_whole_model(shape))
        configuration = point.configuration(
            shape,
            parameters=max(budget, 2 * shape.parameters) if is_free else budget,
            scale=specification.space_options.published_scale,
        )
        chosen = Chosen(configuration=configuration, method=text, learning_rates={})
    stored = count(chosen.configuration, shape).stored
    if is_budget_binding and stored > budget:
        raise BudgetError(f"{text} must be within the budget of {budget:,} parameters; it stores {stored:,}.")
    return chosen


def _read_configuration(path: Path) -> Chosen:
    """Return the content of a JSON file: a configuration, or the facts of an export."""
    try:
        held: Any = read_json_text(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequestError(f"cannot read the configuration: {error}.") from error
    facts: Mapping[str, Any] = held if isinstance(held, dict) and "configuration" in held else {}
    try:
        configuration = configuration_from_json(facts.get("trained_as") or facts.get("configuration") or held)
    except CodecError as error:
        raise InvalidRequestError(str(error)) from error
    rates, method = facts.get("learning_rates"), facts.get("method")
    return Chosen(
        configuration=configuration,
        method=method if isinstance(method, str) else None,
        learning_rates=_rates(rates) if isinstance(rates, dict) else {},
    )


def _rates(stored: Mapping[str, Any]) -> dict[str, float]:
    return {side: float(stored[side]) for side in ("attention", "ffn") if isinstance(stored.get(side), float | int)}


def train(
    specification: Specification,
    chosen: Chosen,
    folder: Path,
    *,
    learning_rate: float | None = None,
    tell: Callable[["Reading"], None],
    announce: Callable[[Sequence[str]], None] = lambda lines: None,
) -> TrainingResult:
    """Train a configuration as the study would, to the last step, and export it to a new folder.

    Args:
        specification: Study file with backbone, task, training and seed.
        chosen: Configuration to train.
        folder: Folder that must not exist; it is created after the training.
        learning_rate: Peak learning rate of the deltas. None for the one that came with the configuration, else the
            geometric middle of the range of its form.
        tell: Function that receives every reading.
        announce: Function that receives a line for each split and reason for which rows are dropped or cut.

    Raises:
        StudiesError: If the training fails.
        SearchSpaceError: If the configuration is not valid on the backbone.
        RunnerError: If the backbone or the task cannot be loaded, or the folder exists.
    """
    from studies.launch.preparation import prepared
    from studies.launch.study_creation import new_study
    from trial_runner.files import check_is_new

    check_is_new(folder)
    if learning_rate is not None and not 0 < learning_rate < math.inf:
        raise SpecificationError(f"a learning rate must be a positive number; got {learning_rate}.")
    config = config_of(specification.backbone.name)
    family = family_of(config)
    shape = family.read_shape(config)
    task = prepared(specification)
    announce(task.losses)
    heads = len(task.labels) * (shape.width + 1)
    candidate = _candidate(chosen, specification, shape, learning_rate)
    planned = new_trial(candidate, shape, head_parameters=heads)
    planned = replace(planned, seed=specification.seed)
    readings, snapshot = retrain(specification, planned, tell)
    source = ExportSource(
        study=new_study(BegunSpecification.of(specification), shape),
        trial=planned,
        readings=readings,
        snapshot=snapshot,
        family=family,
        shape=shape,
        competitors=1,
        confirmation=(_NO_COMPARISON,),
        is_alone=True,
    )
    return TrainingResult(
        export=write_export(source, folder),
        description=planned.description,
        learning_rates={"attention": candidate.attention_learning_rate, "ffn": candidate.ffn_learning_rate},
        seed=planned.seed,
        readings=readings,
    )


def _candidate(
    chosen: Chosen, specification: Specification, shape: BackboneShape, learning_rate: float | None
) -> Candidate:
    def rate(side: str, edits: tuple[Edit, ...]) -> float | None:
        if not edits:
            return None
        if learning_rate is not None:
            return learning_rate
        low, high = peak_lr_range(edits, shape, specification.space_options)
        return chosen.learning_rates.get(side, math.sqrt(low * high))

    own = chosen.configuration
    rates = rate("attention", own.attention), rate("ffn", own.ffn)
    return Candidate.of(own, rates, shape, method=chosen.method)
