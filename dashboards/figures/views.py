"""Which figures the answer to a question has."""

from collections.abc import Callable, Mapping

from dashboards.figures.cells import cells_figures
from dashboards.figures.curves import rate_figures, share_figure
from dashboards.figures.figure import Figure
from dashboards.figures.importance import importance_figure
from dashboards.figures.intervals import intervals
from dashboards.figures.path import differences_figures
from dashboards.figures.pruning import pruning_figure
from dashboards.figures.sizes import sizes_figure
from studies.queries.discover import Answer, Knowledge
from studies.queries.discover.pruned import curves
from studies.queries.discover.sizes import front_band

Figures = Callable[[Knowledge, Answer], tuple[Figure, ...]]


def _by_difference(knowledge: Knowledge, answer: Answer) -> tuple[Figure, ...]:
    return (intervals(answer, across=f"difference in {knowledge.metric}"),)


def _of_path(knowledge: Knowledge, answer: Answer) -> tuple[Figure, ...]:
    return differences_figures(answer, knowledge.metric)


def _of_sizes(knowledge: Knowledge, answer: Answer) -> tuple[Figure, ...]:
    return (sizes_figure(answer, front_band(knowledge), knowledge.metric),)


def _of_pruned(knowledge: Knowledge, answer: Answer) -> tuple[Figure, ...]:
    return (pruning_figure(answer, curves(knowledge), knowledge.metric),)


FIGURES: Mapping[str, Figures] = {
    "V1": lambda _, answer: (importance_figure(answer.table()),),
    "V2": _of_path,
    "V3": lambda knowledge, answer: cells_figures(answer.table(), knowledge.metric),
    "V4": _of_sizes,
    "V5": _of_pruned,
    "V6": lambda knowledge, answer: (share_figure(answer.table(), knowledge.metric),),
    "V7": lambda knowledge, answer: rate_figures(answer.table(), knowledge.metric),
}
"""By view; others are shown as rows with intervals."""


def figures_of(knowledge: Knowledge, answer: Answer) -> tuple[Figure, ...]:
    """The figures of an answer; none where it has no rows.

    Args:
        knowledge: That was asked.
        answer: That it gave.
    """
    return FIGURES.get(answer.view, _by_difference)(knowledge, answer) if answer.rows else ()
