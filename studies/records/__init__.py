"""What a study, a trial and a reading are: frozen values, whatever holds them."""

from studies.records.reading import ArtefactRecord, ExampleCounts, ExampleRecord, ReadingRecord
from studies.records.study import (
    Annotation,
    ConfirmationRecord,
    Contender,
    EventKind,
    EventRecord,
    NewStudy,
    StudyKind,
    StudyRecord,
    annotations_of,
)
from studies.records.trial import (
    AttemptRecord,
    NewTrial,
    Outcome,
    RankedTrial,
    Settlement,
    SiteDimensions,
    TrialOutline,
    TrialRecord,
    TrialStanding,
    TrialState,
    TrialTally,
)

__all__ = [
    "Annotation",
    "ArtefactRecord",
    "AttemptRecord",
    "ConfirmationRecord",
    "Contender",
    "EventKind",
    "EventRecord",
    "ExampleCounts",
    "ExampleRecord",
    "NewStudy",
    "NewTrial",
    "Outcome",
    "RankedTrial",
    "ReadingRecord",
    "Settlement",
    "SiteDimensions",
    "StudyKind",
    "StudyRecord",
    "TrialOutline",
    "TrialRecord",
    "TrialStanding",
    "TrialState",
    "TrialTally",
    "annotations_of",
]
