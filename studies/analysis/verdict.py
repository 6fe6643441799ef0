"""Verdict on a study in sentences: what to use, what it is worth over plain LoRA and published methods, how sure."""

import math
import shlex
from collections.abc import Callable, Iterator, Sequence

from search_space.published import HEAD_ONLY
from studies.analysis.estimates import FEWEST, FEWEST_COMPLETE
from studies.analysis.fronts import Front
from studies.analysis.methods import is_lora, is_plain_lora, method_of, numbered
from studies.analysis.ranks import Ranking
from studies.history.noise import accuracy_error, binomial_error
from studies.pruning.degenerate import has_collapsed
from studies.records import RankedTrial, StudyRecord, TrialState
from studies.score_evidence import Z_95, Estimate

WORDS = {"parameters": "parameters", "extra_flops": "extra FLOPs"}
"""Names of sizes in sentences."""

_ALIKE = 3
"""Number of trials with one score, to the last digit, from which on nothing counts as learned."""

_LEARN_MORE = "Raise training.steps; where a label is rare, add examples of it to train."

_HALF_A_POINT, _ONE_PERCENT = 0.005, 0.01


def verdict(ranking: Ranking, study: StudyRecord) -> str:
    """Return the recommended trial, its leads, counts of trials and the next command, a line each; empty without data.

    Args:
        ranking: Ranking of the study's trials.
        study: Record of the study.
    """
    nothing = _no_result_line(ranking, study.metric)
    if nothing:
        return nothing
    best = ranking.best
    if best is None or not any(method_of(trial) for trial in ranking.trials):
        return ""
    collapsed = sum(has_collapsed(trial.reason) for trial in ranking.trials)
    counts = _discoveries(ranking) + (f" {collapsed} of {len(ranking.trials)} trials collapsed." if collapsed else "")
    if best.number not in ranking.estimates.of:
        return "\n".join([*_by_score(ranking, best, study.metric), counts])
    own = method_of(best) or best.number
    others = [one for one in ranking.complete if own not in (method_of(one), one.number)]
    lora, rival = _first(others, is_plain_lora), _first(others, method_of)
    leads, smaller = " ".join(_leads(ranking, best, lora, rival)), _smaller(ranking, best)
    answer = [_recommended(ranking, best, study.metric), leads, *smaller, counts, _next(study, lora or rival)]
    return "\n".join(filter(None, answer))


def _no_result_line(ranking: Ranking, metric: str) -> str:
    complete = ranking.complete
    if ranking.trials and not complete and all(has_collapsed(trial.reason) for trial in ranking.trials):
        return f"Nothing was learned: all {len(ranking.trials)} trials that ended have collapsed."
    if len(complete) < _ALIKE:
        return ""
    ran = f"all {len(complete)} trials that ran to the end"
    scores = [ranking.scores[trial.number] for trial in complete]
    if ranking.is_constant:
        return f"Nothing was learned: {ran} predict a constant; the best has {scores[0]:.4f} {metric}. {_LEARN_MORE}"
    if len({*scores}) == 1:
        alike = f"{ran} have the same {metric}, {scores[0]:.4f}"
        if ranking.is_constant is None:
            return f"Nothing was learned: {alike}, as constant predictions have. {_LEARN_MORE}"
        return (
            f"Nothing can be told apart: {alike}. A harder task or more validation examples would show who is better."
        )
    return ""


def _first(trials: Sequence[RankedTrial], is_one: Callable[[RankedTrial], object]) -> RankedTrial | None:
    return next(filter(is_one, trials), None)


def _head_alone(ranking: Ranking) -> RankedTrial | None:
    return _first(ranking.complete, lambda trial: trial.method == HEAD_ONLY.name)


# ---- with estimates


def _recommended(ranking: Ranking, best: RankedTrial, metric: str) -> str:
    known, named = ranking.estimates.of[best.number], "" if best.method is None else f"{best.method}, "
    return (
        f"Use trial {best.number}: {named}{best.description}. It has {known.mean:.4f} ± {known.reach:.4f} {metric} by "
        f"estimate (95%), with {best.stored_parameters:,} parameters. Over seeds of training its scores deviate by "
        f"{ranking.estimates.seed_deviation:.4f} (standard deviation)."
    )


def _leads(ranking: Ranking, best: RankedTrial, lora: RankedTrial | None, rival: RankedTrial | None) -> Iterator[str]:
    """Yield the leads over plain LoRA, over the best published method and over the task head alone."""
    if is_plain_lora(best):
        yield from _lead_of_lora(ranking, best)
    elif lora is not None:
        other, enough = ("LoRA at usual targets", "Usual targets are") if is_lora(best) else ("plain LoRA", "LoRA is")
        yield _lead(other, ranking, best, lora)
        if ranking.estimates.difference(best.number, lora.number).low <= 0:
            yield f"{enough} enough here: nothing is shown to be better."
    if rival is not None and rival is not lora and not is_plain_lora(best):
        yield _lead(f"the best {'other ' * bool(method_of(best))}published method", ranking, best, rival)
    head = _head_alone(ranking)
    if head is not None and head is not best and head is not rival:
        over = ranking.estimates.difference(best.number, head.number)
        yield f"Over the task head alone (trial {head.number}) it is {_with_interval(over.mean, over.reach)}."


