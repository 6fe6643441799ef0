"""Budgets as users write them, and the bottlenecks that the solver makes of them."""

import random
from collections.abc import Sequence

import pytest
from support.edits import edit, resized
from support.smallest import smallest_count

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Site
from search_space.edit import Edit
from search_space.errors import BudgetError
from search_space.forms import Bottleneck, Constant, Init, LowRank, OwnNorm, Phm, SoftmaxMemory
from search_space.gates import ConvexGate, InducerGate, LearnedScale
from search_space.parameter_counts.budget import budget_parameters, read_budget, solve
from search_space.parameter_counts.counts import affine_count, count, count_edits
from search_space.parameter_counts.flops import extra_flops
from search_space.published import published_method


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *((one, 0.005) for one in ("0.5%", " 0.5 % ", ".5%", "5e-1%")),
        ("100%", 1.0),
        *((one, 600_000) for one in (600_000, "600000", "600,000", "600_000", 6e5, "6e5")),
        *((one, 1) for one in (1, "1", " 01 ")),
        (" 42 ", 42),
    ],
)
def test_budget_reads_percentages_and_whole_numbers(written, expected):
    budget = read_budget(written)
    assert budget == expected
    assert type(budget) is type(expected)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        *(
            (text, f"budget must be a percentage such as 0.5% or a number of parameters; got {text!r}.")
            for text in ("", "half", "%", "5.5", "1,5%", "0,5", "1,5", "nan", "inf%", "1_0%", "1__000", "-0.5")
        ),
        *(
            (number, f"budget must be a percentage such as 0.5% or a number of parameters; got {number!r}.")
            for number in (True, False, None, [1], 2.5, -0.5, float("nan"), float("inf"), 10**400)
        ),
        (0.5, "got 0.5. Write 0.5% or 50%."),
        ("0.5", "got '0.5'. Write 0.5% or 50%."),
        (0.999, "got 0.999. Write 0.999% or 99.9%."),
        (1e-3, "got 0.001. Write 0.001% or 0.1%."),
        (1.0, "got 1.0. Write 1.0% or 100%."),
        ("1.0", "got '1.0'. Write 1.0% or 100%."),
        ("0%", "above 0% and at most 100% of the backbone; got 0.0000%"),
        ("-1%", "above 0% and at most 100% of the backbone; got -1.0000%"),
        ("101%", "above 0% and at most 100% of the backbone; got 101.0000%"),
        (0, "from 1 to 1,000,000,000,000,000 parameters; got 0"),
        ("-600000", "from 1 to 1,000,000,000,000,000 parameters; got -600,000"),
        ("1e16", "from 1 to 1,000,000,000,000,000 parameters; got 10,000,000,000,000,000"),
    ],
)
def test_invalid_budget_is_refused_in_one_line(written, message):
    with pytest.raises(BudgetError) as caught:
        read_budget(written)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", [float("nan"), 1.5, 0])
def test_budget_that_was_not_parsed_is_checked_too(given):
    with pytest.raises(BudgetError):
        budget_parameters(given, 100)


@pytest.mark.parametrize(
    ("written", "parameters"),
    [("0.5%", 623_228), ("0.1%", 124_645), ("100%", 124_645_632), ("6.7%", 8_351_257), (600_000, 600_000)],
)
def test_a_share_is_of_the_backbone_and_rounded_down(written, parameters, roberta):
    assert budget_parameters(read_budget(written), roberta.parameters) == parameters


def test_a_share_that_is_a_whole_number_is_not_rounded_below_it():
    # 0.29 * 100 is 28.999… in binary
    assert budget_parameters(0.29, 100) == 29


