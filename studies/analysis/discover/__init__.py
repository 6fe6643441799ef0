"""Discoveries of a study: the posterior at any configuration, and analyses of it."""

from collections.abc import Callable, Mapping, Sequence

from search_space.closest_name import not_one_of
from search_space.published.point import PublishedPoint
from studies.analysis.card import Card
from studies.analysis.discover.differences import differences
from studies.analysis.discover.from_study import knowledge_of, state_of
from studies.analysis.discover.importance import importance
from studies.analysis.discover.rates import rates
from studies.analysis.discover.sizes import sizes
from studies.analysis.discover.study_posterior import StudyPosterior
from studies.analysis.discover.summary import summary
from studies.errors import InvalidRequestError

Compute = Callable[[StudyPosterior, PublishedPoint | None], Card]
"""Function from a study, and a published method to compare with (None for the best one), to the card."""

ANALYSES: Mapping[str, tuple[str, Compute]] = {
    "matters": ("What matters", lambda knowledge, _: importance(knowledge)),
    "winner": ("Winner against a method", differences),
    "rates": ("Learning rates", lambda knowledge, _: rates(knowledge)),
    "sizes": ("How small", lambda knowledge, _: sizes(knowledge)),
}
"""Title and function of the analyses by name, in display order."""


def discovered(
    knowledge: StudyPosterior, names: Sequence[str] = (), *, against: PublishedPoint | None = None
) -> list[Card]:
    """Return the cards of some analyses, or of all.

    Args:
        knowledge: Posterior of the study, which caches its results.
        names: Names of the analyses; empty for all.
        against: Published method to compare the winner with; None for the best one.

    Raises:
        StudiesError: If there is no such analysis.
    """
    unknown = [name for name in names if name not in ANALYSES]
    if unknown:
        raise InvalidRequestError(not_one_of("a view", unknown[0], ANALYSES))
    return [ANALYSES[name][1](knowledge, against) for name in dict.fromkeys(names or ANALYSES)]


__all__ = ["ANALYSES", "Card", "StudyPosterior", "discovered", "knowledge_of", "state_of", "summary"]
