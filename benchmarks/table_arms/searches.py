"""Searches that are simulated on tables, and the portfolio of first configurations that would have helped elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from search_arms.intervals import with_interval
from search_arms.simulation import SearchPlan, simulate

from search_space.space.space import Candidate, SearchSpace
from search_space.words.describe import phrase
from studies.search.initial_design import InitialDesign
from studies.study_file import specification_of
from table_arms.pruning import Table, candidate_of
from table_arms.truth import TableTask, TableTruth

LORA, FACTORED = "LoRA with TPE", "factored"
PORTFOLIO = 6
"""Number of configurations of a portfolio."""

_EARLY_TRIALS = 15


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


def portfolio_lines(tables: Sequence[Table], settings: Mapping[str, int], studies: int) -> Iterator[str]:
    """Yield a line for each table about a portfolio of the other tables of its budget.

    It replaces the published methods that are weakest on the other tables. The mean of the tables follows.
    """
    yield f"| left-out task | budget | regret | after {_EARLY_TRIALS} trials | less without | portfolio |"
    yield "|---|---|--:|--:|--:|---|"
    truths = {(table.task, table.share): TableTruth(table, settings) for table in tables}
    gains = []
    for (task, share), truth in truths.items():
        others = [one for (name, its_share), one in truths.items() if its_share == share and name != task]
        if not others:
            continue
        rows = [row for one in others for row in one.table.rows if row["repeats"] is None]
        pool = [candidate_of(row, truth.table.shape) for row in rows]
        chosen = chosen_of(expected_points(others, pool))
        portfolio = [pool[place] for place in chosen]
        published = truth.published
        order = np.argsort(-expected_points(others, published).mean(axis=0), kind="stable")
        kept = [published[place] for place in sorted(order[: len(published) - PORTFOLIO])]
        plain = early_points(truth, published, (), studies)
        given = early_points(truth, kept, portfolio, studies)
        gaps = [one - other for one, other in zip(given, plain, strict=True)]
        gains.append(fmean(gaps))
        own = expected_points([truth], pool)[0]
        words = "; ".join(phrase(one.configuration, truth.table.shape) for one in portfolio)
        cells = [
            task,
            share,
            f"{own.max() - own[chosen].max():.2f}",
            f"{fmean(given):.2f}",
            with_interval(gaps),
            words,
        ]
        yield f"| {' | '.join(cells)} |"
    if len(gains) > 1:
        yield f"| all | {len(gains)} tables | | | {with_interval(gains)} | |"


def early_points(
    truth: TableTruth, published: Sequence[Candidate], first: Sequence[Candidate], studies: int
) -> list[float]:
    """Return the true scores, in points, that studies recommend shortly after their first trials."""
    space = SearchSpace(shape=truth.table.shape, budget=truth.table.budget)
    design = InitialDesign(published=tuple(str(one.method) for one in published))
    search = SearchPlan(sampler="factored", space=space, design=design, first=first)
    tasks = [TableTask(truth=truth, seed=seed) for seed in range(studies)]
    return [simulate(search, task, checkpoints=[_EARLY_TRIALS]).recommended[0].truth for task in tasks]


def expected_points(truths: Sequence[TableTruth], candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """Return the scores that forests predict, in points, of shape (truths, candidates)."""
    return 100 * np.array([[truth.predicted(one)[0] for one in candidates] for truth in truths])


def chosen_of(points: NDArray[np.float64]) -> list[int]:
    """Choose a portfolio greedily: each candidate leaves the least regret in the mean over tables.

    Where several leave the same, the one with the highest mean is chosen.

    Args:
        points: Expected scores, of shape (tables, candidates).
    """
    chosen: list[int] = []
    means, best = points.mean(axis=0), np.full(len(points), -np.inf)
    while len(chosen) < PORTFOLIO:
        reached = np.maximum(best[:, None], points)
        others = (place for place in range(points.shape[1]) if place not in chosen)
        chosen.append(max(others, key=lambda place: (reached[:, place].mean(), means[place])))
        best = reached[:, chosen[-1]]
    return chosen
