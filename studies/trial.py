"""Handle of a trial, as it was when it was read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Never

from search_space.closest_name import name_hint
from search_space.configuration import Configuration
from studies.analysis.estimates import estimates_of
from studies.analysis.methods import method_name
from studies.analysis.readings import readings_table
from studies.ledger.ledger import Ledger
from studies.records import ArtefactRecord, AttemptRecord, EventRecord, Reading, StudyRecord, TrialRecord, TrialState
from studies.score_evidence import Estimate

if TYPE_CHECKING:
    import pandas

    from studies.exports.export import Export, ExportKind

FITTED = 2_000
"""Largest study for which a model is fitted for one trial that did not run to its end and has no replicates."""

_OTHER_NAMES = {"params": "configuration and learning_rates", "value": "score", "values": "scores", "id": "number"}


def absent(owner: object, name: str, others: Mapping[str, str]) -> AttributeError:
    """Return the error of a missing attribute, with the name that is meant or the nearest one.

    Args:
        owner: Object that lacks the attribute.
        name: Name of the attribute.
        others: Attributes of the object by the names that other libraries give them.
    """
    kind = type(owner)
    if name in others:
        hint = f" Use {others[name]}."
    else:
        hint = name_hint(name, [one for one in dir(kind) if not one.startswith("_")])
    return AttributeError(f"{kind.__name__!r} has no attribute {name!r}.{hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A trial of a study, as it was when it was read.

    Example:
        >>> best = deltaspace.open_study("docstrings").best
        >>> best.number, best.score, best.stored_parameters
        (17, 0.834, 17440)
        >>> best.readings.plot("step", "score")
        >>> best.export("winner")

    Attributes:
        record: Proposal and result.
        study_record: Record of its study.
        attempts: Its executions.
        reading_records: Its measurements, by step.
        artefacts: Its files.
        events: Its events.
        replicates: Trials that repeat it with other seeds.
        estimate: Expected score of another full training; None if unknown.
        storage: URL of its database.
    """

    record: TrialRecord
    study_record: StudyRecord
    attempts: tuple[AttemptRecord, ...]
    reading_records: tuple[Reading, ...]
    artefacts: tuple[ArtefactRecord, ...]
    events: tuple[EventRecord, ...]
    replicates: tuple[TrialRecord, ...]
    estimate: Estimate | None
    storage: str

    @property
    def study(self) -> str:
        """Name of its study."""
        return self.study_record.name

    @property
    def number(self) -> int:
        """Number in its study, counted from 0."""
        return self.record.number

    @property
    def state(self) -> TrialState:
        """State: queued, running, complete, pruned or failed; equal to these words."""
        return self.record.state

    @property
    def score(self) -> float | None:
        """The study's metric on validation at the last step, the mean of `scores`; None unless complete."""
        return fmean(self.scores) if self.scores else None

    @property
    def scores(self) -> tuple[float, ...]:
        """Final scores of its trainings: its own first, then those of the trials that repeat it with other seeds."""
        return tuple(one.score for one in (self.record, *self.replicates) if one.score is not None)

    @property
    def method(self) -> str | None:
        """Name of the published method; None for a proposal of the search."""
        return self.record.method

    @property
    def description(self) -> str:
        """Its configuration in one phrase."""
        return self.record.description

    @property
    def configuration(self) -> Configuration:
        """Edits of the backbone and their places."""
        return self.record.configuration

    @property
    def learning_rates(self) -> Mapping[str, float]:
        """Peak learning rates of ``attention`` and ``ffn``, where they have edits."""
        sides = {"attention": self.record.attention, "ffn": self.record.ffn}
        return {name: rate for name, side in sides.items() if side is not None and (rate := side.learning_rate)}

    @property
    def stored_parameters(self) -> int:
        """Number of stored parameters, which the budget limits; without the task head."""
        return self.record.stored_parameters

    @property
    def readings(self) -> "pandas.DataFrame":
        """Measurements by step, one column per metric; times in seconds."""
        return readings_table(self.reading_records)

    def export(
        self,
        folder: str | Path,
        *,
        kind: "ExportKind" = "deltaspace",
        retrain: "bool | Callable[[Reading], None]" = False,
    ) -> "Export":
        """Write its trained weights, its configuration and a model card to a new folder.

        Example:
            >>> study.trial(17).export("adapter", kind="peft")

        Args:
            folder: Folder that must not exist.
            kind: ``deltaspace`` (safetensors and JSON), ``peft`` (an adapter of peft) or ``merged`` (plain weights).
            retrain: Whether to train it again to its last step first; or a function that receives each reading of that.

        Raises:
            StudiesError: If the trial has nothing left to export.
            RunnerError: If the folder exists, or the trial cannot be written in this form.
        """
        from studies.exports.export import export_trial

        tell = retrain if callable(retrain) else (lambda reading: None) if retrain else None
        with Ledger.open(self.storage, read_only=True) as ledger:
            return export_trial(ledger, self.study, self.number, Path(folder), kind=kind, anew=tell)

    def as_entries(self) -> dict[str, object]:
        """Return its record by the names of its JSON; ``first_score`` is the score of its own seed."""
        record = {one.name: getattr(self.record, one.name) for one in fields(self.record) if one.repr}
        return {
            "study": self.study_record,
            "trial": {**record, "score": self.score, "first_score": self.record.score},
            "attempts": self.attempts,
            "readings": self.reading_records,
            "artefacts": self.artefacts,
            "events": self.events,
            "replicates": self.replicates,
            "estimate": self.estimate,
        }

    def __str__(self) -> str:
        """Return its configuration and result on one line."""
        times = f" ×{len(self.scores)}" if len(self.scores) > 1 else ""
        score = "" if self.score is None else f", {self.study_record.metric} {self.score:.4f}{times}"
        return (
            f"trial {self.number} of {self.study} ({method_name(self.record)}, {self.state.value}{score}, "
            f"{self.stored_parameters:,} parameters): {self.description}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{readings_table(self.reading_records)._repr_html_()}"

    def __getattr__(self, name: str) -> Never:
        """Raise an error that suggests the attribute meant by a name of another library."""
        raise absent(self, name, _OTHER_NAMES)


def trial_of(ledger: Ledger, name: str, number: int, *, storage: str) -> Trial:
    """Return a trial with its records.

    Raises:
        UnknownStudyError: If there is no study of that name.
        UnknownTrialError: If it has no trial of that number.
    """
    study = ledger.study(name)
    record = ledger.trial(study.id, number)
    is_small = sum(ledger.state_counts(study.id).values()) <= FITTED
    trials = ledger.outlines(study.id) if is_small or record.state is TrialState.COMPLETE else []
    return Trial(
        record=record,
        study_record=study,
        attempts=tuple(ledger.attempts(study.id, number)),
        reading_records=tuple(ledger.readings(study.id, number)),
        artefacts=tuple(ledger.artefacts(study.id, number)),
        events=tuple(event for event in ledger.events(study.id) if event.trial == number),
        replicates=tuple(ledger.trial(study.id, one.number) for one in trials if one.replicate_of == number),
        estimate=estimates_of(ledger, study, trials).of.get(number),
        storage=storage,
    )
