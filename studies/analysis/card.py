"""The answer to a question about a study; terminal, report and web page show the same card."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from studies.score_evidence import Estimate

if TYPE_CHECKING:
    import pandas

PLACES = {"attention": "attention", "ffn": "the FFN"}
"""Either side, as it stands in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Card:
    """The answer to one question.

    Attributes:
        name: Of the analysis, such as ``matters``.
        question: In words.
        sentences: The answer in words, with what these trials do not tell.
        data: The numbers, the most important first; ``low`` and ``high`` are the ends of 95% intervals.
        shown: How many rows of the data are a short answer.
        points: What a figure draws beside the data; empty for nothing.
        note: How to read the data.
        metric: What scores are of.
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
        """A card of rows and points that are mappings."""
        import pandas

        return cls(data=pandas.DataFrame(rows), points=pandas.DataFrame(points), **said)

    def __str__(self) -> str:
        """The question, the answer in words, and its short table."""
        shown = self.data.head(self.shown)
        return "\n".join([self.question, *self.sentences, *([] if shown.empty else [shown.to_string(index=False)])])

    def as_entries(self) -> dict[str, object]:
        """The card as JSON-able values, a mapping a row."""
        from studies.analysis.frames import entries_of

        said = {name: getattr(self, name) for name in ("name", "question", "sentences", "note")}
        return {**said, "rows": entries_of(self.data), "points": entries_of(self.points)}


def estimate_words(number: Estimate, metric: str) -> str:
    """A number with its 95% interval: ``+0.0121 ± 0.0081 accuracy``."""
    return f"{number.mean:+.4f} ± {number.reach:.4f} {metric}"


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
