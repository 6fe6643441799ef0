"""What is measured of a trial after it has ended. Every function works inside a transaction of the caller."""

from collections.abc import Mapping

from sqlalchemy import Connection, select, update

from studies.errors import WishError
from studies.records import StudyRecord
from studies.store.removing import check_is_free
from studies.store.tables import READINGS, TRIALS


def add_metrics(connection: Connection, study: StudyRecord, number: int, metrics: Mapping[str, float]) -> None:
    """Put figures of other tasks into the last reading of a trial, beside those that are there.

    Raises:
        StudyHeldError: If a launch runs the study.
        WishError: If the trial has no reading, or one has another figure of a name.
    """
    check_is_free(connection, study)
    last = connection.execute(
        select(READINGS.c.trial_id, READINGS.c.step, READINGS.c.metrics)
        .join(TRIALS, TRIALS.c.id == READINGS.c.trial_id)
        .where(TRIALS.c.study_id == study.id, TRIALS.c.number == number)
        .order_by(READINGS.c.step.desc())
        .limit(1)
    ).one_or_none()
    if last is None or {**last.metrics, **metrics} != {**metrics, **last.metrics}:
        why = "has none" if last is None else "has other figures of these names"
        raise WishError(f"figures are added to the last reading of a trial; trial {number} of '{study.name}' {why}.")
    of_last = (READINGS.c.trial_id == last.trial_id, READINGS.c.step == last.step)
    connection.execute(update(READINGS).where(*of_last).values(metrics={**last.metrics, **metrics}))
