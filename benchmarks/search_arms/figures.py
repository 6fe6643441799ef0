"""What the tables say as pictures: a figure a statistic, every arm a line of it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from dashboards.figures.figure import Figure, axis, error_bars
from search_arms.simulation import GAIN, Study
from search_arms.statistics import Interval, found_by, mean, share
from search_arms.tables import Studies, gain

_DASHES = ("solid", "dash", "dot", "dashdot")
_COLOURS = 6
"""Of a template; arms past them are told apart by their dashes."""
_SPREAD = 0.008
"""Of a step between arms that would lie on one another, as a share of where they lie."""


def arm_figures(studies: Studies) -> list[Figure]:
    """All figures: gains by cost, chances, times, optimism, proposals."""
    return [_gains(studies), _chances(studies), _found(studies), _optimism(studies), _proposals(studies)]


def _gains(studies: Studies) -> Figure:
    return Figure(
        name="search-gains",
        title="What is recommended, above the best published method of the same study",
        says="True points with 95% intervals over studies, after 25, 100 and 200 trials, by the training they took.",
        data=list(_lines(studies, lambda run, index: gain(run, index), mean, by_cost=True)),
        layout={
            "xaxis": axis("full trials spent (logarithmic)", type="log", tickvals=[10, 20, 50, 100, 200]),
            "yaxis": axis("true points, 95% interval"),
            "height": 440,
        },
    )


def _chances(studies: Studies) -> Figure:
    return Figure(
        name="search-chances",
        title=f"Studies that recommend something truly {GAIN} points above the best published method",
        says="Shares of studies with Wilson's 95% intervals, after 25, 100 and 200 trials.",
        data=list(_lines(studies, lambda run, index: gain(run, index) > GAIN, share)),
        layout={"xaxis": _trials_axis(), "yaxis": axis("share of studies", range=[0, 1]), "height": 440},
    )


def _optimism(studies: Studies) -> Figure:
    return Figure(
        name="search-optimism",
        title="By how much what is recommended is overrated",
        says="Believed less true points of the recommended, with 95% intervals, after 25, 100 and 200 trials.",
        data=list(_lines(studies, _overrated, mean)),
        layout={
            "xaxis": _trials_axis(),
            "yaxis": axis("points, 95% interval"),
            "height": 440,
        },
    )


def _found(studies: Studies) -> Figure:
    traces = []
    for place, (arm, runs) in enumerate(studies.items()):
        horizon = runs[0].recommended[-1].trials
        found = [(0, 0.0), *found_by([run.found_trial for run in runs], horizon)]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": arm,
                "x": [*(time for time, _ in found), horizon],
                "y": [*(part for _, part in found), found[-1][1]],
                "line": {**_line(place), "shape": "hv"},
            }
        )
    return Figure(
        name="search-found",
        title=f"Studies that have tried something truly {GAIN} points above the best published method, its rate tuned",
        says="Shares of studies by Kaplan and Meier, trial by trial.",
        data=traces,
        layout={"xaxis": axis("trials"), "yaxis": axis("share of studies", range=[0, 1]), "height": 440},
    )


def _proposals(studies: Studies) -> Figure:
    arms = list(studies)
    spans = [mean([100 * run.above_median for run in runs]) for runs in studies.values()]
    return Figure(
        name="search-proposals",
        title="Proposals that are truly better than the median published method",
        says="Mean percentages over studies with 95% intervals, an arm a bar.",
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "x": [span.value for span in spans],
                "y": arms,
                "error_x": error_bars([span.value for span in spans], [(span.low, span.high) for span in spans]),
                "showlegend": False,
            }
        ],
        layout={
            "xaxis": axis("percent of proposals", range=[0, 100]),
            "yaxis": axis("", autorange="reversed"),
            "height": 120 + 32 * len(arms),
        },
    )


def _overrated(run: Study, index: int) -> float:
    """Not a number where nothing is recommended."""
    one = run.recommended[index]
    return one.score - one.truth


def _lines(
    studies: Studies,
    what: Callable[[Study, int], Any],
    summary: Callable[[Sequence[Any]], Interval],
    *,
    by_cost: bool = False,
) -> Iterator[Mapping[str, Any]]:
    """An arm a line over its checkpoints, moved aside a little where arms lie at one place."""
    for place, (arm, runs) in enumerate(studies.items()):
        counts = range(len(runs[0].recommended))
        known = [[value for run in runs if not math.isnan(value := what(run, index))] for index in counts]
        spans = [summary(values) for values in known]
        spent = [fmean(run.recommended[index].cost for run in runs) for index in counts]
        tried = [runs[0].recommended[index].trials * (1 + _SPREAD) ** place for index in counts]
        values = [span.value for span in spans]
        yield {
            "type": "scatter",
            "mode": "lines+markers",
            "name": arm,
            "x": spent if by_cost else tried,
            "y": values,
            "error_y": error_bars(values, [(span.low, span.high) for span in spans]),
            "line": _line(place),
        }


def _line(place: int) -> Mapping[str, Any]:
    return {"dash": _DASHES[place // _COLOURS % len(_DASHES)], "width": 2}


def _trials_axis() -> Mapping[str, Any]:
    return axis("trials (logarithmic)", type="log", tickvals=[25, 50, 100, 200])
