"""What a question about a study is answered with: findings with intervals, and sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from studies.queries.table import Table

LEVEL = 0.9
"""Probability that an interval holds what it is of."""

REACH = 1.6448536269514722
"""Standard deviations from the middle of such an interval of a normal distribution to its ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A number that the posterior tells, and how sure it is.

    A row of an answer is a finding with what it is of; those are the fields before these in its table.

    Attributes:
        value: What is expected.
        low: Lower end of the interval that holds it with 90%.
        high: Its upper end.
        n: Trials, with a reading, that have what is compared.
        is_resolved: Whether the sign, or what the row says, is sure with 90%.
        sentence: The finding in words.
    """

    value: float
    low: float
    high: float
    n: int
    is_resolved: bool
    sentence: str


_LAST = tuple(field.name for field in fields(Finding))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one question.

    Attributes:
        view: ``V1`` to ``V8``.
        question: In words.
        rows: Findings, all of one kind.
        sentences: What is resolved, in plain words; one that says so where nothing is.
        note: How to read the rows.
        kind: The class of the rows.
    """

    view: str
    question: str
    rows: tuple[Finding, ...]
    sentences: tuple[str, ...]
    note: str
    kind: type[Finding] = Finding

    def table(self) -> Table:
        """The rows as a table: what they are of first, then the finding."""
        own = [field.name for field in fields(self.kind) if field.name not in _LAST]
        names = (*own, *_LAST)
        entries = [{name: _text(getattr(row, name)) for name in names} for row in self.rows]
        return Table.of(entries, columns=names, title=self.question)

    def as_entries(self) -> dict[str, object]:
        """The whole answer as JSON-able values, a mapping a row."""
        said = {name: getattr(self, name) for name in ("view", "question", "sentences", "note")}
        return {**said, "rows": self.table().to_dicts()}


def _text(value: object) -> object:
    """What a cell can hold."""
    is_several = isinstance(value, Sequence) and not isinstance(value, str)
    return ", ".join(map(str, value)) if isinstance(value, Sequence) and is_several else value
