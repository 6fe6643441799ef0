"""Studies that get another name, or go. Every function works inside a transaction of the caller."""

from sqlalchemy import Connection, bindparam, delete, select, update

from studies.errors import WishError
from studies.records import StudyRecord
from studies.store import holding, looking
from studies.store.copying import with_name
from studies.store.tables import (
    ARTEFACTS,
    ATTEMPTS,
    CONFIRMATIONS,
    EVENTS,
    EXAMPLES,
    READINGS,
    STUDIES,
    TRIALS,
)

_TRIALS = select(TRIALS.c.id).where(TRIALS.c.study_id == bindparam("of_study"))


def check_is_free(connection: Connection, study: StudyRecord) -> None:
    """See that no launch runs a study, and keep it so until the transaction ends.

    Raises:
        StudyHeldError: If one does.
    """
    holding.lock(connection, study.id)
    present = holding.holder(connection, study.id)
    if present is not None and present.is_live:
        raise holding.held_error(study.name, present)


def rename(connection: Connection, study: StudyRecord, name: str) -> None:
    """Call a study otherwise.

    Raises:
        StudyHeldError: If a launch runs it.
        StudiesError: If the name is another's.
    """
    check_is_free(connection, study)
    if any(other.name == name for other in looking.studies(connection, None) if other.id != study.id):
        raise WishError(f"a study needs a name of its own; '{name}' is another study's. Choose another.")
    values = {"name": name, "specification": with_name(study.specification, name)}
    connection.execute(update(STUDIES).where(STUDIES.c.id == study.id).values(**values))


def remove(connection: Connection, study: StudyRecord) -> None:
    """Delete all that is recorded of a study, which no confirmation names any more.

    Raises:
        StudyHeldError: If a launch runs it.
    """
    check_is_free(connection, study)
    key = {"of_study": study.id}
    for table in (EXAMPLES, ARTEFACTS, READINGS, ATTEMPTS):
        connection.execute(delete(table).where(table.c.trial_id.in_(_TRIALS)), key)
    for table in (TRIALS, EVENTS, CONFIRMATIONS):
        connection.execute(delete(table).where(table.c.study_id == bindparam("of_study")), key)
    connection.execute(delete(STUDIES).where(STUDIES.c.id == bindparam("of_study")), key)
