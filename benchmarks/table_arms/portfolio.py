"""Portfolios of first configurations: those that would have helped on other tasks, and what they are worth."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from search_arms.intervals import table_line, with_interval
from search_arms.simulation import SearchPlan, simulate

from search_space.errors import SearchSpaceError
from search_space.parameter_counts.counts import count_edits
from search_space.space.space import Candidate, SearchSpace
from search_space.words.describe import phrase
from studies.search.initial_design import InitialDesign
from table_arms.pruning import Table, candidate_of
from table_arms.truth import TableTask, TableTruth

PORTFOLIO = 6
"""Number of configurations of a portfolio."""

_EARLY_TRIALS = 15
_BUDGET, _ALL, _NOTHING = "of the budget", "of all budgets", "nothing"
_ARMS = (_BUDGET, _ALL, _NOTHING)

Truths = Sequence[TableTruth]


def portfolio_lines(tables: Sequence[Table], settings: Mapping[str, int], studies: int) -> Iterator[str]:
    """Yield a line for each table about arms in which other trials replace the published methods weakest elsewhere.

    They are a portfolio of the other tasks' tables of the budget, one of those of all budgets, or none. *Regret* is the
    difference of the best of the first to the best of all that could be chosen. The means of the tables follow.
    """
    yield from _heading("left-out task | budget | regret")
    truths = [TableTruth(table, settings) for table in tables]
    gains = []
    for truth in truths:
        elsewhere = [one for one in truths if one.table.task != truth.table.task]
        others = [one for one in elsewhere if one.table.share == truth.table.share]
        if not others:
            continue
        pool = [candidate_of(row, truth.table.shape) for one in others for row in _firsts(one.table)]
        chosen = chosen_of(expected_points(others, pool))
        portfolios = {
            _BUDGET: [pool[place] for place in chosen],
            _ALL: _resized_portfolio(elsewhere, truth.table.budget),
        }
        found, cells = _compared(truth, _strongest(others, truth.published), portfolios, studies)
        gains.append(found)
        own = expected_points([truth], pool)[0]
        yield table_line([truth.table.task, truth.table.share, f"{own.max() - own[chosen].max():.2f}", *cells])
    yield from _means(gains)


def transfer_lines(
    tables: Sequence[Table], settings: Mapping[str, int], studies: int, portfolios: Path
) -> Iterator[str]:
    """Yield a line for each table about the portfolios of another backbone's tables; see `portfolio_lines`.

    *Proposed*: how many of both portfolios the space of this backbone can propose. Budgets without one are left out.

    Raises:
        SystemExit: If there is no file of portfolios.
    """
    if not portfolios.is_file():
        raise SystemExit(f"--portfolios must be a file of portfolios; got {portfolios}. Write it: tables.py portfolio.")
    yield from _heading("task | budget | proposed")
    given, gains = json.loads(portfolios.read_text(encoding="utf-8")), []
    for table in tables:
        if table.share not in given:
            continue
        truth, of_budget = TableTruth(table, settings), given[table.share]
        space = SearchSpace(shape=table.shape, budget=table.budget)
        found = {name: [*_proposed(space, of_budget[name])] for name in (_BUDGET, _ALL)}
        kept = [one for one in truth.published if str(one.method) not in of_budget[_NOTHING]]
        gain, cells = _compared(truth, kept, found, studies)
        gains.append(gain)
        yield table_line([table.task, table.share, " + ".join(str(len(one)) for one in found.values()), *cells])
    yield from _means(gains)


def write_portfolios(path: Path, tables: Sequence[Table], settings: Mapping[str, int]) -> None:
    """Write the portfolios of each budget, as parameters of its space, and the published methods they replace."""
    truths, portfolios = [TableTruth(table, settings) for table in tables], {}
    for share in dict.fromkeys(table.share for table in tables):
        of_budget = [one for one in truths if one.table.share == share]
        budget, published = of_budget[0].table.budget, of_budget[0].published
        chosen = {_BUDGET: _resized_portfolio(of_budget, budget), _ALL: _resized_portfolio(truths, budget)}
        kept = _strongest(of_budget, published)
        portfolios[share] = {
            **{name: [dict(one.parameters) for one in portfolio] for name, portfolio in chosen.items()},
            _NOTHING: [str(one.method) for one in published if one not in kept],
        }
    path.write_text(json.dumps(portfolios, indent=1) + "\n", encoding="utf-8")


def carried(candidate: Candidate, own: SearchSpace, other: SearchSpace) -> Candidate | None:
    """Return a configuration as another space proposes it, with the same share of its budget; None if it cannot.

    It is at the same layers if they can be chosen there, else at all that fit.
    """
    configuration, shape = candidate.configuration, own.shape
    points = own.points_in(configuration)
    if not points:
        return None
    edits = {"attention": configuration.attention, "ffn": configuration.ffn}
    rates = {"attention": candidate.attention_learning_rate, "ffn": candidate.ffn_learning_rate}
    stored = [count_edits(of_side, shape).stored for of_side in edits.values()]
    low, high = other.options.attention_share
    layers = {side: {edit.layers for edit in of_side} for side, of_side in edits.items()}
    same = {side: next(iter(choices)) for side, choices in layers.items() if len(choices) == 1}
    for chosen in (same, {}):
        with suppress(SearchSpaceError, KeyError):  # a choice can be missing at its budget
            found = other.candidate_of(
                points,
                peak_lrs={side: rate for side, rate in rates.items() if rate is not None},
                share=min(max(stored[0] / sum(stored), low), high),
                layers=chosen,
                splits=own.splits_of(configuration),
                budget_fraction=own.budget_fraction_of(sum(stored), configuration),
            )
            if found is not None:
                return found
    return None


def early_points(
    truth: TableTruth, published: Sequence[Candidate], first: Sequence[Candidate], studies: int
) -> list[float]:
    """Return the true scores, in points, that studies recommend shortly after their first trials."""
    space = SearchSpace(shape=truth.table.shape, budget=truth.table.budget)
    design = InitialDesign(published=tuple(str(one.method) for one in published))
    search = SearchPlan(sampler="factored", space=space, design=design, first=first)
    tasks = [TableTask(truth=truth, seed=seed) for seed in range(studies)]
    return [simulate(search, task, checkpoints=[_EARLY_TRIALS]).recommended[0].truth for task in tasks]


def expected_points(truths: Truths, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
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


def _heading(first: str) -> Iterator[str]:
    columns = " | ".join(f"{name} | less published" for name in _ARMS)
    yield f"| {first} | published, after {_EARLY_TRIALS} trials | {columns} | portfolio of the budget |"
    yield f"|---|---|--:|--:|{'--:|' * (2 * len(_ARMS))}---|"


def _compared(
    truth: TableTruth, kept: Sequence[Candidate], portfolios: Mapping[str, Sequence[Candidate]], studies: int
) -> tuple[list[float], list[str]]:
    """Return the mean lead of each arm over the published methods, and the cells of a line."""
    plain = early_points(truth, truth.published, (), studies)
    gains, cells = [], [f"{fmean(plain):.2f}"]
    for name in _ARMS:
        points = early_points(truth, kept, portfolios.get(name, ()), studies)
        gaps = [one - other for one, other in zip(points, plain, strict=True)]
        gains.append(fmean(gaps))
        cells += [f"{fmean(points):.2f}", with_interval(gaps)]
    words = "; ".join(phrase(one.configuration, truth.table.shape) for one in portfolios[_BUDGET])
    return gains, [*cells, words]


def _means(gains: Sequence[Sequence[float]]) -> Iterator[str]:
    if len(gains) > 1:
        means = [cell for of_arm in zip(*gains, strict=True) for cell in ("", with_interval(of_arm))]
        yield table_line(["all", f"{len(gains)} tables", "", "", *means, ""])


def _proposed(space: SearchSpace, proposals: Sequence[Mapping[str, str | float]]) -> Iterator[Candidate]:
    for proposal in proposals:
        with suppress(SearchSpaceError, KeyError):  # a choice can be missing on this backbone
            yield space.suggest(proposal)


def _resized_portfolio(truths: Truths, budget: int) -> list[Candidate]:
    """Choose a portfolio on tables of some budgets at once; return it resized to one of them."""
    resized = list(_carried(truths))
    points = [expected_points([one], [each[one.table.budget] for each in resized])[0] for one in truths]
    return [resized[place][budget] for place in chosen_of(np.array(points))]


def _carried(truths: Truths) -> Iterator[Mapping[int, Candidate]]:
    """Yield the configurations of tables that the spaces of all their budgets have, resized to each budget."""
    shape = truths[0].table.shape
    spaces = {one.table.budget: SearchSpace(shape=shape, budget=one.table.budget) for one in truths}
    known = set()
    for truth in truths:
        for row in _firsts(truth.table):
            candidate, own = candidate_of(row, shape), spaces[truth.table.budget]
            tried = {budget: carried(candidate, own, space) for budget, space in spaces.items()}
            found = {budget: one for budget, one in tried.items() if one is not None}
            names = tuple(one.fingerprint for one in found.values())
            if len(found) == len(spaces) and names not in known:
                known.add(names)
                yield found


def _strongest(truths: Truths, published: Sequence[Candidate]) -> list[Candidate]:
    """Return the published methods without as many of those that are weakest on some tables as a portfolio has."""
    order = np.argsort(-expected_points(truths, published).mean(axis=0), kind="stable")
    return [published[place] for place in sorted(order[: max(0, len(published) - PORTFOLIO)])]


def _firsts(table: Table) -> list[Mapping[str, object]]:
    """Return the rows of configurations, each once."""
    return [row for row in table.rows if row["repeats"] is None]
