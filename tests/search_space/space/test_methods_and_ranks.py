"""Spaces of given published methods, and bounds of the rank."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.errors import BudgetError, SearchSpaceError, SettingError
from search_space.gates import FixedScale
from search_space.parameter_counts.flops import extra_flops
from search_space.published.point import PublishedPoint
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.random_draw import RandomTrial
from search_space.space.rates import rate_scaling
from search_space.space.space import METHOD, SIZE, Candidate, SearchSpace
from search_space.space.trial_protocol import FloatRange

BACKBONES = ("roberta_base", "gpt2", "t5_small", "llama3_2_1b", "bart_large")
METHODS = ("lora_qv", "lora_all", "mam_adapter", "pfeiffer_adapter", "compacter", "prompt_tuning", "ia3", "lora_qv:s=3")
SWEEP = {"size": (0.125, 1.0), "values": FormValues(scales=(1.0, 2.0, 8.0))}


def space_of(shape: BackboneShape, share: float = 0.01, **options: object) -> SearchSpace:
    return SearchSpace(shape=shape, budget=int(share * shape.parameters), options=SpaceOptions(**options))  # type: ignore[arg-type]


def widths(configuration: Configuration) -> list[int]:
    """Return every rank and hidden width of a configuration, that of widened sublayers among them."""
    forms = [edit.sized_form for edit in configuration.edits]
    ranked = [form for form in forms if form is not None and form.has_rank]
    return [n for form in ranked for n in (form.width, form.width + form.width_step * (form.widened > 0))]


def without_size(edits: Sequence[Edit]) -> list[Edit]:
    forms = [
        edit.form if edit.sized_form is None else edit.sized_form.resized(edit.sized_form.width_step, 0)
        for edit in edits
    ]
    return [replace(edit, form=form) for edit, form in zip(edits, forms, strict=True)]


def scales_of(configuration: Configuration) -> set[float]:
    return {edit.gate.value for edit in configuration.edits if isinstance(edit.gate, FixedScale)}


def check_is_method(candidate: Candidate, space: SearchSpace) -> None:
    """Check that a candidate is its published method at a size, a rate and a scale of the space."""
    assert candidate.method in space.options.methods
    assert candidate.counts.stored <= space.budget
    point, shape = PublishedPoint(candidate.method), space.shape
    scales = {3.0} if point.settings else {1.0, 2.0, 8.0}
    if point.method.name.startswith(("lora", "mam")):
        (scale,) = scales_of(candidate.configuration)
        assert scale in scales
    plain = point.structure(shape, scale=next(iter(scales_of(candidate.configuration)), None))
    assert without_size(candidate.configuration.edits) == without_size(plain.edits)
    for edits, rate in (
        (candidate.configuration.attention, candidate.attention_learning_rate),
        (candidate.configuration.ffn, candidate.ffn_learning_rate),
    ):
        if edits:
            low, high = space.options.learning_rates[edits[0].form.name]
            assert rate is not None
            assert low * 0.999 <= rate * rate_scaling(edits, shape, space.options) <= high * 1.001


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("share", [0.002, 0.01])
def test_every_proposal_is_a_method_of_the_space_within_the_budget(backbone, share, shape_named):
    shape = shape_named(backbone)
    fitting = space_of(shape, share).published_that_fit(METHODS)
    space = space_of(shape, share, methods=fitting, **SWEEP)
    found = [space.suggest(RandomTrial(seed)) for seed in range(80)]
    for candidate in found:
        check_is_method(candidate, space)
        assert set(candidate.parameters) <= set(space.parameters())
        for again in (
            space.suggest(candidate.parameters),
            space.suggest_published(candidate.method, candidate.parameters),
        ):
            assert (again.fingerprint, again.parameters) == (candidate.fingerprint, candidate.parameters)
    assert {candidate.method for candidate in found} == set(fitting)
    sizes = [candidate.counts.stored / space.budget for candidate in found if candidate.method == "lora_qv"]
    assert min(sizes) <= 0.5 * max(sizes)


def test_space_without_methods_proposes_other_configurations(roberta):
    space = space_of(roberta)
    assert {space.suggest(RandomTrial(seed)).method for seed in range(20)} == {None}


def test_parameters_of_methods_are_rates_size_scale_and_the_method(roberta):
    both = space_of(roberta, methods=("lora_qv", "bitfit"), size=(0.5, 1.0))
    assert set(both.parameters()) == {METHOD, "scale", SIZE, "learning_rate.lowrank", "learning_rate.const"}
    assert both.parameters()[METHOD] == ("lora_qv", "bitfit")
    one = space_of(roberta, methods=("lora_qv:s=4,r=3",))
    assert set(one.parameters()) == {"learning_rate.lowrank"}
    assert widths(one.suggest(RandomTrial(0)).configuration) == [3, 3, 3, 3]
    assert both.is_searched
    assert both.options.published_points == ("lora_qv", "bitfit")
    assert replace(both.options, published="none").published_points == ()


def test_method_is_tried_first_with_the_whole_budget_and_its_usual_scale(roberta):
    space = space_of(roberta, methods=("lora_qv", "lora_ffn"), size=(0.125, 1.0))
    first = space.suggest_published("lora_qv", {"learning_rate.lowrank": 3e-3})
    assert first.configuration == space_of(roberta).suggest_published("lora_qv", first.parameters).configuration
    rate = {"learning_rate.lowrank": 3e-3}
    assert first.parameters == {METHOD: "lora_qv", "scale": "2.0", SIZE: 1.0, **rate}
    others = space_of(roberta, methods=("lora_qv",), values=FormValues(scales=(8.0,)))
    assert scales_of(others.suggest_published("lora_qv", rate).configuration) == {8.0}
    # a method outside of the space, as a confirmation trains it
    assert space.suggest_published("mam_adapter", RandomTrial(0)).counts.stored > 0.9 * space.budget


def test_method_that_does_not_fit_is_refused_in_one_line(roberta):
    with pytest.raises(
        BudgetError,
        match=r"^each method of space\.methods must fit the study; got lora_all: this configuration needs at least "
        r"[\d,]+ parameters; the budget is 1,000\. Name others\.$",
    ):
        SearchSpace(shape=roberta, budget=1000, options=SpaceOptions(methods=("bitfit:", "lora_all")[1:]))
    with pytest.raises(BudgetError, match="got mam_adapter: configurations of this study must be ones that peft can"):
        space_of(roberta, methods=("lora_qv", "mam_adapter"), exportable="peft")
    with pytest.raises(SettingError, match="got 'lora'; did you mean 'lora_qv', 'lora_kv' or 'lora_ffn'"):
        SpaceOptions(methods=("lora",))
    with pytest.raises(SettingError, match=r"^SpaceOptions methods: must be a list of published methods\.$"):
        SpaceOptions(methods="lora_qv")


def test_methods_are_resized_within_the_extra_flops(roberta):
    space = space_of(roberta, methods=("parallel_adapter_ffn",), max_extra_flops=300_000, **SWEEP)
    found = [extra_flops(space.suggest(RandomTrial(seed)).configuration, roberta) for seed in range(20)]
    assert 200_000 < max(found) <= 300_000


RANKED = {
    "whole": {},
    "lora": {"attention_forms": ("lowrank",), "ffn_forms": ("lowrank",), "exportable": "peft", "size": (0.125, 1.0)},
    "phm": {"attention_forms": ("phm", "lowrank"), "ffn_forms": ("phm",), "values": FormValues(products=(2,))},
    "pairs": {"edits_per_side": (1, 2), "layers": ("all", "range")},
    "separate": {"sites": "separate", "max_extra_flops": 2_000_000},
    "methods": {"methods": ("lora_qv", "pfeiffer_adapter", "prefix_tuning")},
}


@pytest.mark.parametrize("backbone", ["roberta_base", "t5_small", "llama3_2_1b"])
@pytest.mark.parametrize("kind", RANKED)
@pytest.mark.parametrize("rank", [(1, 32), (4, 6), 8])
def test_ranks_of_all_proposals_are_within_the_bounds(backbone, kind, rank, shape_named):
    space = space_of(shape_named(backbone), rank=rank, **RANKED[kind])
    low, high = space.options.rank
    found: set[int] = set()
    for seed in range(40):
        candidate = space.suggest(RandomTrial(seed))
        found |= set(widths(candidate.configuration))
        assert candidate.counts.stored <= space.budget
        assert space.suggest(candidate.parameters).fingerprint == candidate.fingerprint
    assert found <= set(range(low, high + 1))
    assert len(found) >= min(6, (high - low + 1) // (2 if kind == "phm" else 1))


def test_ranks_without_bounds_leave_them(roberta):
    space = space_of(roberta)
    found = [widths(space.suggest(RandomTrial(seed)).configuration) for seed in range(20)]
    assert max(max(ranks, default=0) for ranks in found) > 32


@pytest.mark.parametrize("share", [0.001, 0.005, 0.1])
def test_range_of_a_rank_is_used_evenly_at_any_budget(share, roberta):
    space = space_of(roberta, share, rank=(1, 32), methods=("lora_attention",))
    assert space.parameters()[SIZE] == FloatRange(low=1 / 32, high=1.0, log=True)
    found = sorted(min(widths(space.suggest(RandomTrial(seed)).configuration)) for seed in range(200))
    largest = min(32, found[-1])
    assert found[0] == 1
    assert found[-1] >= 29 or share < 0.1
    # the middle of the draws is the middle of the range on a logarithmic scale
    assert found[100] <= largest**0.5 * 1.5 <= 3 * found[100] + 1.5


def test_share_of_a_configuration_in_its_range_is_found_again(roberta):
    space = space_of(roberta, 0.01, rank=(2, 32), attention_forms=("lowrank",), ffn_forms=("lowrank",))
    for seed in range(20):
        candidate = space.suggest(RandomTrial(seed))
        stored = candidate.counts.stored
        share = space.budget_fraction_of(stored, candidate.configuration)
        again = space.suggest({**candidate.parameters, SIZE: share}).counts.stored
        assert again == pytest.approx(stored, rel=0.05)


def test_published_methods_beyond_the_bounds_are_left_out_or_resized(roberta):
    points = ("lora_qv", "lora_qv:r=2", "lora_qv:r=8", "prefix_tuning", "bitfit", "head_only")
    space = space_of(roberta, rank=(1, 4), published=points)
    assert space.published_that_fit() == tuple(point for point in points if point != "lora_qv:r=8")
    assert set(widths(space.suggest_published("lora_qv", RandomTrial(0)).configuration)) == {4}
    with pytest.raises(BudgetError, match="configurations of this study must have ranks from 1 to 4; got 8"):
        space.suggest_published("lora_qv:r=8", RandomTrial(0))


def test_rank_that_no_form_or_budget_allows_is_refused(roberta):
    lora = {"attention_forms": ("lowrank",), "ffn_forms": ()}
    with pytest.raises(SearchSpaceError, match="valid on roberta with a rank of at least 1000"):
        space_of(roberta, rank=1000, **lora)
    with pytest.raises(BudgetError, match=r"Raise the budget, or lower space\.rank"):
        SearchSpace(shape=roberta, budget=10_000, options=SpaceOptions(rank=64, **lora))
    for rank in (0, (2, 1), (1, 2, 3), True, "8", 1.5, ()):
        with pytest.raises(
            SettingError, match=r"rank: must be a whole number from 1 on, or two of them, the lower one first"
        ):
            SpaceOptions(rank=rank)