PREFIX = edit("head", "q", SoftmaxMemory(width=1, heads=Heads.KEY_VALUE), ConvexGate())
LORA_HEADS = edit("head", "q", LowRank(width=1, heads=Heads.QUERY))
LORA_QKVO = tuple(
    edit(write, read, LowRank(width=1), LearnedScale())
    for write, read in (("q", "x_attn"), ("k", "ctx"), ("v", "ctx"), ("o", "concat"))
)
BIAS_Q = edit("q", None, Constant())
ADAPTER = edit("f", "x_ffn", Bottleneck(width=1, norm=OwnNorm.INPUT), LearnedScale())
LORA_F = edit("f", "m", LowRank(width=1))
BIAS_F = edit("f", None, Constant())
INDUCER = edit("o", "q", Bottleneck(width=1, heads=Heads.QUERY, init=Init.INDUCER), InducerGate(key_width=4))
STACK = edit("norm", None, Constant(), site=Site.STACK)

ATTENTION_SIDES: list[tuple[Edit, ...]] = [(), (PREFIX,), (LORA_HEADS,), LORA_QKVO, (BIAS_Q,), (PREFIX, BIAS_Q)]
FFN_SIDES: list[tuple[Edit, ...]] = [(), (ADAPTER,), (LORA_F,), (BIAS_F, STACK), (ADAPTER, STACK)]
SIDES = [(one, other) for one in ATTENTION_SIDES for other in FFN_SIDES if one or other]


def is_sized(edits: Sequence[Edit]) -> bool:
    return any(edit.sized_form is not None for edit in edits)


def is_capped(solved: Configuration, shape: BackboneShape) -> bool:
    """Return whether a width is the largest that it can be."""
    sized = ((edit, edit.sized_form) for edit in solved.edits)
    return any(form is not None and form.largest_width(edit, shape) == form.width for edit, form in sized)


def cost(edits: Sequence[Edit], units: int, shape: BackboneShape) -> int:
    """Count the stored parameters at this summed width."""
    if not edits:
        return 0
    places = len(shape.sublayers(edits[0].site))
    size = divmod(units, places)
    return count_edits(resized(Configuration(edits=tuple(edits)), attention=size, ffn=size).edits, shape).stored


def most_units(edits: Sequence[Edit], limit: float, shape: BackboneShape) -> int:
    """Return the largest affordable summed width, by trying one by one; at least one a sublayer."""
    if not is_sized(edits):
        return 0
    places = len(shape.sublayers(edits[0].site))
    units = places
    found = (edit.sized_form.largest_width(edit, shape) for edit in edits if edit.sized_form)
    bounds = [bound for bound in found if bound is not None]
    while (not bounds or units < min(bounds) * places) and cost(edits, units + 1, shape) <= limit:
        units += 1
    return units


def brute_force(
    sides: tuple[tuple[Edit, ...], tuple[Edit, ...]], shape: BackboneShape, share: float, parameters: int
) -> tuple[int, int]:
    """Solve by trying: attention up to its share, the FFN up to the budget, then attention with the remainder."""
    of_attention, of_ffn = sides
    places = [len(shape.sublayers(edits[0].site)) if is_sized(edits) else 0 for edits in sides]
    least_ffn = cost(of_ffn, places[1], shape)
    least_attention = cost(of_attention, places[0], shape)
    target = min(max(share * parameters, least_attention), parameters - least_ffn)
    first = most_units(of_attention, target, shape)
    second = most_units(of_ffn, parameters - cost(of_attention, first, shape), shape)
    return most_units(of_attention, parameters - cost(of_ffn, second, shape), shape), second


def units_of(edits: Sequence[Edit], shape: BackboneShape) -> int:
    sized = [(edit.site, edit.sized_form) for edit in edits if edit.sized_form is not None]
    return next((form.width * len(shape.sublayers(site)) + form.widened for site, form in sized), 0)


