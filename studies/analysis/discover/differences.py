"""Differences between the winner and a published method, with their values."""

from typing import Any

from search_space.errors import BudgetError, InvalidEditError
from search_space.published.point import PublishedPoint
from search_space.space.space import Candidate
from studies.analysis.baselines import baseline
from studies.analysis.card import Card, estimate_words, listed
from studies.analysis.discover.between import Between
from studies.analysis.discover.study_posterior import StudyPosterior
from studies.analysis.methods import method_of
from studies.records import TrialRecord

_USUAL = PublishedPoint("mam_adapter")

_MOST_NAMED = 3
_NOTE = (
    "gain: gain of the step, with its 95% interval (low, high), on the path that adds the change with the largest "
    "expected gain next; ablate trains it. Gains depend on the order and sum to the difference. Changes that need each "
    "other are one row. All combinations are sized for the same budget; learning rates stay relative to the range of "
    "their form."
)


def differences(knowledge: StudyPosterior, against: PublishedPoint | None = None) -> Card:
    """Return the changes from a published method to the winner, in the order of the greedy path.

    If the method itself is the winner, the best discovery takes its place.

    Args:
        knowledge: Posterior of the study.
        against: Published method: the study's best trial of it, else the method at middle learning rates. By default,
            and if it does not fit, the study's best published method, or MAM without one.

    Raises:
        StudiesError: If no trial is complete.
    """
    try:
        name, first = _first(knowledge, against)
    except (BudgetError, InvalidEditError) as error:
        method = against or _USUAL
        return _card(knowledge, f"What differs between the winner and {method}?", (f"{method}: {error}",))
    who, last = _end(knowledge, first)
    if last is None:
        nothing = f"The winner, trial {knowledge.winner.number}, is {name} itself, and nothing was discovered."
        return _card(knowledge, f"What differs between the winner and {name}?", (nothing,))
    question = f"What differs between {who}, trial {last.number}, and {name}, and how much does each difference matter?"
    between = Between(first, knowledge.candidate(last), knowledge.space, knowledge.expected)
    return _card(knowledge, question, _sentences(knowledge, between, (last.number, name)), _rows(between))


def _first(knowledge: StudyPosterior, against: PublishedPoint | None) -> tuple[str, Candidate]:
    """Return the name and the candidate at the begin of the path.

    Raises:
        BudgetError: If it does not fit, and no published method is complete.
        InvalidEditError: If it is not valid on the backbone, and no published method is complete.
    """
    published = [one for one in knowledge.complete if method_of(one) is not None]
    if against is not None or not published:
        method = against or _USUAL
        try:
            return str(method), _beginning(knowledge, method)
        except (BudgetError, InvalidEditError):
            if not published:
                raise
    best = knowledge.winner if knowledge.winner in published else knowledge.best_of(published)
    return str(method_of(best)), knowledge.candidate(best)


def _end(knowledge: StudyPosterior, first: Candidate) -> tuple[str, TrialRecord | None]:
    """Return the winner, or the best discovery if the published method is the winner."""
    winner = knowledge.winner
    if knowledge.candidate(winner).fingerprint != first.fingerprint:
        return "the winner", winner
    others = [one for one in knowledge.complete if method_of(one) is None and one.number != winner.number]
    return ("the best discovery", knowledge.best_of(others)) if others else ("the winner", None)


def _card(
    knowledge: StudyPosterior, question: str, sentences: tuple[str, ...], rows: list[dict[str, Any]] | None = None
) -> Card:
    own: dict[str, Any] = {"name": "winner", "note": _NOTE if rows else "", "metric": knowledge.metric}
    return Card.of(rows or [], question=question, sentences=sentences, shown=len(rows or []), **own)


def _beginning(knowledge: StudyPosterior, method: PublishedPoint) -> Candidate:
    """Return the best complete trial of a method, else the method at middle learning rates.

    Raises:
        BudgetError: If it does not fit.
        InvalidEditError: If it is not valid on the backbone.
    """
    best = knowledge.best_first(knowledge.complete)
    found = baseline(method, best, best, knowledge.space)
    return found if isinstance(found, Candidate) else knowledge.candidate(found)


def _rows(between: Between) -> list[dict[str, Any]]:
    return [
        {
            "step": number,
            "change": step.words,
            "gain": step.gain.mean,
            "low": step.gain.low,
            "high": step.gain.high,
            "reached": step.reached.mean,
        }
        for number, step in enumerate(between.steps, 1)
    ]


def _sentences(knowledge: StudyPosterior, between: Between, ends: tuple[int, str]) -> tuple[str, ...]:
    clear = [step for step in between.steps if step.gain.low > 0 or step.gain.high < 0]
    clear.sort(key=lambda step: -abs(step.gain.mean))
    whole = estimate_words(between.difference, knowledge.metric)
    said = [f"Trial {ends[0]} minus {ends[1]}: {whole} by estimate (95%)."]
    if clear:
        named = [f"{step.words} ({step.gain.mean:+.4f} ± {step.gain.reach:.4f})" for step in clear[:_MOST_NAMED]]
        said.append(f"Of its differences from {ends[1]} these are shown to matter: {listed(named)}.")
    else:
        said.append(f"No difference between trial {ends[0]} and {ends[1]} is shown to matter yet.")
    return tuple(said)
