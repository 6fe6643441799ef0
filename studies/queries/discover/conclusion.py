"""Three sentences that a person can quote."""

import numpy as np

from studies.queries.discover.answer import REACH
from studies.queries.discover.asking import discovered
from studies.queries.discover.knowledge import Knowledge
from studies.queries.discover.words import interval_words
from studies.search.factored.observation import Observation


def conclusion(knowledge: Knowledge) -> tuple[str, str, str]:
    """What was found, what mattered, and which rule holds; each says so where nothing is resolved.

    Raises:
        StudiesError: If no trial is complete.
    """
    return _found(knowledge), _mattered(knowledge), _rule(knowledge)


def _found(knowledge: Knowledge) -> str:
    discovered_ones = [one for one in knowledge.complete if one.method is None]
    published = [one for one in knowledge.complete if one.method is not None]
    if not discovered_ones or not published:
        winner = knowledge.winner
        mean = float(knowledge.means(knowledge.candidates([winner]))[0])
        return (
            f"The best of {len(knowledge.complete)} complete trials is {_name(winner)}: {mean:.4f} {knowledge.metric}."
        )
    one, other = (_best(knowledge, some) for some in (discovered_ones, published))
    means, covariance = knowledge.joint(knowledge.candidates([one, other]))
    gap = float(means[0] - means[1])
    reach = REACH * float(np.sqrt(max(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1], 0.0)))
    worth = interval_words(gap, gap - reach, gap + reach, knowledge.metric)
    if gap > reach:
        return f"The best discovery, {_name(one)}, beats the best published method, {_name(other)}: {worth}."
    if gap < -reach:
        return f"Nothing beats the best published method, {_name(other)}; the best discovery, {_name(one)}: {worth}."
    return f"Whether {_name(one)} beats the best published method, {_name(other)}, is not resolved: {worth}."


def _best(knowledge: Knowledge, some: list[Observation]) -> Observation:
    return some[int(np.argmax(knowledge.means(knowledge.candidates(some))))]


def _name(trial: Observation) -> str:
    return f"trial {trial.number}" if trial.method is None else f"{trial.method} (trial {trial.number})"


def _mattered(knowledge: Knowledge) -> str:
    (answer,) = discovered(knowledge, ["V1"])
    return answer.sentences[0]


def _rule(knowledge: Knowledge) -> str:
    (answer,) = discovered(knowledge, ["V8"])
    return answer.sentences[0]
