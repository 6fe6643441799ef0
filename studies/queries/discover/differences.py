"""V2: what differs between the winner and a published method, and what each difference is worth."""

from dataclasses import dataclass

import numpy as np

from search_space.canonical import fingerprint
from search_space.configuration import Configuration
from search_space.errors import BudgetError, InvalidEditError
from search_space.published.point import PublishedPoint
from search_space.space.space import Candidate
from studies.queries.baselines import resized
from studies.queries.discover.answer import REACH, Answer, Finding
from studies.queries.discover.between import Between, Normal, Step
from studies.queries.discover.knowledge import Knowledge
from studies.queries.discover.words import interval_words
from studies.search.factored.observation import Observation

USUAL = PublishedPoint("mam_adapter")

_NOTE = (
    "Values are exact Shapley values over the orders in which every combination on the way is legal and sized for the "
    "same budget; they sum to the whole difference. Changes that only go together are one row. Gains are those of the "
    "greedy path, which ablate trains. Rates are kept relative to the range of their form."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth(Finding):
    """A difference, where the greedy path makes it.

    Attributes:
        step: 1, 2, 3, … on the path.
        change: What is decided otherwise.
        gain: What it adds on the path.
        gain_low: Lower end of the 90% interval of that.
        gain_high: Upper end.
        reached: What is expected after it.
    """

    step: int
    change: str
    gain: float
    gain_low: float
    gain_high: float
    reached: float


def differences(knowledge: Knowledge, against: PublishedPoint = USUAL) -> Answer:
    """What the winner has changed of a published method, in the order of the greedy path.

    Where the method itself is the winner, it is what the best discovery has changed.

    Args:
        knowledge: What the study has taught.
        against: The method; the study's best trial of it, or else the method at the middle of its rates. Where it does
            not fit the study, the study's best published one.

    Raises:
        StudiesError: If no trial is complete.
    """
    try:
        name, first = str(against), _beginning(knowledge, against)
    except (BudgetError, InvalidEditError) as error:
        found = _published(knowledge)
        if found is None:
            return _answer(f"What differs between the winner and {against}?", (), (f"{against}: {error}",))
        name, first = str(found.method), knowledge.candidates([found])[0]
    who, last = _end(knowledge, first)
    if last is None:
        nothing = f"The winner, trial {knowledge.winner.number}, is {name} itself, and nothing was discovered."
        return _answer(f"What differs between the winner and {name}?", (), (nothing,))
    question = f"What differs between {who}, trial {last.number}, and {name}, and what is each difference worth?"
    between = Between(first, knowledge.candidates([last])[0], knowledge.space, knowledge.joint)
    rows = tuple(_row(step, number, knowledge) for number, step in enumerate(between.steps, 1))
    return _answer(question, rows, _sentences(knowledge, between, rows, (last.number, name)))


def _end(knowledge: Knowledge, first: Candidate) -> tuple[str, Observation | None]:
    """The winner; where that is the published method itself, the best discovery."""
    winner = knowledge.winner
    if knowledge.candidates([winner])[0].fingerprint != first.fingerprint:
        return "the winner", winner
    found = [one for one in knowledge.complete if one.method is None and one.number != winner.number]
    if not found:
        return "the winner", None
    return "the best discovery", found[int(np.argmax(knowledge.means(knowledge.views(found))))]


def _answer(question: str, rows: tuple[Worth, ...], sentences: tuple[str, ...]) -> Answer:
    return Answer(view="V2", question=question, rows=rows, sentences=sentences, note=_NOTE, kind=Worth)


def _beginning(knowledge: Knowledge, method: PublishedPoint) -> Candidate:
    """The best complete trial of a method, else the method at the middle of its rates.

    Raises:
        BudgetError: If it does not fit.
        InvalidEditError: If it is not valid on the backbone.
    """
    candidate = resized(method, knowledge.space)
    shape, key = knowledge.space.shape, fingerprint(candidate.configuration, knowledge.space.shape)
    forms = _forms(candidate.configuration)
    own = [
        one
        for one in knowledge.complete
        if method in (one.method, (one.method or "").partition(":")[0])
        or (_forms(one.configuration) == forms and fingerprint(one.configuration, shape) == key)
    ]
    return _best(knowledge, own) or candidate


def _forms(configuration: Configuration) -> list[str]:
    """What configurations share that are one, and many others do not; quickly told."""
    return sorted(edit.form.name for edit in configuration.edits)


def _published(knowledge: Knowledge) -> Observation | None:
    own = [one for one in knowledge.complete if one.method is not None]
    if not own:
        return None
    return own[int(np.argmax(knowledge.means(knowledge.views(own))))]


def _best(knowledge: Knowledge, trials: list[Observation]) -> Candidate | None:
    if not trials:
        return None
    best = trials[int(np.argmax(knowledge.means(knowledge.views(trials))))]
    return knowledge.candidates([best])[0]


def _row(step: Step, number: int, knowledge: Knowledge) -> Worth:
    low, high = _interval(step.value)
    gain_low, gain_high = _interval(step.gain)
    is_resolved = low > 0 or high < 0
    verb = "is worth" if is_resolved else "is not resolved:"
    worth = interval_words(step.value.mean, low, high, knowledge.metric)
    return Worth(
        step=number,
        change=step.words,
        gain=step.gain.mean,
        gain_low=gain_low,
        gain_high=gain_high,
        reached=step.reached.mean,
        value=step.value.mean,
        low=low,
        high=high,
        n=sum(bool(one.readings) for one in knowledge.history),
        is_resolved=is_resolved,
        sentence=f"{step.words[0].upper()}{step.words[1:]} {verb} {worth}.",
    )


def _interval(number: Normal) -> tuple[float, float]:
    return number.mean - REACH * number.deviation, number.mean + REACH * number.deviation


def _sentences(
    knowledge: Knowledge, between: Between, rows: tuple[Worth, ...], ends: tuple[int, str]
) -> tuple[str, ...]:
    whole = between.difference
    low, high = _interval(whole)
    worth = interval_words(whole.mean, low, high, knowledge.metric)
    resolved = [row.sentence for row in rows if row.is_resolved]
    sure = "" if low > 0 or high < 0 else ", which is not resolved"
    return (
        f"Trial {ends[0]} minus {ends[1]} is expected to be {worth}{sure}; {len(resolved)} of {len(rows)} differences "
        "are resolved.",
        *resolved,
    )
