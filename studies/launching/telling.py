"""What a launch says before work begins, in lines."""

from studies.foresight.data import data_facts
from studies.foresight.noise import noise_warning_of
from studies.records import StudyRecord
from studies.store.database import superuser
from studies.store.invariants import lost_weights
from studies.store.ledger import Ledger
from trial_runner.tasks.kind import Prepared

_MOST_NAMED = 10


def lost_lines(ledger: Ledger, study: StudyRecord) -> tuple[str, ...]:
    """What is said of trained trials whose files are gone or changed, in a line; nothing where all are there."""
    trials = [str(artefact.trial) for artefact in lost_weights(ledger, study)]
    if not trials:
        return ()
    shown = ", ".join(trials[:_MOST_NAMED]) + (" and more" if len(trials) > _MOST_NAMED else "")
    return (
        f"the weights of {len(trials)} trained trials are gone or changed: trial {shown}. "
        f"'deltaspace verify {study.name} --retrain' trains them anew, with their seeds.",
    )


def role_lines(ledger: Ledger) -> tuple[str, ...]:
    """What is said of a role that may do more than is needed, in a line."""
    role = ledger.read(superuser)
    if role is None:
        return ()
    return (f"the role {role} is a superuser of the server; one that owns the database is enough, and safer.",)


def data_lines(task: Prepared | None) -> tuple[str, ...]:
    """What a launch says of the data: `deltaspace check` in short."""
    if task is None:
        return ()
    facts = data_facts(task)
    noise = noise_warning_of(facts)
    return (f"{facts.summary}.", *((noise,) if noise else ()))
