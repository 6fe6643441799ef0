"""Whether a study found anything better than the published methods, in a sentence."""

from studies.queries.estimates import Lead
from studies.queries.fronts import Front
from studies.queries.ranking import Ranking
from studies.search.collapse import has_collapsed
from studies.store.records import TrialRecord, TrialState

WORDS = {"parameters": "parameters", "extra_flops": "extra FLOPs"}
"""Sizes, as people call them."""

_ALIKE = 3
"""Trials with one score, to the last digit, before it is said that they learned nothing."""


def verdict(ranking: Ranking, metric: str) -> str:
    """What the best discovery is worth beside the best published method; empty before one of these is complete.

    Args:
        ranking: Of the study's trials.
        metric: What is maximised.
    """
    said = _of_the_best(ranking, metric)
    collapsed = sum(has_collapsed(trial.reason) for trial in ranking.trials)
    return f"{said} {collapsed} of {len(ranking.trials)} trials collapsed." if said and collapsed else said


def _of_the_best(ranking: Ranking, metric: str) -> str:
    complete = [trial for trial in ranking.trials if trial.state is TrialState.COMPLETE]
    if len(complete) >= _ALIKE and len({trial.score for trial in complete}) == 1:
        alike = f"all {len(complete)} trials that ran to the end have the same {metric}, {complete[0].score:.4f}"
        return f"Nothing was learned: {alike}, as constant predictions have."
    discovered = next((trial for trial in complete if trial.method is None), None)
    published = next((trial for trial in complete if trial.method is not None), None)
    if published is None:
        return ""
    if discovered is None:
        has_searched = any(trial.method is None for trial in ranking.trials)
        return "Nothing better than the published methods was found: no discovery is complete." if has_searched else ""
    two = f"{_named(published)} is the best published method, trial {discovered.number} the best discovery"
    lead = None if ranking.estimates is None else ranking.estimates.lead
    if lead is None:
        return f"{_by_score(discovered, published, metric)} {two}. Too few trials for an estimate: confirm it."
    return f"{_by_estimate(lead, metric)} {two}."


def _named(trial: TrialRecord) -> str:
    return f"{trial.method} (trial {trial.number})"


def _by_score(discovered: TrialRecord, published: TrialRecord, metric: str) -> str:
    difference = (discovered.score or 0.0) - (published.score or 0.0)
    found = "Something better was found" if difference > 0 else "Nothing better was found"
    return f"{found}, going by one score each: {difference:+.4f} {metric}."


def _by_estimate(lead: Lead, metric: str) -> str:
    difference = lead.difference
    worth = f"{difference.mean:+.4f} ± {difference.reach:.4f} {metric} by estimate (95%)"
    if difference.low > 0:
        return f"Something better than all published methods was found: {worth}."
    if difference.mean > difference.deviation:
        return f"Something was found that may be better than all published methods: {worth}; confirm it."
    if difference.mean > 0:
        return f"Nothing clearly better than the published methods was found: {worth}."
    return f"Nothing better than the published methods was found: {worth}."


def trade(front: Front, metric: str) -> str:
    """What a smaller configuration costs, in a sentence: the best of at most half the size beside the best of all.

    Args:
        front: Of a study.
        metric: What is maximised.
    """
    if len(front.points) < 2:
        return ""
    best = front.points[-1]
    small = front.within(best.size / 2)
    if small is None:
        return f"Nothing of half the size of trial {best.number} or less is complete."
    share = f"{small.size / best.size:.0%}" if best.size else "as much"
    worth = f"{best.estimate - small.estimate:.4f} less {metric}"
    return f"With {share} of the {WORDS[front.objective]} of trial {best.number}, trial {small.number} has {worth}."
