"""The handle of a trial, as it was when it was asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Never

from search_space.closest_name import name_hint
from search_space.configuration import Configuration
from studies.analysis.estimates import estimates_of
from studies.analysis.readings import readings_table
from studies.ledger.ledger import Ledger
from studies.records import (
    ArtefactRecord,
    AttemptRecord,
    EventRecord,
    Reading,
    StudyRecord,
    TrialRecord,
    TrialState,
)
from studies.score_evidence import Estimate

if TYPE_CHECKING:
    import pandas

    from studies.exports.export import Export, ExportKind

_FITTED = 2_000
"""In larger studies no model is fitted for a single trial that did not run to its end; nothing repeats it, either."""

_OTHER_NAMES = {"params": "configuration and learning_rates", "value": "score", "values": "scores", "id": "number"}


def absent(owner: object, name: str, others: Mapping[str, str]) -> AttributeError:
    """What to say of an attribute that is not there: what others call by its name, or the nearest there is.

    Args:
        owner: That was asked.
        name: That it lacks.
        others: By a name that is common elsewhere, what is meant.
    """
    kind = type(owner)
    if name in others:
        hint = f" Use {others[name]}."
    else:
        hint = name_hint(name, [one for one in dir(kind) if not one.startswith("_")])
    return AttributeError(f"{kind.__name__!r} has no attribute {name!r}.{hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial of a study, as it was when it was asked for.

    Example:
        >>> best = deltaspace.open_study("docstrings").best
        >>> best.number, best.score, best.stored_parameters
        (17, 0.834, 17440)
        >>> best.readings.plot("step", "score")
        >>> best.export("winner")

    Attributes:
        record: What was proposed, and how it ended.
        study_record: Its study.
        attempts: Its executions.
        reading_records: Its measurements, by step.
        artefacts: Its files.
        events: What happened to it.
        replicates: The trials that repeat it with other seeds.
        estimate: What it is expected to score if it is trained again to the end; None where that cannot be told.
        storage: URL of the database that holds it.
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
        """0, 1, 2, … in its study."""
        return self.record.number

    @property
    def state(self) -> TrialState:
        """Queued, running, complete, pruned or failed; compares equal to these words."""
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
        """The published method that it is; None for what the search proposed."""
        return self.record.method

    @property
    def description(self) -> str:
        """What it is, in one phrase."""
        return self.record.description

    @property
    def configuration(self) -> Configuration:
        """What is changed in the backbone, and where."""
        return self.record.configuration

    @property
    def learning_rates(self) -> Mapping[str, float]:
        """Peak rates of ``attention`` and ``ffn``, of those that have edits."""
        sides = {"attention": self.record.attention, "ffn": self.record.ffn}
        return {name: rate for name, side in sides.items() if side is not None and (rate := side.learning_rate)}

    @property
    def stored_parameters(self) -> int:
        """Parameters that must be kept, which the budget binds; without the task head."""
        return self.record.stored_parameters

    @property
    def readings(self) -> "pandas.DataFrame":
        """Its measurements by step, one column per metric; times in seconds."""
        return readings_table(self.reading_records)

    def export(
        self,
        folder: str | Path,
        *,
        kind: "ExportKind" = "deltaspace",
        retrain: "bool | Callable[[Reading], None]" = False,
    ) -> "Export":
        """Write its trained weights, what they are, and a model card to a new folder.

        Example:
            >>> study.trial(17).export("adapter", kind="peft")

        Args:
            folder: Must not exist.
            kind: ``deltaspace`` (safetensors and JSON), ``peft`` (an adapter of peft) or ``merged`` (plain
                weights).
            retrain: Train it from scratch to its last step first; a function is told of each measurement.

        Raises:
            StudiesError: If nothing is left of the trial that could be exported.
            RunnerError: If the folder is there already, or the trial cannot be written in this form.
        """
        from studies.exports.export import export_trial

        tell = retrain if callable(retrain) else (lambda reading: None) if retrain else None
        with Ledger.open(self.storage, read_only=True) as ledger:
            return export_trial(ledger, self.study, self.number, Path(folder), kind=kind, anew=tell)

    def as_entries(self) -> dict[str, object]:
        """Return all that is known of it, by the names of its JSON; ``first_score`` is that of its own seed."""
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
        """What it is and how it went, on one line."""
        times = f" ×{len(self.scores)}" if len(self.scores) > 1 else ""
        score = "" if self.score is None else f", {self.study_record.metric} {self.score:.4f}{times}"
        origin = self.method or "discovered"
        return (
            f"trial {self.number} of {self.study} ({origin}, {self.state.value}{score}, "
            f"{self.stored_parameters:,} parameters): {self.description}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{readings_table(self.reading_records)._repr_html_()}"

    def __getattr__(self, name: str) -> Never:
        """Say what is meant by a name that others use."""
        raise absent(self, name, _OTHER_NAMES)


def trial_of(ledger: Ledger, name: str, number: int, *, storage: str) -> Trial:
    """All that is known of one trial.

    Raises:
        UnknownStudyError: If there is no study of that name.
        UnknownTrialError: If it has no trial of that number.
    """
    study = ledger.study(name)
    record = ledger.trial(study.id, number)
    is_small = sum(ledger.state_counts(study.id).values()) <= _FITTED
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
