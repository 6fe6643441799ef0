"""The time that is written: the machine's clock may be set while a study runs, and between two launches."""

from datetime import UTC, datetime, timedelta

import pytest

from studies.ledger import clock
from studies.ledger.clock import WrittenTime
from studies.records import TrialState


class SetBack(datetime):
    """Wall clock that was set back by a day."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) - timedelta(days=1)


def test_clock_set_back_does_not_change_written_times(monkeypatch):
    written = WrittenTime()
    before = written.now()
    monkeypatch.setattr(clock, "datetime", SetBack)
    assert timedelta() <= written.now() - before < timedelta(hours=1)


def test_future_time_in_the_ledger_is_followed_within_limits():
    written = WrittenTime()
    ahead = datetime.now(UTC) + timedelta(days=2)
    written.follow(ahead)
    assert timedelta() <= written.now() - ahead < timedelta(hours=1)
    written.follow(ahead - timedelta(days=1))
    assert written.now() >= ahead
    written.follow(ahead + timedelta(days=400))
    assert written.now() < ahead + timedelta(days=1)


@pytest.mark.parametrize("ending", ["recovered", "settled"])
def test_clock_set_back_ends_no_trial_before_its_start(kept, values, monkeypatch, ending):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    monkeypatch.setattr(clock, "datetime", SetBack)
    later = WrittenTime()
    for user in ("keeper_writes", "leases", "reports"):
        monkeypatch.setattr(f"studies.ledger.{user}.WRITTEN_TIME", later)
    epoch = kept.ledger.take_over(kept.id, "later")
    if ending == "recovered":
        kept.ledger.release(kept.id, epoch, None, "its keeper was replaced")
    else:
        assert kept.ledger.settle(kept.id, epoch, 0, 1, **values.complete) is not None
        trial = kept.ledger.trial(kept.id, 0)
        assert trial.state is TrialState.COMPLETE
        assert trial.ended_at >= trial.created_at
    (attempt,) = kept.ledger.attempts(kept.id)
    assert attempt.ended_at >= attempt.started_at
    times = [event.at for event in kept.ledger.events(kept.id)]
    assert times == sorted(times)
