"""V4: how small the delta can be."""

from dataclasses import dataclass

import numpy as np

from search_space.counting.counts import count
from studies.queries.discover.answer import LEVEL, REACH, Answer, Finding
from studies.queries.discover.knowledge import REPLICATE, Knowledge
from studies.queries.table import Table
from studies.records import TrialState
from studies.search.factored.distances import Array
from studies.search.factored.observation import Observation
from studies.search.fronts import front
from trial_runner.tasks.metrics.corpus import BLEU, CHRF, TER

QUESTION = "How small can it be?"

POINTS = 0.5
"""How far below the best counts as as good."""

MOST = 400
"""Complete trials that are compared; with more, those that promise most and those on the front."""

_DRAWS = 4000
_IN_PERCENT = (BLEU.name, CHRF.name, TER.name)
_NOTE = (
    f"Complete trials by what they store. Within {POINTS} points: probability, by joint draws of the posterior, that "
    f"the trial truly scores at most {POINTS} points less than the best of all."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size(Finding):
    """A complete trial and what it stores.

    Attributes:
        trial: Its number.
        method: The published method; empty for a discovery.
        parameters: Stored.
        of_budget: The same as a share of the budget.
        score: The last that was read.
        is_front: Whether no smaller one is expected to score as much.
        within: Probability that it is truly as good as the best, but for `POINTS`.
    """

    trial: int
    method: str
    parameters: int
    of_budget: float
    score: float
    is_front: bool
    within: float


def point_of(metric: str) -> float:
    """What people call a point of a metric: a hundredth, or 1 where the metric is in percent."""
    return 1.0 if metric in _IN_PERCENT else 0.01


def sizes(knowledge: Knowledge) -> Answer:
    """The complete trials from the smallest to the largest.

    Raises:
        StudiesError: If no trial is complete.
    """
    trials, stored = _worth_asking(knowledge)
    asked = knowledge.views(trials)
    means, covariance = knowledge.joint(asked)
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    draws = knowledge.sampled(asked, _DRAWS, "V4")
    slack = POINTS * point_of(knowledge.metric)
    within = (draws >= draws.max(axis=1, keepdims=True) - slack).mean(axis=0)
    order = sorted(range(len(trials)), key=lambda place: (stored[place], -means[place]))
    rows: list[Size] = []
    best = -np.inf
    for place in order:
        one, mean, probability = trials[place], float(means[place]), float(within[place])
        is_front = mean > best
        best = max(best, mean)
        name = f"{one.method} (trial {one.number})" if one.method else f"Trial {one.number}"
        rows.append(
            Size(
                trial=one.number,
                method=one.method or "",
                parameters=stored[place],
                of_budget=stored[place] / knowledge.space.budget,
                score=one.readings[-1].score,
                is_front=is_front,
                within=probability,
                value=mean,
                low=mean - REACH * float(deviations[place]),
                high=mean + REACH * float(deviations[place]),
                n=1 + _replicates(knowledge, one.fingerprint),
                is_resolved=probability >= LEVEL or probability <= 1 - LEVEL,
                sentence=f"{name} stores {stored[place]:,} parameters and is within {POINTS} points of the best "
                f"with probability {probability:.2f}.",
            )
        )
    return Answer(view="V4", question=QUESTION, rows=tuple(rows), sentences=_sentences(rows), note=_NOTE, kind=Size)


def _worth_asking(knowledge: Knowledge) -> tuple[list[Observation], list[int]]:
    """Of complete trials those of the highest posterior means, and those on the front; what each stores.

    Raises:
        StudiesError: If no trial is complete.
    """
    _ = knowledge.winner
    trials = knowledge.complete
    stored = [count(one.configuration, knowledge.space.shape).stored for one in trials]
    if len(trials) <= MOST:
        return list(trials), stored
    means = knowledge.means(knowledge.views(trials))
    best = set(np.argsort(-means, kind="stable")[:MOST].tolist())
    chosen = sorted(best | set(front(stored, means.tolist())))
    return [trials[place] for place in chosen], [stored[place] for place in chosen]


def _replicates(knowledge: Knowledge, fingerprint: str) -> int:
    """How often a trial was repeated; the fingerprint of a replicate is its original's with its seed."""
    repeated = [one for one in knowledge.history if one.origin == REPLICATE and one.state is TrialState.COMPLETE]
    return sum(one.fingerprint.startswith(fingerprint) for one in repeated)


def _sentences(rows: list[Size]) -> tuple[str, ...]:
    largest = max(rows, key=lambda row: row.value)
    for wanted in (LEVEL, 0.5):
        row = next((row for row in rows if row.within >= wanted), None)
        if row is not None:
            smaller = 1 - row.parameters / max(1, largest.parameters)
            saved = f", {smaller:.0%} less than the best" if row is not largest and smaller > 0 else ""
            return (
                f"The smallest delta within {POINTS} points of the best, at a probability of {wanted:.2f}, is "
                f"trial {row.trial} with {row.parameters:,} parameters ({row.of_budget:.0%} of the budget{saved}); "
                f"probability {row.within:.2f}.",
            )
    likeliest = max(rows, key=lambda row: row.within)
    return (
        f"No trial is within {POINTS} points of the best with a probability of 0.50; the likeliest is trial "
        f"{likeliest.trial} with {likeliest.parameters:,} parameters, probability {likeliest.within:.2f}.",
    )


def front_band(knowledge: Knowledge) -> Table:
    """What the best of all complete trials that are no larger truly scores: by size, its mean and 90% interval."""
    trials, sizes_of_trials = _worth_asking(knowledge)
    stored = np.array(sizes_of_trials)
    order = np.argsort(stored, kind="stable")
    draws: Array = knowledge.sampled(knowledge.views([trials[place] for place in order]), _DRAWS, "V4")
    best = np.maximum.accumulate(draws, axis=1)
    low, high = np.quantile(best, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    rows = zip(stored[order], best.mean(axis=0), low, high, strict=True)
    last = {int(size): (int(size), float(mean), float(under), float(over)) for size, mean, under, over in rows}
    return Table(columns=("parameters", "best", "low", "high"), rows=tuple(last.values()))
