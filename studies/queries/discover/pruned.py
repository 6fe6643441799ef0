"""V5: whether pruning cut good trials."""

from collections import defaultdict
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from studies.queries.discover.answer import LEVEL, REACH, Answer, Finding
from studies.queries.discover.knowledge import Knowledge
from studies.queries.table import Table
from studies.records import TrialState
from studies.search.factored.distances import Array
from studies.search.factored.observation import Observation

QUESTION = "Did pruning cut good ones?"

MOST_CURVES = 400
"""Trials whose curves are drawn."""

_AT_ONCE = 200
_FINEST = 10**9
_NOTE = (
    "Forecasts are the posterior at full length of what was stopped. The cut of a rung is the lowest score that went "
    "on there; verdicts weigh the noise of both scores, so one above it can have been stopped and one below not."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(Finding):
    """A pruned trial; its value is what it would have scored at full length.

    Attributes:
        trial: Its number.
        method: The published method; empty for a discovery.
        fraction: Of a whole trial's steps, where it was stopped.
        score: What was read there.
        standard_error: Of that score; 0 where it is not known.
        cut: The lowest score there of a trial that went on; None where none did.
        beats: Probability that it would truly have scored more than the winner.
    """

    trial: int
    method: str
    fraction: float
    score: float
    standard_error: float
    cut: float | None
    beats: float


def pruned(knowledge: Knowledge) -> Answer:
    """The pruned trials, those first that were the likeliest to beat the winner.

    Raises:
        StudiesError: If no trial is complete.
    """
    winner = knowledge.winner
    stopped = [one for one in knowledge.history if one.state is TrialState.PRUNED and one.readings]
    if not stopped:
        nothing = ("No trial was pruned, so none was cut.",)
        return Answer(view="V5", question=QUESTION, rows=(), sentences=nothing, note=_NOTE, kind=Stopped)
    at_rungs = _at_rungs(knowledge)
    rows: list[Stopped] = []
    for start in range(0, len(stopped), _AT_ONCE):
        some = stopped[start : start + _AT_ONCE]
        means, covariance = knowledge.joint(knowledge.views([*some, winner]))
        rows += [_row(one, at_rungs, place, means, covariance) for place, one in enumerate(some)]
    rows.sort(key=lambda row: (-row.beats, row.trial))
    expected = sum(row.beats for row in rows)
    likely = [row for row in rows if row.beats > 0.5]
    share = f"{expected:.1f} of {len(rows)} pruned trials" if len(rows) > 1 else f"{expected:.1f} of one pruned trial"
    said = [
        f"It is expected that {share} would have beaten the winner, trial {winner.number}"
        + (f"; the likeliest is trial {rows[0].trial} with probability {rows[0].beats:.2f}." if rows else ".")
    ]
    if not likely:
        said.append("No pruned trial was more likely than not to beat the winner.")
    return Answer(view="V5", question=QUESTION, rows=tuple(rows), sentences=tuple(said), note=_NOTE, kind=Stopped)


def _at_rungs(knowledge: Knowledge) -> dict[int, list[tuple[float, bool]]]:
    """By rung, the scores that were read there and whether the trial went on."""
    found: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for trial in knowledge.history:
        for read in trial.readings:
            found[_rung(read.fraction)].append((read.score, read is not trial.readings[-1]))
    return found


def _rung(fraction: float) -> int:
    """Fractions that differ by rounding alone are one rung."""
    return round(fraction * _FINEST)


def _row(
    one: Observation, at_rungs: dict[int, list[tuple[float, bool]]], place: int, means: Array, covariance: Array
) -> Stopped:
    last = one.readings[-1]
    deviation = float(np.sqrt(max(covariance[place, place], 0.0)))
    mean = float(means[place])
    lead = mean - float(means[-1])
    variance = covariance[place, place] + covariance[-1, -1] - 2 * covariance[place, -1]
    beats = probability_above(lead, float(np.sqrt(max(variance, 0.0))))
    there = at_rungs[_rung(last.fraction)]
    went_on = [score for score, has_gone_on in there if has_gone_on]
    name = f"{one.method} (trial {one.number})" if one.method else f"Trial {one.number}"
    return Stopped(
        trial=one.number,
        method=one.method or "",
        fraction=last.fraction,
        score=last.score,
        standard_error=last.standard_error,
        cut=min(went_on, default=None),
        beats=beats,
        value=mean,
        low=mean - REACH * deviation,
        high=mean + REACH * deviation,
        n=len(there),
        is_resolved=beats >= LEVEL or beats <= 1 - LEVEL,
        sentence=f"{name}, stopped after {last.fraction:.0%} of its steps, would beat the winner with probability "
        f"{beats:.2f}.",
    )


def probability_above(mean: float, deviation: float) -> float:
    """Of a normal number to be above 0; a half if it is 0 for sure."""
    if deviation <= 0:
        return 0.5 if mean == 0 else float(mean > 0)
    return NormalDist().cdf(mean / deviation)


def curves(knowledge: Knowledge) -> Table:
    """Every reading of every trial with its standard error, and how the trial ended; of many trials some, evenly."""
    step = -(-len(knowledge.history) // MOST_CURVES)
    rows = tuple(
        (one.number, one.method or "", one.state.value, read.fraction, read.score, read.standard_error)
        for one in knowledge.history[::step]
        for read in one.readings
    )
    return Table(columns=("trial", "method", "state", "fraction", "score", "standard_error"), rows=rows)
