"""A trial of the ledger as it is lent to a worker."""

from studies.keeping.messages import Lease
from studies.records import NewTrial, StudyRecord, TrialRecord
from studies.search.candidates import trial_request
from studies.store.files import is_own_file
from studies.store.ledger import Ledger
from trial_runner.requests import TrainingPlan


def lease_of(
    ledger: Ledger, study: StudyRecord, trial: NewTrial | TrialRecord, *, attempt: int, plan: TrainingPlan
) -> Lease:
    """An attempt at a trial, with what earlier ones left of their own."""
    request = trial_request(trial, attempt=attempt, plan=plan)
    if attempt == 1:
        return Lease(request=request)
    artefacts = ledger.artefacts(study.id, trial.number)
    own = [one for one in artefacts if one.kind == "snapshot" and is_own_file(study, one.path)]
    return Lease(request=request, snapshots=tuple(sorted(own, key=lambda one: -one.step)))
