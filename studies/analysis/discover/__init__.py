"""Discoveries of a study: the posterior at any configuration, and analyses of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
from studies.errors import WishError


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Analysis of a study.

    Attributes:
        name: Name on the command line and of its files.
        title: Short title in place of the question.
        compute: Function that computes the card; its second argument is the published method to compare with, None for
            the best one.
    """

    name: str
    title: str
    compute: Callable[[StudyPosterior, PublishedPoint | None], Card]


ANALYSES: Mapping[str, Analysis] = {
    one.name: one
    for one in (
        Analysis(name="matters", title="What matters", compute=lambda knowledge, _: importance(knowledge)),
        Analysis(name="winner", title="Winner against a method", compute=differences),
        Analysis(name="rates", title="Learning rates", compute=lambda knowledge, _: rates(knowledge)),
        Analysis(name="sizes", title="How small", compute=lambda knowledge, _: sizes(knowledge)),
    )
}
"""Analyses by name, in display order."""


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
        raise WishError(not_one_of("a view", unknown[0], ANALYSES))
    return [ANALYSES[name].compute(knowledge, against) for name in dict.fromkeys(names or ANALYSES)]


__all__ = ["ANALYSES", "Analysis", "Card", "StudyPosterior", "discovered", "knowledge_of", "state_of", "summary"]
