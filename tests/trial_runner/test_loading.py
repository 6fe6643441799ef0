"""Loading without a search for garbage."""

import gc

import pytest

from trial_runner.loading import loading


def test_nothing_is_looked_for_while_loading_and_after_it_all_is_as_before() -> None:
    assert gc.isenabled()
    with loading():
        assert not gc.isenabled()
        with loading():
            assert not gc.isenabled()
        assert not gc.isenabled(), "of what is loaded beside"
    assert gc.isenabled()


def test_what_cannot_be_loaded_leaves_the_search_as_it_was() -> None:
    with pytest.raises(OSError, match="damaged"), loading():
        raise OSError("damaged")
    assert gc.isenabled()