@pytest.mark.parametrize("sides", SIDES, ids=lambda sides: "+".join(edit.form.name for side in sides for edit in side))
def test_the_closed_form_agrees_with_trying_every_width(sides, odd):
    structure = Configuration(edits=(*sides[0], *sides[1]))
    least = smallest_count(structure, odd)
    draw = random.Random(2)
    for parameters in (least, least + 1, *(draw.randint(least, 6 * least) for _ in range(6))):
        share = draw.choice((0.0, 0.05, 0.3, 0.5, 0.9, 1.0))
        solved = solve(structure, odd, attention_share=share, parameters=parameters)
        expected = brute_force(sides, odd, share, parameters)
        assert (units_of(solved.attention, odd), units_of(solved.ffn, odd)) == expected, (share, parameters)
        assert count(solved, odd).stored <= parameters


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.77, 1.0])
@pytest.mark.parametrize("parameters", [200_001, 623_228, 8_351_257])
@pytest.mark.parametrize(
    "sides",
    [((PREFIX,), (ADAPTER,)), (LORA_QKVO, (ADAPTER,)), ((PREFIX, BIAS_Q), (LORA_F, BIAS_F, STACK))],
    ids=["prefix+adapter", "lora+adapter", "prefix+bias+lora+bias"],
)
def test_the_budget_is_used_and_the_share_is_kept_to_within_a_step(sides, parameters, share, roberta):
    structure = Configuration(edits=(*sides[0], *sides[1]))
    solved = solve(structure, roberta, attention_share=share, parameters=parameters)
    steps = [sum(affine_count(edit, roberta).slope for edit in edits if edit.sized_form) for edits in sides]
    unused = parameters - count(solved, roberta).stored
    assert 0 <= unused < min(steps)
    of_attention = count_edits(solved.attention, roberta).stored
    least = [cost(edits, 12, roberta) for edits in sides]
    wanted = min(max(share * parameters, least[0]), parameters - least[1])
    assert abs(of_attention - wanted) < max(steps) or is_capped(solved, roberta)


COMPACTER = edit("f", "x_ffn", Phm(width=4, n=4), LearnedScale())


@pytest.mark.parametrize("one", [COMPACTER, ADAPTER, PREFIX, INDUCER], ids=lambda one: one.form.name)
def test_largest_width_within_a_flops_bound_equals_trying_all(one, roberta):
    structure, places = Configuration(edits=(one,)), len(roberta.sublayers(one.site))

    def sized(units: int) -> Configuration:
        width, widened = divmod(units, places)
        size = (width * one.form.width_step, widened)
        return resized(structure, attention=size, ffn=size)

    def solved(bound: int | None) -> Configuration:
        return solve(structure, roberta, attention_share=1, parameters=most, extra_flops=bound)

    most = count(sized(40 * places + 5), roberta).stored
    flops = [extra_flops(sized(units), roberta) for units in range(places, 40 * places + 6)]
    draw = random.Random(3)
    for bound in (0, flops[0], flops[1] - 1, flops[-1] - 1, None, *(draw.randint(0, flops[-1]) for _ in range(20))):
        units = places + sum(bound is None or one <= bound for one in flops[1:])
        assert solved(bound) == sized(units), bound


def test_flops_of_kronecker_products_are_those_of_their_matrices(roberta):
    # at 12 sublayers, a matrix to the 4 hidden units and one from them
    assert extra_flops(Configuration(edits=(COMPACTER,)), roberta) == 12 * 2 * (768 * 4 + 4 * 768)


