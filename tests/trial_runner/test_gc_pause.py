"""Loading without a search for garbage."""

import gc

import pytest

from trial_runner.gc_pause import uncollected


def test_collector_is_paused_while_loading():
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled(), "of what is loaded beside"
    assert gc.isenabled()


def test_collection_goes_on_after_a_failure():
    with pytest.raises(ZeroDivisionError), uncollected():
        raise ZeroDivisionError
    assert gc.isenabled()
