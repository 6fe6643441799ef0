"""Many small cases in one node: each is a subtest, so all that fail are told, and none costs what a node does."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each(argument: str, values: Iterable[Any], ids: Callable[[Any], str] = str) -> Callable[..., Any]:
    """Run a test for each value of an argument, within one node. Stands right above the test.

    Args:
        argument: Name of the argument.
        values: What it is, one after another; at least one.
        ids: How a value is called where it fails.
    """
    cases = list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def looped(subtests: pytest.Subtests, **given: Any) -> None:
            assert cases
            for value in cases:
                with subtests.test(**{argument: ids(value)}):
                    test(**given, **{argument: value})

        own = [one for one in inspect.signature(test).parameters.values() if one.name != argument]
        subtests = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        looped.__signature__ = inspect.Signature([subtests, *own])  # type: ignore[attr-defined]
        looped.__name__, looped.__doc__, looped.__module__ = test.__name__, test.__doc__, test.__module__
        return looped

    return decorate
