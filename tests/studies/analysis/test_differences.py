"""Paired differences of trials of a ledger."""

import pytest
from support.planted_ledger import EXAMPLES, Planted

from studies.analysis.readings import paired_difference
from studies.errors import UnknownTrialError


def test_two_trials_are_compared_where_both_were_measured(tmp_path):
    planted = Planted(f"sqlite:///{tmp_path / 'planted.db'}", 2, noise_of_trials={0: 0.1})
    with planted.ledger as ledger:
        found = paired_difference(ledger, "planted", 0, 1)
        # of the planted examples the first ones are right, so that all that differ speak for the same trial
        right = [round(EXAMPLES * (trial.score or 0.0)) for trial in ledger.trials(planted.study.id)]
        share = (right[0] - right[1]) / EXAMPLES
        assert found.mean == pytest.approx(share, rel=1e-12)
        assert found.standard_error == pytest.approx((share * (1 - share) / (EXAMPLES - 1)) ** 0.5, rel=1e-9)
        with pytest.raises(UnknownTrialError, match="no trial 9"):
            paired_difference(ledger, "planted", 0, 9)
