"""What differs between the winner and a published method, and what each difference is worth."""

from typing import Any

from search_space.errors import BudgetError, InvalidEditError
from search_space.published.point import PublishedPoint
from search_space.space.space import Candidate
from studies.analysis.baselines import baseline
from studies.analysis.card import Card, estimate_words, listed
from studies.analysis.discover.between import Between
from studies.analysis.discover.study_posterior import StudyPosterior
from studies.surrogate.observation import Observation

_USUAL = PublishedPoint("mam_adapter")

_MOST_NAMED = 3
_NOTE = (
    "gain: what the step adds on the greedy path, which ablate trains. worth: its Shapley value with its 95% interval; "
    "these sum to the whole difference. Changes that only go together are one row. Every combination is sized for "
    "the same budget; rates are kept relative to the range of their form."
)


def differences(knowledge: StudyPosterior, against: PublishedPoint | None = None) -> Card:
    """What the winner has changed of a published method, in the order of the greedy path.

    Where the method itself is the winner, it is what the best discovery has changed.

    Args:
        knowledge: What the study has taught.
        against: The method: the study's best trial of it, or else the method at the middle of its rates. Where it
            does not fit the study, and by default, the study's best published one; MAM in a study that has none.

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
    question = f"What differs between {who}, trial {last.number}, and {name}, and what is each difference worth?"
    between = Between(first, knowledge.candidate(last), knowledge.space, knowledge.expected)
    return _card(knowledge, question, _sentences(knowledge, between, (last.number, name)), _rows(between))


def _first(knowledge: StudyPosterior, against: PublishedPoint | None) -> tuple[str, Candidate]:
    """Where the changes begin, with its name.

    Raises:
        BudgetError: If it does not fit, and nothing published is complete.
        InvalidEditError: If it is not valid on the backbone, and nothing published is complete.
    """
    published = [one for one in knowledge.complete if one.method is not None]
    if against is not None or not published:
        method = against or _USUAL
        try:
            return str(method), _beginning(knowledge, method)
        except (BudgetError, InvalidEditError):
            if not published:
                raise
    best = knowledge.winner if knowledge.winner in published else knowledge.best_of(published)
    return str(best.method), knowledge.candidate(best)


def _end(knowledge: StudyPosterior, first: Candidate) -> tuple[str, Observation | None]:
    """The winner; where that is the published method itself, the best discovery."""
    winner = knowledge.winner
    if knowledge.candidate(winner).fingerprint != first.fingerprint:
        return "the winner", winner
    others = [one for one in knowledge.complete if one.method is None and one.number != winner.number]
    return ("the best discovery", knowledge.best_of(others)) if others else ("the winner", None)


def _card(
    knowledge: StudyPosterior, question: str, sentences: tuple[str, ...], rows: list[dict[str, Any]] | None = None
) -> Card:
    own: dict[str, Any] = {"name": "winner", "note": _NOTE if rows else "", "metric": knowledge.metric}
    return Card.of(rows or [], question=question, sentences=sentences, shown=len(rows or []), **own)


def _beginning(knowledge: StudyPosterior, method: PublishedPoint) -> Candidate:
    """The best complete trial of a method, else the method at the middle of its rates.

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
            "reached": step.reached.mean,
            "worth": step.value.mean,
            "low": step.value.low,
            "high": step.value.high,
        }
        for number, step in enumerate(between.steps, 1)
    ]


def _sentences(knowledge: StudyPosterior, between: Between, ends: tuple[int, str]) -> tuple[str, ...]:
    clear = [step for step in between.steps if step.value.low > 0 or step.value.high < 0]
    clear.sort(key=lambda step: -abs(step.value.mean))
    whole = estimate_words(between.difference, knowledge.metric)
    said = [f"Trial {ends[0]} minus {ends[1]}: {whole} by estimate (95%)."]
    if clear:
        named = [f"{step.words} ({step.value.mean:+.4f} ± {step.value.reach:.4f})" for step in clear[:_MOST_NAMED]]
        said.append(f"Of its {len(between.steps)} differences from {ends[1]} these count: {listed(named)}.")
    else:
        said.append(
            f"{knowledge.trials} do not tell which of the {len(between.steps)} differences between trial {ends[0]} and "
            f"{ends[1]} count."
        )
    return tuple(said)
