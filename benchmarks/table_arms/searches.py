"""Searches that are simulated on tables."""

from collections.abc import Mapping
from dataclasses import dataclass

from search_arms.simulation import SearchPlan

from search_space.space.space import SearchSpace
from studies.search.initial_design import InitialDesign
from studies.study_file import specification_of
from table_arms.truth import TableTruth

LORA, FACTORED = "LoRA with TPE", "factored"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedArm:
    """Search that is simulated.

    Attributes:
        sampler: Name of its sampler.
        space: Section ``space`` of its study file; ``methods`` for the published methods that fit.
    """

    sampler: str
    space: str | None = None


ARMS: Mapping[str, SimulatedArm] = {
    LORA: SimulatedArm(sampler="tpe", space="lora"),
    FACTORED: SimulatedArm(sampler="factored"),
    "uniform draws": SimulatedArm(sampler="random"),
    "published methods": SimulatedArm(sampler="tpe", space="methods"),
}


def plan_of(arm: SimulatedArm, truth: TableTruth) -> SearchPlan:
    """Return the search of an arm on the task of a table."""
    table, methods = truth.table, {"methods": [str(one.method) for one in truth.published]}
    keys = {"name": "simulated", "backbone": "embedded", "task": {"name": "docstrings"}, "budget": table.budget}
    options = specification_of({**keys, "space": methods if arm.space == "methods" else arm.space}).space_options
    space = SearchSpace(shape=table.shape, budget=table.budget, options=options)
    design = InitialDesign(published=tuple(map(str, options.published_points)))
    return SearchPlan(sampler=arm.sampler, space=space, design=design)
