"""Corruptions that are planted in every column of a ledger, and the findings of `verify`."""

import pytest
from support.corruption_table import found_in, reason_of, results, write_studies


@pytest.mark.slow
def test_corruptions_that_other_records_imply_are_found(tmp_path):
    whole = write_studies(tmp_path)
    assert found_in(whole) == []
    found = dict(results(whole))
    assert all("\n" not in line for lines in found.values() for line in lines)
    assert len(found) >= 385
    at_rungs = [lines for name, lines in found.items() if name.startswith("readings: at a rung")]
    assert len(at_rungs) == 2
    assert all("after the reading of step 8 it must" in lines[0] for lines in at_rungs)
    missed = [name for name, lines in found.items() if not lines]
    assert [name for name in missed if not reason_of(name)] == []
    assert len(missed) <= len(found) // 20
