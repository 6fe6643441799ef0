"""A server that goes away: what was on its way is written once, whether or not the commit had arrived."""

import threading
import time

import psycopg
import pytest

from studies.errors import FencedError, StorageError
from studies.ledger import database
from studies.ledger.ledger import Ledger
from studies.ledger.reports import Settled
from studies.records import TrialReport, TrialState

pytestmark = pytest.mark.postgres


@pytest.fixture
def storage_url(postgres_url):
    return postgres_url


@pytest.fixture(params=[True, False], ids=["arrived", "lost"])
def drop_next_commit(request, ledger, monkeypatch):
    """Drop the connection at the next commit: just after the server has committed, or just before."""

    def arm():
        dialect = ledger.read(lambda link: link.dialect)
        original = type(dialect).do_commit
        armed = [True]

        def do_commit(connection):
            if not armed:
                original(dialect, connection)
                return
            armed.clear()
            if request.param:
                original(dialect, connection)
            connection.driver_connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

        monkeypatch.setattr(dialect, "do_commit", do_commit)

    return arm


def test_a_study_is_created_once(ledger, values, drop_next_commit):
    drop_next_commit()
    study = ledger.create_study(values.study())
    assert ledger.studies() == [study]


def test_trials_are_added_once(kept, values, drop_next_commit):
    drop_next_commit()
    added = kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0), values.trial(1)], worker="w")
    assert [trial.number for trial in added] == [0, 1]
    assert kept.ledger.trials(kept.id) == added
    assert [attempt.attempt for attempt in kept.ledger.attempts(kept.id)] == [1, 1]


def test_a_lease_is_given_once(kept, values, drop_next_commit):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0), values.trial(1)])
    drop_next_commit()
    given = kept.ledger.lease_all(kept.id, kept.epoch, [1, 0], "w")
    assert None not in given
    assert kept.ledger.attempts(kept.id) == given[::-1]


def test_leases_are_reclaimed_and_recorded_once(kept, values, drop_next_commit):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0), values.trial(1)], worker="w")
    drop_next_commit()
    assert kept.ledger.release(kept.id, kept.epoch, "w", "gone") == [0, 1]
    assert len([event for event in kept.ledger.events(kept.id) if event.kind == "lost"]) == 2


def test_an_end_is_accepted_once(kept, values, drop_next_commit):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    kept.ledger.settle(kept.id, kept.epoch, 0, 1, artefact=values.artefact(0, 5))
    drop_next_commit()
    reading = values.reading(0, 10, score=0.75)
    dropped = kept.ledger.settle(kept.id, kept.epoch, 0, 1, readings=[reading], **values.complete)
    assert dropped == ("/snapshots/0-5",)
    assert kept.ledger.readings(kept.id) == [reading]
    assert kept.ledger.trial(kept.id, 0).state is TrialState.COMPLETE
    assert kept.ledger.settle(kept.id, kept.epoch, 0, 1, **values.complete) is None


def test_reports_of_several_trials_are_accepted_once(kept, values, drop_next_commit):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0), values.trial(1)], worker="w")
    drop_next_commit()
    readings = [values.reading(number, 10, score=0.75) for number in range(2)]
    reports = [
        TrialReport(trial=0, attempt=1, reading=readings[0], **values.complete),
        TrialReport(trial=1, attempt=1, reading=readings[1]),
        TrialReport(trial=1, attempt=2, **values.complete),
    ]
    settled = kept.ledger.settle_all(kept.id, kept.epoch, reports)
    trials = kept.ledger.trials(kept.id)
    assert settled == [Settled(unlinked=(), ended_at=trials[0].ended_at), Settled(unlinked=()), None]
    assert kept.ledger.readings(kept.id) == readings
    assert [one.state for one in trials] == [TrialState.COMPLETE, TrialState.RUNNING]


def test_a_report_names_dropped_files_once_more_rather_than_never(kept, values, drop_next_commit):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    for step in (5, 10):
        kept.ledger.settle(kept.id, kept.epoch, 0, 1, artefact=values.artefact(0, step))
    drop_next_commit()
    dropped = kept.ledger.settle(kept.id, kept.epoch, 0, 1, artefact=values.artefact(0, 15))
    assert dropped == ("/snapshots/0-5",)
    assert [artefact.step for artefact in kept.ledger.artefacts(kept.id)] == [10, 15]


def test_a_late_report_stays_refused(kept, values, drop_next_commit):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    kept.ledger.release(kept.id, kept.epoch, "w", "gone")
    drop_next_commit()
    assert kept.ledger.settle(kept.id, kept.epoch, 0, 1, **values.complete) is None


def test_a_keeper_that_was_replaced_meanwhile_is_fenced(kept, values, postgres_url, monkeypatch):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    dialect = kept.ledger.read(lambda link: link.dialect)

    def do_commit(connection):
        monkeypatch.undo()
        connection.driver_connection.close()
        with Ledger.open(postgres_url) as other:
            other.take_over(kept.id, "second")
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(dialect, "do_commit", do_commit)
    with pytest.raises(FencedError):
        kept.ledger.settle(kept.id, kept.epoch, 0, 1, **values.complete)
    assert kept.ledger.trial(kept.id, 0).state is TrialState.RUNNING


def test_a_connection_that_died_while_idle_is_replaced(kept, postgres_server, values):
    others = "usename = 'deltaspace' AND pid <> pg_backend_pid()"
    postgres_server.run_sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
    assert len(kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)])) == 1


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_server_that_restarts_is_waited_for(kept, postgres_server, values, how):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)])
    postgres_server.stop(how)
    restart = threading.Thread(target=lambda: (time.sleep(0.5), postgres_server.start()))
    restart.start()
    try:
        assert len(kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(1)])) == 1
        assert [trial.number for trial in kept.ledger.trials(kept.id)] == [0, 1]
    finally:
        restart.join()


def test_a_server_that_stays_away_is_given_up_in_one_line(kept, postgres_server, values, monkeypatch):
    monkeypatch.setattr(database, "RETRY_PAUSES_SECONDS", (0.05, 0.05))
    postgres_server.stop()
    try:
        for use in (kept.ledger.studies, lambda: kept.ledger.take_over(kept.id, "second")):
            with pytest.raises(StorageError, match=r"^cannot reach postgresql://") as error:
                use()
            assert "\n" not in str(error.value)
    finally:
        postgres_server.start()
