"""Content of a report of a study, in order."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboards.confirmations import confirmation_card
from dashboards.figures.boards import curves_figure, leaderboard_figure
from dashboards.figures.cards import figures_of
from dashboards.figures.confirmations import confirmation_figure
from dashboards.figures.figure import Figure
from search_space.published.point import PublishedPoint
from studies.analysis.discover import StudyPosterior, discovered, summary
from studies.analysis.frames import frame
from studies.analysis.leaderboard import Leaderboard, leaderboard
from studies.analysis.summaries import StudySummary
from studies.confirmation.results import ConfirmationResult, confirmation_results
from studies.ledger.ledger import Ledger

if TYPE_CHECKING:
    import pandas

_MOST_CURVES = 500
_LEADERBOARD_COLUMNS = (
    "place",
    "number",
    "method",
    "sentence",
    "state",
    "estimate",
    "estimate_low",
    "estimate_high",
    "score",
    "seeds",
    "parameters",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """One question and its answer.

    Attributes:
        name: Name of its files: letters, digits and ``-``.
        title: The question.
        sentences: The answer as text.
        figures: Figures, if any.
        table: Table of the numbers; None without one.
        note: Note on reading the numbers; empty for none.
    """

    name: str
    title: str
    sentences: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    table: "pandas.DataFrame | None" = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyReport:
    """Content of a report of a study.

    Attributes:
        summary: Summary of the study.
        sentences: Sentences to quote.
        sections: Sections in order.
    """

    summary: StudySummary
    sentences: tuple[str, ...]
    sections: tuple[ReportSection, ...]


def report_of(
    ledger: Ledger, name: str, knowledge: StudyPosterior, *, against: PublishedPoint | None = None
) -> StudyReport:
    """Build the report of a study.

    Args:
        ledger: Ledger that contains the study.
        name: Name of the study.
        knowledge: Posterior given the study's readings.
        against: Published method to compare the winner with; None for the best one.

    Raises:
        UnknownStudyError: If there is no study of that name.
        StudiesError: If the study cannot be analysed.
    """
    board = leaderboard(ledger, name)
    cards = discovered(knowledge, against=against)
    sections = [_leaderboard(board)]
    sections += [
        ReportSection(
            name=card.name,
            title=card.question,
            sentences=card.sentences,
            figures=figures_of(card),
            table=card.data,
            note=card.note,
        )
        for card in cards
    ]
    sections.append(_curves(knowledge))
    sections += [_confirmation(result) for result in confirmation_results(ledger, name)]
    return StudyReport(summary=board.summary, sentences=summary(knowledge, cards), sections=tuple(sections))


def _leaderboard(board: Leaderboard) -> ReportSection:
    return ReportSection(
        name="leaderboard",
        title="Leaderboard",
        sentences=tuple(board.verdict.splitlines()),
        figures=(leaderboard_figure(board),) if board.rows else (),
        table=board.table()[[*_LEADERBOARD_COLUMNS]].rename(columns={"sentence": "what it is"}),
        note="Complete trials by what they are expected to score if they are trained again, with 95% intervals.",
    )


def _curves(knowledge: StudyPosterior) -> ReportSection:
    """Return the section of the readings of all trials, with their states; of many trials, an even sample."""
    history = knowledge.history
    step = -(-len(history) // _MOST_CURVES)
    readings = [
        {"trial": one.number, "state": one.state.value, "fraction": history.noise.fraction(read), "score": read.score}
        for one in history[::step]
        for read in history.readings(one.number)
    ]
    return ReportSection(
        name="curves",
        title="What was read of every trial",
        sentences=(),
        figures=(curves_figure(readings, knowledge.metric),),
        table=frame(readings),
    )


def _confirmation(result: ConfirmationResult) -> ReportSection:
    card = confirmation_card(result)
    figure = confirmation_figure(card)
    return ReportSection(
        name=result.name,
        title=f"On the test split: {result.name}",
        sentences=card.sentences,
        figures=() if figure is None else (figure,),
        table=next(iter(card.tables.values())),
        note=" ".join(card.notes),
    )
