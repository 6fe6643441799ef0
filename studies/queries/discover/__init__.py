"""What a study has taught: its posterior at any configuration, the questions it can be asked, and their answers."""

from studies.queries.discover.across import across
from studies.queries.discover.answer import Answer, Finding
from studies.queries.discover.asking import NAMES, QUESTIONS, TITLES, WORDS, discovered
from studies.queries.discover.conclusion import conclusion
from studies.queries.discover.from_study import knowledge_of, state_of
from studies.queries.discover.knowledge import Effect, Knowledge
from studies.queries.discover.tree import rule_tree

__all__ = [
    "NAMES",
    "QUESTIONS",
    "TITLES",
    "WORDS",
    "Answer",
    "Effect",
    "Finding",
    "Knowledge",
    "across",
    "conclusion",
    "discovered",
    "knowledge_of",
    "rule_tree",
    "state_of",
]
