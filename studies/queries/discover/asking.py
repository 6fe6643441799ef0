"""The questions that a study can be asked, and their answers."""

from collections.abc import Callable, Mapping, Sequence

from search_space.published.point import PublishedPoint
from studies.errors import WishError
from studies.queries.discover.answer import Answer
from studies.queries.discover.attention_share import attention_share
from studies.queries.discover.cells import cells
from studies.queries.discover.differences import differences
from studies.queries.discover.importance import importance
from studies.queries.discover.knowledge import Knowledge
from studies.queries.discover.pruned import pruned
from studies.queries.discover.rates import rates
from studies.queries.discover.rules import rules
from studies.queries.discover.sizes import sizes

Question = Callable[[Knowledge], Answer]

QUESTIONS: Mapping[str, Question] = {
    "V1": importance,
    "V2": differences,
    "V3": cells,
    "V4": sizes,
    "V5": pruned,
    "V6": attention_share,
    "V7": rates,
    "V8": rules,
}
"""By the name of its view."""

TITLES: Mapping[str, str] = {
    "V1": "What matters",
    "V2": "Winner against MAM",
    "V3": "Best of each kind",
    "V4": "How small",
    "V5": "Was pruning fair",
    "V6": "Where the budget goes",
    "V7": "Learning rates",
    "V8": "Rules",
}
"""What a view is called where there is no room for its question."""

WORDS: Mapping[str, str] = {
    "matters": "V1",
    "winner": "V2",
    "kinds": "V3",
    "sizes": "V4",
    "pruning": "V5",
    "budget": "V6",
    "rates": "V7",
    "rules": "V8",
}
"""What a person may type for a view."""

NAMES: Mapping[str, str] = {view: word for word, view in WORDS.items()}
"""The word of a view, which its files are named by."""


def discovered(
    knowledge: Knowledge, views: Sequence[str] = (), *, against: PublishedPoint | None = None
) -> list[Answer]:
    """The answers to some questions, or to all.

    Args:
        knowledge: What the study has taught; it remembers its answers.
        views: Names or words; none for all.
        against: The published method that V2 compares the winner with; None for MAM.

    Raises:
        StudiesError: If there is no such view.
    """
    named = [WORDS.get(view, view) for view in views]
    unknown = [view for view in named if view not in QUESTIONS]
    if unknown:
        raise WishError(f"a view must be one of {', '.join([*WORDS, *QUESTIONS])}; got {unknown[0]!r}.")
    asked = dict.fromkeys(named or QUESTIONS)
    return [
        differences(knowledge, against) if view == "V2" and against is not None else _answered(knowledge, view)
        for view in asked
    ]


def _answered(knowledge: Knowledge, view: str) -> Answer:
    known = knowledge.answers.get(view)
    if known is None:
        known = knowledge.answers[view] = QUESTIONS[view](knowledge)
    return known
