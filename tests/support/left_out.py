"""Tests that need a program which the machine lacks: left out and told of, or failed where none may be left out."""

import os
from typing import NoReturn

import pytest

COMPLETE = "DELTASPACE_TEST_COMPLETE"
WORDS = "left out, the machine lacks "


def leave_out(program: str, remedy: str) -> NoReturn:
    """Skip the test that asks, unless ``DELTASPACE_TEST_COMPLETE`` is 1.

    Args:
        program: What is missing.
        remedy: The command that installs it.
    """
    if os.environ.get(COMPLETE) == "1":
        pytest.fail(f"every test must run here; {program} is missing. Run: {remedy}", pytrace=False)
    pytest.skip(f"{WORDS}{program} ({remedy})")
