"""Verdict on a study in sentences: its lead over the published methods and over the task head alone."""

import math
import shlex
from collections.abc import Callable, Iterator, Sequence

from search_space.published import HEAD_ONLY
from studies.analysis.estimates import FEWEST, FEWEST_COMPLETE, Lead
from studies.analysis.fronts import Front
from studies.analysis.ranks import Ranking
from studies.history.noise import accuracy_error, binomial_error
from studies.pruning.degenerate import has_collapsed
from studies.records import RankedTrial, TrialState
from studies.score_evidence import Z_95, Estimate

WORDS = {"parameters": "parameters", "extra_flops": "extra FLOPs"}
"""Names of sizes in sentences."""

_PLAIN_LORA = ("lora_qv", "lora_kv", "lora_ffn", "lora_attention", "lora_all")

_ALIKE = 3
"""Number of trials with one score, to the last digit, from which on nothing counts as learned."""


def verdict(ranking: Ranking, metric: str) -> str:
    """Return the lead of the best discovery and the counts of trials in sentences; empty without data.

    Args:
        ranking: Ranking of the study's trials.
        metric: Metric that is maximized.
    """
    nothing = _no_result_line(ranking, metric)
    if nothing:
        return nothing
    sentences = [*_lead_over_published(ranking, metric), *_lead_over_head(ranking, metric)]
    collapsed = sum(has_collapsed(trial.reason) for trial in ranking.trials)
    last = [f"{collapsed} of {len(ranking.trials)} trials collapsed."] if collapsed else []
    return " ".join([*sentences, _discoveries(ranking), *last]) if sentences else ""


def _no_result_line(ranking: Ranking, metric: str) -> str:
    complete = ranking.complete
    if ranking.trials and not complete and all(has_collapsed(trial.reason) for trial in ranking.trials):
        return f"Nothing was learned: all {len(ranking.trials)} trials that ended have collapsed."
    if len(complete) < _ALIKE:
        return ""
    ran = f"all {len(complete)} trials that ran to the end"
    scores = [ranking.scores[trial.number] for trial in complete]
    if ranking.is_constant:
        return f"Nothing was learned: {ran} predict a constant; the best has {scores[0]:.4f} {metric}."
    if len({*scores}) == 1:
        alike = f"{ran} have the same {metric}, {scores[0]:.4f}"
        if ranking.is_constant is None:
            return f"Nothing was learned: {alike}, as constant predictions have."
        return (
            f"Nothing can be told apart: {alike}. A harder task or more validation examples would show who is better."
        )
    return ""


def _best(trials: Sequence[RankedTrial], is_one: Callable[[RankedTrial], bool]) -> RankedTrial | None:
    return next(filter(is_one, trials), None)


def _lead_over_published(ranking: Ranking, metric: str) -> Iterator[str]:
    discovered = _best(ranking.complete, lambda trial: trial.method is None)
    published = _best(ranking.complete, lambda trial: trial.method is not None)
    if published is None:
        return
    if discovered is None:
        if any(trial.method is None for trial in ranking.trials):
            yield "Nothing better than the published methods was found: no discovery is complete."
        return
    lead = ranking.estimates.lead
    if lead is None:
        yield _by_score(discovered, published, ranking, metric)
    else:
        two = f"{_named(published)} is the best published method, trial {discovered.number} the best discovery"
        yield f"{_by_estimate(lead, metric)} {two}."


def _named(trial: RankedTrial) -> str:
    return f"trial {trial.number}" if trial.method is None else f"{trial.method} (trial {trial.number})"


def _by_score(discovered: RankedTrial, published: RankedTrial, ranking: Ranking, metric: str) -> str:
    """Return the difference of two scores, and that too few trials were measured for more."""
    best, count = ranking.complete[0], len(ranking.trials)
    highest = f"Trial {best.number}" if best.method is None else _named(best)
    own = "It" if best is discovered else f"The best discovery, {_named(discovered)},"
    other = f"{_named(published)}{', the best published method' if best is discovered else ''}"
    difference, reach = _score_difference(discovered, published, ranking)
    runs = [ranking.seeds[trial.number] for trial in (discovered, published)]
    by = "one score each" if max(runs) == 1 else f"the means of {runs[0]} and {runs[1]} scores"
    worth = f"{_with_interval(difference, reach)} {metric}{_on_the_same(reach)}"
    needed = f"estimates need {FEWEST} measured trials, {FEWEST_COMPLETE} of them complete"
    return (
        f"{highest} scored highest; {count} trials cannot tell which is best: {needed}. "
        f"{own} has {worth} over {other}, going by {by}."
    )


def _score_difference(one: RankedTrial, other: RankedTrial, ranking: Ranking) -> tuple[float, float | None]:
    """Return the difference of two scores and half of its 95% interval by the examples; None if their number is unset.

    Both are of the same examples, so the errors that these have in common cancel; see `accuracy_error`.
    """
    scores = (ranking.scores[one.number], ranking.scores[other.number])
    difference = scores[0] - scores[1]
    if ranking.examples is None:
        return difference, None
    return difference, Z_95 * math.hypot(*(accuracy_error(score, ranking.examples.whole) for score in scores))


