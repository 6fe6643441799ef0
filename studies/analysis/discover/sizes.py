"""Smallest trials that are as good as the best."""

from typing import Any

import numpy as np

from search_space.parameter_counts.counts import count
from studies.analysis.card import Card
from studies.analysis.discover.study_posterior import REACH, StudyPosterior
from studies.analysis.methods import method_name
from studies.pareto import front
from studies.records import TrialRecord
from trial_runner.tasks.metrics.corpus import BLEU, CHRF, TER

QUESTION = "How small can it be?"

POINTS = 0.5
"""Points below the best within which a trial is as good."""

MOST = 400
"""Largest number of complete trials that are compared; of more, the best ones and those on the front."""

_DRAWS = 4000
_IN_PERCENT = (BLEU.name, CHRF.name, TER.name)
_LIKELY = 0.8
_NOTE = (
    "Trials with a higher estimate than all smaller ones, with 95% intervals. as good: probability that the trial's "
    f"true score is at most {POINTS} points below the best."
)


def sizes(knowledge: StudyPosterior) -> Card:
    """Return the card of the best trial within every size, the smallest first, with all complete trials as points.

    Raises:
        StudiesError: If no trial is complete.
    """
    trials, stored = _worth_asking(knowledge)
    means, covariance = knowledge.expected(trials)
    reaches = REACH * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    draws = knowledge.sampled(trials, _DRAWS, "sizes", known=(means, covariance))
    slack = POINTS * (1.0 if knowledge.metric in _IN_PERCENT else 0.01)
    within = (draws >= draws.max(axis=1, keepdims=True) - slack).mean(axis=0)
    rows = {
        place: {
            "trial": trials[place].number,
            "method": method_name(trials[place]),
            "parameters": stored[place],
            "of_budget": stored[place] / knowledge.space.budget,
            "estimate": float(means[place]),
            "low": float(means[place] - reaches[place]),
            "high": float(means[place] + reaches[place]),
            "as_good": float(within[place]),
        }
        for place in sorted(range(len(trials)), key=lambda place: (stored[place], -means[place]))
    }
    chosen = [rows[place] for place in front(stored, means)]
    said = _sentences([*rows.values()], knowledge)
    own: dict[str, Any] = {"name": "sizes", "question": QUESTION, "note": _NOTE, "metric": knowledge.metric}
    return Card.of(chosen, points=[*rows.values()], sentences=said, shown=len(chosen), **own)


def _worth_asking(knowledge: StudyPosterior) -> tuple[list[TrialRecord], list[int]]:
    """Return the complete trials with the highest posterior means and those on the front, and their stored parameters.

    Raises:
        StudiesError: If no trial is complete.
    """
    _ = knowledge.winner
    trials = knowledge.complete
    stored = [count(one.configuration, knowledge.space.shape).stored for one in trials]
    if len(trials) <= MOST:
        return list(trials), stored
    means = knowledge.expected_means(trials)
    best = set(np.argsort(-means, kind="stable")[:MOST].tolist())
    chosen = sorted(best | set(front(stored, means.tolist())))
    return [trials[place] for place in chosen], [stored[place] for place in chosen]


def _sentences(rows: list[dict[str, Any]], knowledge: StudyPosterior) -> tuple[str, ...]:
    largest = max(rows, key=lambda row: row["estimate"])
    row = next((row for row in rows if row["as_good"] >= _LIKELY), None)
    if row is None or row is largest:
        return (f"No smaller trial is shown to be within {POINTS} points of the best.",)
    smaller = 1 - row["parameters"] / max(1, largest["parameters"])
    saved = f", {smaller:.0%} less than the best" if smaller > 0 else ""
    return (
        f"Trial {row['trial']} is the smallest within {POINTS} points of the best (probability {row['as_good']:.2f}): "
        f"{row['parameters']:,} parameters ({row['of_budget']:.0%} of the budget{saved}).",
    )
