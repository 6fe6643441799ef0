"""What is measured of a trial after it has ended: in its last reading, beside what is there."""

import pytest

from studies.errors import StudyHeldError, WishError


@pytest.fixture
def ended(kept, values):
    """A study with a trial that has two readings."""
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    readings = [values.reading(0, step, metrics={"accuracy": 0.5}) for step in (10, 20)]
    kept.ledger.settle(kept.id, kept.epoch, 0, 1, readings=readings, outcome=values.complete)
    return kept.ledger.study("sst2")


def test_figures_are_added_to_the_last_reading_alone(kept, ended):
    before = kept.ledger.readings(ended.id, 0)
    kept.ledger.add_metrics(ended, 0, {"gsm8k/exact_match": 0.25})
    kept.ledger.add_metrics(ended, 0, {"mmlu/acc": 0.75})
    first, last = kept.ledger.readings(ended.id, 0)
    assert first == before[0]
    assert last.metrics == {"accuracy": 0.5, "gsm8k/exact_match": 0.25, "mmlu/acc": 0.75}
    assert (last.step, last.score, last.seconds) == (20, before[1].score, before[1].seconds)


def test_no_figure_is_replaced(kept, ended):
    kept.ledger.add_metrics(ended, 0, {"mmlu/acc": 0.75})
    kept.ledger.add_metrics(ended, 0, {"mmlu/acc": 0.75})
    with pytest.raises(WishError, match=r"trial 0 of 'sst2' has other figures"):
        kept.ledger.add_metrics(ended, 0, {"mmlu/acc": 0.5, "new/acc": 1.0})
    assert kept.ledger.readings(ended.id, 0)[-1].metrics == {"accuracy": 0.5, "mmlu/acc": 0.75}


def test_a_trial_without_a_reading_takes_none(kept, ended, values):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(1)])
    with pytest.raises(WishError, match=r"trial 1 of 'sst2' has none"):
        kept.ledger.add_metrics(ended, 1, {"mmlu/acc": 0.5})


def test_nothing_is_added_while_a_launch_runs_the_study(kept, ended):
    kept.ledger.hold(ended.id, "launch", 60)
    with pytest.raises(StudyHeldError):
        kept.ledger.add_metrics(ended, 0, {"mmlu/acc": 0.5})