def test_flops_bound_of_two_sides_equals_trying_all_budgets(odd):
    structure = Configuration(edits=(PREFIX, ADAPTER))
    least = smallest_count(structure, odd)
    budgets = range(least, 4 * least)
    free = [solve(structure, odd, attention_share=0.4, parameters=one) for one in budgets]
    flops = [extra_flops(one, odd) for one in free]
    for bound in sorted({flops[0], flops[0] + 1, flops[len(flops) // 3], flops[-1] - 1, flops[-1]}):
        expected = max((place for place, one in enumerate(flops) if one <= bound), default=0)
        found = solve(structure, odd, attention_share=0.4, parameters=budgets[-1], extra_flops=bound)
        assert found == free[expected], bound


def test_unused_budget_of_one_side_goes_to_the_other(odd):
    bounded_attention = Configuration(edits=(LORA_HEADS, ADAPTER))
    solved = solve(bounded_attention, odd, attention_share=0.9, parameters=20_000)
    assert [edit.sized_form.width for edit in solved.attention if edit.sized_form] == [5]  # d_h
    assert 20_000 - count(solved, odd).stored < affine_count(ADAPTER, odd).slope

    bounded_ffn = Configuration(edits=(PREFIX, LORA_F))
    solved = solve(bounded_ffn, odd, attention_share=0.1, parameters=20_000)
    assert [edit.sized_form.width for edit in solved.ffn if edit.sized_form] == [11]  # d
    assert 20_000 - count(solved, odd).stored < affine_count(PREFIX, odd).slope


def test_the_narrowest_of_several_projections_bounds_them_all(odd):
    solved = solve(Configuration(edits=LORA_QKVO), odd, attention_share=1, parameters=10**9)
    assert {edit.sized_form.width for edit in solved.edits if edit.sized_form} == {10}  # d_kv


def test_remaining_budget_widens_sublayers_nearest_the_output(roberta):
    slope = affine_count(PREFIX, roberta).slope
    solved = solve(
        Configuration(edits=(PREFIX,)), roberta, attention_share=1, parameters=(12 * 3 + 5) * slope + slope - 1
    )
    (edit,) = solved.edits
    assert edit.sized_form is not None
    assert (edit.sized_form.width, edit.sized_form.widened) == (3, 5)


@pytest.mark.parametrize("edits", [(PREFIX, ADAPTER), (ADAPTER,), (BIAS_Q, BIAS_F), (*LORA_QKVO, LORA_F)])
def test_too_large_structure_error_names_its_smallest_size(edits, roberta):
    structure = Configuration(edits=edits)
    with pytest.raises(BudgetError) as caught:
        solve(structure, roberta, attention_share=0.5, parameters=1000)
    least = count(structure, roberta).stored
    assert str(caught.value) == (f"this configuration needs at least {least:,} parameters; the budget is 1,000.")
    assert smallest_count(structure, roberta) == least
    for used in (1.0, 0.01):
        solved = solve(structure, roberta, attention_share=0.5, parameters=least, budget_fraction=used)
        assert count(solved, roberta).stored == least
        with pytest.raises(BudgetError, match=f"at least {least:,} parameters"):
            solve(structure, roberta, attention_share=0.5, parameters=least - 1, budget_fraction=used)


def test_the_widths_of_a_structure_do_not_matter(roberta):
    structures = [
        resized(Configuration(edits=(PREFIX, LORA_F)), attention=size, ffn=size) for size in ((1, 0), (99, 3), (7, 11))
    ]
    assert len({solve(one, roberta, attention_share=0.4, parameters=600_000) for one in structures}) == 1


def test_a_reparameterized_prefix_keeps_one_length(shape_named):
    for backbone in ("bart_large", "qwen3_0_6b", "roberta_base"):
        shape = shape_named(backbone)
        structure = published_method("mam_adapter").configuration(shape, {"mid": 64})
        for parameters in (3_000_000, 3_333_333):
            solved = solve(structure, shape, attention_share=0.5, parameters=parameters)
            (form,) = (edit.form for edit in solved.attention)
            assert isinstance(form, SoftmaxMemory)
            assert (form.widened, form.reparameterization) == (0, 64)
            assert 0 <= parameters - count(solved, shape).stored < affine_count(ADAPTER, shape).slope


def test_edits_at_unequal_sublayer_counts_share_the_budget(bart):
    everywhere, at_cross = LORA_QKVO[0], edit("o", "concat", LowRank(width=1), site=Site.CROSS)
    for edits in ((everywhere, at_cross), (at_cross, everywhere)):
        structure = Configuration(edits=(*edits, ADAPTER))
        least = smallest_count(structure, bart)
        assert least == count(structure, bart).stored
        for parameters in (least, 2_000_000, 2_345_678):
            solved = solve(structure, bart, attention_share=0.5, parameters=parameters)
            assert parameters - affine_count(ADAPTER, bart).slope < count(solved, bart).stored <= parameters
            assert len({edit.sized_form.width for edit in solved.attention if edit.sized_form}) == 1


LORA_Q = edit("q", "x_attn", LowRank(width=1))
PAIRS = [
    ((PREFIX,), (LORA_Q,), (ADAPTER,), (LORA_F,)),
    ((INDUCER,), (LORA_Q,), (ADAPTER,), ()),
    (LORA_QKVO, (PREFIX,), (LORA_F,), (BIAS_F,)),
    ((BIAS_Q,), (PREFIX,), (ADAPTER,), (LORA_F,)),
    ((INDUCER,), (LORA_Q,), (), ()),
]


@pytest.mark.parametrize("pairs", PAIRS, ids=range(len(PAIRS)))
@pytest.mark.parametrize("parameters", [400_001, 623_228, 8_351_257])
def test_split_divides_the_budget_of_its_side(pairs, parameters, roberta):
    structure = Configuration(edits=tuple(edit for edits in pairs for edit in edits))
    draw = random.Random(parameters)
    for _ in range(12):
        share, *shares = (draw.uniform(0.05, 0.95) for _ in range(3))
        splits = {pairs[2 * side]: shares[side] for side in (0, 1) if pairs[2 * side]}
        share = share if pairs[2] else 1.0
        solved = solve(structure, roberta, attention_share=share, parameters=parameters, splits=splits)
        stored = [count_edits(edits, roberta).stored for edits in divided_like(pairs, solved)]
        steps = [sum(affine_count(edit, roberta).slope for edit in edits if edit.sized_form) for edits in pairs]
        assert sum(stored) == count(solved, roberta).stored <= parameters
        assert parameters - sum(stored) < min(step for step in steps if step)
        assert sum(stored) >= 0.97 * parameters
        for side in (0, 2):
            if is_sized(pairs[side]) and is_sized(pairs[side + 1]):
                of_side = stored[side] + stored[side + 1]
                least = [cost(edits, 12, roberta) for edits in pairs[side : side + 2]]
                wanted = min(max(shares[side // 2] * of_side, least[0]), of_side - least[1])
                is_near = abs(stored[side] - wanted) <= steps[side] + steps[side + 1]
                assert is_near or is_capped(solved, roberta)


def divided_like(pairs: Sequence[tuple[Edit, ...]], solved: Configuration) -> list[tuple[Edit, ...]]:
    """Return the edits of a configuration in the groups of its structure."""
    edits = iter(solved.edits)
    return [tuple(next(edits) for _ in group) for group in pairs]


def test_side_without_a_split_has_one_width(roberta):
    structure = Configuration(edits=(PREFIX, LORA_Q, ADAPTER))
    unsplit = solve(structure, roberta, attention_share=0.5, parameters=600_000)
    assert len({edit.sized_form.width for edit in unsplit.attention if edit.sized_form}) == 1
    solved = solve(structure, roberta, attention_share=0.5, parameters=600_000, splits={(PREFIX,): 0.9})
    prefix, lora = (edit.sized_form.width for edit in solved.attention if edit.sized_form)
    assert prefix > 5 * lora


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_or_a_split_outside_of_zero_to_one_is_refused(share, roberta):
    both = Configuration(edits=(PREFIX, LORA_Q))
    with pytest.raises(BudgetError, match=r"share of attention must be in \[0, 1\]; got"):
        solve(both, roberta, attention_share=share, parameters=10**6)
    with pytest.raises(BudgetError, match=r"split of a side must be in \[0, 1\]; got"):
        solve(both, roberta, attention_share=1, parameters=10**6, splits={(PREFIX,): share})
