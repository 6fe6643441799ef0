"""Optuna's own tests of samplers, on the factored sampler in studies whose parameters are not those of its space."""

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)

from search_space.space.space import SearchSpace
from studies.search.factored_sampler import FactoredSampler
from studies.surrogate.candidate_search import FactoredSearch


class TestFactoredSampler(BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase):
    # it proposes the parameters of its own space together, and leaves others to independent draws
    test_sample_relative_numerical = None
    test_sample_relative_categorical = None
    test_sample_relative_mixed = None

    @pytest.fixture
    def sampler(self, space: SearchSpace) -> Callable[[], BaseSampler]:
        return lambda: FactoredSampler(FactoredSearch(space, seed=0))