def _on_the_same(reach: float | None) -> str:
    return "" if reach is None else " (95%, on the same examples)"


def _with_interval(difference: float, reach: float | None) -> str:
    return f"{difference:+.4f}" if reach is None else f"{difference:+.4f} ± {reach:.4f}"


def _by_estimate(lead: Lead, metric: str) -> str:
    difference = lead.difference
    worth = f"{_with_interval(difference.mean, difference.reach)} {metric} by estimate (95%)"
    if difference.low > 0:
        return f"Something better than all published methods was found: {worth}."
    if difference.mean > difference.deviation:
        return f"Something was found that may be better than all published methods: {worth}; confirm it."
    if difference.mean > 0:
        return f"Nothing clearly better than the published methods was found: {worth}."
    return f"Nothing better than the published methods was found: {worth}."


def _lead_over_head(ranking: Ranking, metric: str) -> Iterator[str]:
    """Yield the lead of the best discovery over the task head alone."""
    discovered = _best(ranking.complete, lambda trial: trial.method is None)
    head = _best(ranking.complete, lambda trial: trial.method == HEAD_ONLY.name)
    if discovered is None or head is None:
        return
    lead = ranking.estimates.over_head
    if lead is None:
        difference, reach = _score_difference(discovered, head, ranking)
        worth = f"{_with_interval(difference, reach)}{_on_the_same(reach)}"
    else:
        worth = _with_interval(lead.difference.mean, lead.difference.reach)
    yield f"Over the task head alone (trial {head.number}) it is {worth}."


def _discoveries(ranking: Ranking) -> str:
    """Return how many discoveries ran to the end, were pruned, or failed."""
    found = [trial for trial in ranking.trials if trial.method is None]
    counts = {state: sum(trial.state is state for trial in found) for state in TrialState}
    was = "was" if counts[TrialState.PRUNED] == 1 else "were"
    ended = {TrialState.PRUNED: f"{was} pruned", TrialState.FAILED: "failed"}
    others = [f"{counts[state]} {words}" for state, words in ended.items() if counts[state]]
    rest = f"; {' and '.join(others)}" if others else ""
    published = len(ranking.trials) - len(found)
    are = "trial of published methods has" if published == 1 else "trials of published methods have"
    besides = f" Beside them {published} {are} ended." if published else ""
    return f"{counts[TrialState.COMPLETE]} of {len(found)} discoveries ran to the end{rest}.{besides}"


def closing(ranking: Ranking, study: str, metric: str) -> tuple[str, ...]:
    """Return the certainty of the lead, the expected score on new data, and the command to confirm it.

    It is empty without estimates.

    Args:
        ranking: Ranking of the study's trials.
        study: Name of the study.
        metric: Metric that is maximized.
    """
    lead = ranking.estimates.lead
    if lead is None:
        return ()
    rival = next(trial for trial in ranking.trials if trial.number == lead.published)
    chance = min(max(lead.difference.chance, 0.01), 0.99)
    said = f"Trial {lead.discovered} is better than {rival.method} with a probability of {chance:.0%}."
    lora = _best(ranking.complete, lambda trial: str(trial.method).partition(":")[0] in _PLAIN_LORA)
    if lora is not None and lora.number != rival.number:
        over = Estimate.of_difference(*ranking.estimates.joint([lead.discovered, lora.number]))
        said += f" Over plain LoRA, {_named(lora)}, it is {_with_interval(over.mean, over.reach)} {metric}."
    against = shlex.quote(str(rival.method))
    confirm = f"To be sure: deltaspace confirm {study} --top 1 --seeds 5 --against {against}"
    return said, *_on_new_data(ranking, metric), confirm


def _on_new_data(ranking: Ranking, metric: str) -> Iterator[str]:
    expected = on_new_examples(ranking)
    if expected is not None and ranking.best is not None and ranking.examples is not None:
        yield (
            f"On new examples of the same kind expect {expected.mean:.4f} ± {expected.reach:.4f} {metric} of trial "
            f"{ranking.best.number} (95%): its estimate, with the sampling error of {ranking.examples.whole} "
            "validation examples."
        )


def on_new_examples(ranking: Ranking) -> Estimate | None:
    """Return the expected score of the best trial on new examples, with the sampling error of the validation examples.

    It is None without an estimate or a known sampling error.
    """
    known = None if ranking.best is None else ranking.estimates.of.get(ranking.best.number)
    if known is None or ranking.examples is None:
        return None
    sampling = binomial_error(known.mean, ranking.examples.whole)
    return Estimate(mean=known.mean, deviation=math.hypot(known.deviation, sampling))


def trade(front: Front, metric: str) -> str:
    """Return a sentence on the cost of a smaller configuration: the best of at most half the size against the best.

    Args:
        front: Pareto front of the study.
        metric: Metric that is maximized.
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
