"""Content of a confirmation or an ablation, shared by terminal, report and page."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from studies.confirmation.ablation_path import AblationResult, path_notes, path_of, path_sentences
from studies.confirmation.results import ConfirmationResult, notes, verdict_sentences

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationCard:
    """Test scores of configurations, with conclusions and notes.

    Attributes:
        result: Result with all contenders.
        path: Steps from a published method to a trial; None for a confirmation.
        subject: Description of the trained configurations.
        sentences: Conclusions.
        notes: Notes on reading the numbers.
        tables: Tables by title.
    """

    result: ConfirmationResult
    path: AblationResult | None
    subject: str
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    tables: "dict[str, pandas.DataFrame]"

    def as_entries(self) -> dict[str, object]:
        """Return the card as values for JSON."""
        said = {"sentences": self.sentences, "notes": self.notes}
        if self.path is not None:
            return {"finished": self.result.is_finished, **said, "ablation": self.path}
        facts = {"finished": self.result.is_finished, "winner": self.result.winner.label}
        return {**facts, **said, "confirmation": self.result}


def confirmation_card(result: ConfirmationResult) -> ConfirmationCard:
    """Return the card of a confirmation; for an ablation, with the steps of its path."""
    path = path_of(result) if result.is_path else None
    if path is None:
        subject = f"{len(result.contenders)} configuration{'s' * (len(result.contenders) > 1)} of {result.study}"
        said, remarks, tables = verdict_sentences(result), notes(result), result.tables()
    else:
        subject = f"from {path.steps[0].contender.label} to {path.steps[-1].contender.label} of {result.study}"
        said, remarks, tables = tuple(path_sentences(path)), tuple(path_notes(path)), path.tables()
    return ConfirmationCard(result=result, path=path, subject=subject, sentences=said, notes=remarks, tables=tables)
