"""Records of studies, trials and readings: frozen values, independent of their storage."""

from studies.records.reading import ArtefactRecord as ArtefactRecord
from studies.records.reading import ExampleCounts as ExampleCounts
from studies.records.reading import ExampleRecord as ExampleRecord
from studies.records.reading import TrialReport as TrialReport
from studies.records.study import Annotation as Annotation
from studies.records.study import ConfirmationRecord as ConfirmationRecord
from studies.records.study import Contender as Contender
from studies.records.study import EventKind as EventKind
from studies.records.study import EventRecord as EventRecord
from studies.records.study import NewStudy as NewStudy
from studies.records.study import StudyKind as StudyKind
from studies.records.study import StudyRecord as StudyRecord
from studies.records.study import annotations_of as annotations_of
from studies.records.trial import AttemptRecord as AttemptRecord
from studies.records.trial import RankedTrial as RankedTrial
from studies.records.trial import TrialOutline as TrialOutline
from studies.records.trial import TrialRecord as TrialRecord
from studies.records.trial import TrialState as TrialState
from studies.records.trial import TrialTally as TrialTally
from trial_runner.requests import Reading as Reading
