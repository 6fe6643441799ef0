"""Cards with the answer to a question about a study, for terminal, report and web page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from studies.score_evidence import Estimate

if TYPE_CHECKING:
    import pandas

PLACES = {"attention": "attention", "ffn": "the FFN"}
"""Names of the sides in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Card:
    """Answer to one question.

    Attributes:
        name: Name of the analysis, such as ``matters``.
        question: Question in words.
        sentences: Answer in words, and what the trials cannot decide.
        data: Numbers, the most important first; ``low`` and ``high`` are the ends of 95% intervals.
        shown: Number of rows of a short answer.
        points: Data of a figure besides ``data``; empty for none.
        note: Explanation of the data.
        metric: Metric of the scores.
    """

    name: str
    question: str
    sentences: tuple[str, ...]
    data: "pandas.DataFrame"
    shown: int
    points: "pandas.DataFrame"
    note: str
    metric: str

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], *, points: Sequence[Mapping[str, Any]] = (), **said: Any) -> Self:
        """Return a card of rows and points that are mappings."""
        import pandas

        return cls(data=pandas.DataFrame(rows), points=pandas.DataFrame(points), **said)

    def __str__(self) -> str:
        """Return the question, the answer in words, and its short table."""
        shown = self.data.head(self.shown)
        return "\n".join([self.question, *self.sentences, *([] if shown.empty else [shown.to_string(index=False)])])

    def as_entries(self) -> dict[str, object]:
        """Return the card as JSON-able values, one mapping per row."""
        from studies.analysis.frames import frame_rows

        said = {name: getattr(self, name) for name in ("name", "question", "sentences", "note")}
        return {**said, "rows": frame_rows(self.data), "points": frame_rows(self.points)}


def estimate_words(number: Estimate, metric: str) -> str:
    """Return a number with its 95% interval: ``+0.0121 ± 0.0081 accuracy``."""
    return f"{number.mean:+.4f} ± {number.reach:.4f} {metric}"


def listed(words: Sequence[str]) -> str:
    """Return ``a``, ``a and b``, or ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
