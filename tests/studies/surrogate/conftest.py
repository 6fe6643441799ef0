import functools
from collections.abc import Callable

import pytest
from support.factored_search import MeasuredTrial, drawn

from search_space.space.space import SearchSpace

History = Callable[..., list[MeasuredTrial]]


@pytest.fixture(scope="session")
def history(space: SearchSpace) -> History:
    """So many trials, published ones first and then at random."""
    return functools.partial(drawn, space)
