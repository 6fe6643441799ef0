"""Tests that need a program which the machine lacks: skipped and reported, or failed where none may be skipped."""

import os
from typing import NoReturn

import pytest

COMPLETE = "DELTASPACE_TEST_COMPLETE"
WORDS = "left out, the machine lacks "


def skip_without(program: str, remedy: str) -> NoReturn:
    """Skip the running test, or fail if ``DELTASPACE_TEST_COMPLETE`` is 1.

    Args:
        program: Missing program.
        remedy: Command that installs it.
    """
    if os.environ.get(COMPLETE) == "1":
        pytest.fail(f"every test must run here; {program} is missing. Run: {remedy}", pytrace=False)
    pytest.skip(f"{WORDS}{program} ({remedy})")
