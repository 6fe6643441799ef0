"""Limits of a proposal in addition to the budget: size, extra FLOPs, mergeability."""

from statistics import median

import pytest
from support.edits import rates_of

from search_space.backbones.shape import BackboneShape
from search_space.errors import BudgetError, SearchSpaceError
from search_space.mergeability import unmergeable_edits
from search_space.parameter_counts.budget import solve
from search_space.parameter_counts.flops import extra_flops
from search_space.space.options import SpaceOptions
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SIZE, SearchSpace
from search_space.space.trial_protocol import FloatRange

HALF_PERCENT = 620_000
DRAWS = 60


def _space(shape: BackboneShape, **options: object) -> SearchSpace:
    return SearchSpace(shape=shape, budget=HALF_PERCENT, options=SpaceOptions(**options))  # type: ignore[arg-type]


def test_size_is_a_parameter_only_with_a_range(roberta):
    sized = _space(roberta, size=(0.125, 1.0)).parameters()
    assert sized.pop(SIZE) == FloatRange(low=0.125, high=1.0, log=True)
    assert sized == _space(roberta).parameters()


def test_a_proposal_uses_its_share_of_the_budget_and_no_more(roberta):
    space = _space(roberta, size=(0.125, 1.0))
    used = []
    for seed in range(DRAWS):
        found = space.suggest(RandomTrial(seed))
        if SIZE not in found.parameters:
            assert not any(edit.sized_form for edit in found.configuration.edits)
            continue
        allowed = int(float(found.parameters[SIZE]) * HALF_PERCENT)
        smallest = space.suggest({**found.parameters, SIZE: 1e-9}).counts.stored
        assert found.counts.stored <= max(allowed, smallest)
        used.append(found.counts.stored / allowed)
    assert 0.97 < median(used) <= 1


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"budget_fraction": 0.0}, r"a share of the budget in \(0, 1\]; got 0.0"),
        ({"budget_fraction": 1.5}, r"a share of the budget in \(0, 1\]; got 1.5"),
        ({"extra_flops": -1}, "extra FLOPs must be at least 0; got -1"),
    ],
)
def test_a_limit_out_of_its_range_is_refused(roberta, limits, error):
    structure = _space(roberta).suggest(RandomTrial(0)).configuration
    with pytest.raises(BudgetError, match=error):
        solve(structure, roberta, attention_share=0.5, parameters=HALF_PERCENT, **limits)


def test_no_proposal_is_beyond_the_budget_however_small_its_bottlenecks(roberta, monkeypatch):
    space = _space(roberta, size=(0.125, 1.0))
    found = space.suggest(RandomTrial(0))
    monkeypatch.setattr(space, "budget", 10)
    with pytest.raises(BudgetError, match="the budget is 10"):
        space.suggest(found.parameters)


def test_a_proposal_is_rebuilt_from_its_parameters_at_its_size(roberta):
    space = _space(roberta, size=(0.125, 1.0))
    for seed in range(20):
        found = space.suggest(RandomTrial(seed))
        assert space.suggest(found.parameters).configuration == found.configuration


def test_proposals_respect_the_limit_of_extra_flops(roberta):
    free, most = _space(roberta), 700_000
    space = _space(roberta, max_extra_flops=most)
    beyond = 0
    for seed in range(DRAWS):
        found = space.suggest(RandomTrial(seed))
        assert extra_flops(found.configuration, roberta) <= most
        share = float(found.parameters.get("attention_share", 0.5))
        parameters = free.parameters_of(found.configuration, peak_lrs=rates_of(found), share=share)
        assert parameters is not None
        without = free.suggest(parameters)
        if extra_flops(without.configuration, roberta) <= most:
            assert found.configuration == without.configuration
        else:
            beyond += 1
            # a unit of width more at every sublayer would be too much
            assert extra_flops(found.configuration, roberta) > 0.8 * most
    assert beyond > DRAWS / 6


def test_zero_extra_flops_equals_mergeable(roberta):
    none, mergeable = _space(roberta, max_extra_flops=0), _space(roberta, mergeable=True)
    assert none.parameters() == mergeable.parameters()
    for seed in range(20):
        found = mergeable.suggest(RandomTrial(seed))
        assert unmergeable_edits(found.configuration, roberta) == {}
        assert extra_flops(found.configuration, roberta) == 0
    assert len(mergeable.structures["attention"]) < len(_space(roberta).structures["attention"]) / 2


def test_two_edits_on_a_side_keep_the_limits(roberta):
    space = _space(roberta, edits_per_side=(1, 2), max_extra_flops=300_000, size=(0.125, 1.0))
    for seed in range(20):
        assert extra_flops(space.suggest(RandomTrial(seed)).configuration, roberta) <= 300_000


def test_published_methods_beyond_a_limit_are_skipped_with_reasons(roberta):
    space = _space(roberta, mergeable=True, published=("lora_qv", "bitfit", "mam_adapter", "head_only"))
    assert space.published_that_fit() == ("lora_qv", "bitfit", "head_only")
    with pytest.raises(BudgetError, match=r"must be mergeable into the weights; got edit 0 \(softmax_memory"):
        space.suggest_published("mam_adapter", RandomTrial(0))
    with pytest.raises(BudgetError, match=r"adds [\d,]+ FLOPs per token; max_extra_flops is 1,000"):
        _space(roberta, max_extra_flops=1000).suggest_published("mam_adapter", RandomTrial(0))


def test_limits_that_leave_an_empty_space_are_refused(roberta):
    with pytest.raises(SearchSpaceError, match="and can be merged"):
        _space(roberta, mergeable=True, attention_forms=("softmax_memory",), ffn_forms=())
    with pytest.raises(BudgetError, match="got max_extra_flops 100"):
        _space(roberta, max_extra_flops=100, attention_forms=("softmax_memory",), ffn_forms=())