def _lead(over: str, ranking: Ranking, best: RankedTrial, rival: RankedTrial) -> str:
    difference = ranking.estimates.difference(best.number, rival.number)
    chance = min(max(difference.chance, 0.01), 0.99)
    worth = _with_interval(difference.mean, difference.reach)
    return f"Over {over}, {numbered(rival)}, it is {worth}, better with a probability of {chance:.0%}."


def _lead_of_lora(ranking: Ranking, best: RankedTrial) -> Iterator[str]:
    """Yield that plain LoRA is the best, and the difference of the best other configuration."""
    other = _first(ranking.complete, lambda trial: not is_plain_lora(trial))
    if other is None:
        yield "That is plain LoRA."
    else:
        behind = ranking.estimates.difference(other.number, best.number)
        worth = _with_interval(behind.mean, behind.reach)
        yield f"That is plain LoRA, and it is enough here: the best other, {numbered(other)}, is {worth} against it."


def _smaller(ranking: Ranking, best: RankedTrial) -> Iterator[str]:
    """Yield the smallest trial that is expected to be at most half a point worse than the best."""
    of, top = ranking.estimates.of, ranking.estimates.of[best.number]
    tolerance, words = (_HALF_A_POINT, "half a point") if abs(top.mean) <= 1 else (_ONE_PERCENT * abs(top.mean), "1%")
    near = [one for one in ranking.complete if of[one.number].mean >= top.mean - tolerance]
    smallest = min(near, key=lambda trial: trial.stored_parameters)
    if smallest.stored_parameters < best.stored_parameters:
        lost = ranking.estimates.difference(smallest.number, best.number)
        yield (
            f"The smallest trial expected to be at most {words} worse is {numbered(smallest)} with "
            f"{smallest.stored_parameters:,} parameters: {_with_interval(lost.mean, lost.reach)}."
        )


# ---- without estimates


def _by_score(ranking: Ranking, best: RankedTrial, metric: str) -> Iterator[str]:
    """Yield that too few trials were measured, and differences of single scores."""
    discovered = _first(ranking.complete, lambda trial: method_of(trial) is None)
    published = _first(ranking.complete, method_of)
    highest = numbered(best)
    needed = f"estimates need {FEWEST} measured trials, {FEWEST_COMPLETE} of them complete"
    cannot = f"{highest[0].upper()}{highest[1:]} scored highest; {len(ranking.trials)} trials cannot tell"
    yield f"{cannot} which is best: {needed}."
    if discovered is None or published is None:
        return
    own = "It" if best is discovered else f"The best discovery, {numbered(discovered)},"
    other = f"{numbered(published)}{', the best published method' if best is discovered else ''}"
    difference, reach = _score_difference(discovered, published, ranking)
    runs = [ranking.seeds[trial.number] for trial in (discovered, published)]
    by = "one score each" if max(runs) == 1 else f"the means of {runs[0]} and {runs[1]} scores"
    worth = f"{_with_interval(difference, reach)} {metric}{_on_the_same(reach)}"
    yield f"{own} has {worth} over {other}, going by {by}."
    head = _head_alone(ranking)
    if head is not None and head is not published:
        difference, reach = _score_difference(discovered, head, ranking)
        worth = f"{_with_interval(difference, reach)}{_on_the_same(reach)}"
        yield f"Over the task head alone (trial {head.number}) it is {worth}."


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


def _discoveries(ranking: Ranking) -> str:
    """Return how many discoveries, or trials if there are none, ran to the end, were pruned, or failed."""
    discovered = [trial for trial in ranking.trials if method_of(trial) is None]
    found = discovered or ranking.trials
    counts = {state: sum(trial.state is state for trial in found) for state in TrialState}
    was = "was" if counts[TrialState.PRUNED] == 1 else "were"
    ended = {TrialState.PRUNED: f"{was} pruned", TrialState.FAILED: "failed"}
    others = [f"{counts[state]} {words}" for state, words in ended.items() if counts[state]]
    rest = f"; {' and '.join(others)}" if others else ""
    published = len(ranking.trials) - len(found)
    are = "trial of published methods has" if published == 1 else "trials of published methods have"
    besides = f" Beside them {published} {are} ended." if published else ""
    kind = "discoveries" if discovered else "trials of published methods"
    return f"{counts[TrialState.COMPLETE]} of {len(found)} {kind} ran to the end{rest}.{besides}"


def _next(study: StudyRecord, rival: RankedTrial | None) -> str:
    """Return the command that confirms the best trial, against a rival if there is one."""
    against = "" if rival is None else f" --against {shlex.quote(str(method_of(rival)))}"
    return f"To be sure: deltaspace confirm {shlex.quote(study.name)} --top 1 --seeds 5{against}"


def closing(ranking: Ranking, metric: str) -> str:
    """Return the expected score of the best trial on new data in a sentence; empty without estimates."""
    expected = on_new_examples(ranking)
    if expected is None or ranking.best is None or ranking.examples is None:
        return ""
    return (
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
