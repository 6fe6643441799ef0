"""The same ledger gives the same proposals, release after release.

Where a change is meant to change them, ``python -m support.golden_proposals factored tpe random nsga2`` in ``tests``
prints the new digests.
"""

import pytest
from support.golden_proposals import digests

GOLDEN = {
    "factored": "59850883eb22152d",
    "tpe": "71953830cd805044",
    "random": "ad02a0196356875b",
    "nsga2": "4a9395d2289ad895",
}


@pytest.mark.parametrize("sampler", GOLDEN)
def test_proposals_of_a_planted_study_are_what_they_were(sampler: str) -> None:
    assert digests([sampler]) == {sampler: GOLDEN[sampler]}
