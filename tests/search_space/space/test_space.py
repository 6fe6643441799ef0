"""The search space: whatever is proposed is valid and within the budget, and everything can be proposed."""

import dataclasses
import random
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from support import rotation
from support.loops import each
from support.routes import Route, every_route

from search_space.backbones.shape import BackboneShape
from search_space.canonical import fingerprint
from search_space.configuration import Configuration
from search_space.dimensions import Activation, ScalePer, Site
from search_space.edit import Edit
from search_space.errors import BudgetError, InvalidEditError, SearchSpaceError, UnknownMethodError
from search_space.forms import FORMS, Init, OwnNorm, SoftmaxMemory
from search_space.gates import FixedScale
from search_space.layers import AllLayers, LayerRange, SpindleGroups
from search_space.parameter_counts.budget import budget_parameters, read_budget
from search_space.parameter_counts.counts import count, count_edits
from search_space.published import COMPARED, METHODS, published_method
from search_space.space.layer_choice import suggest_layers
from search_space.space.options import LEARNING_RATES, FormValues, SpaceOptions
from search_space.space.points import min_cost, points_of
from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from search_space.space.trial_protocol import FloatRange, ParameterRecorder
from search_space.validity import check_on

OTHERS = ["bart_large", "mbart_large_cc25", "gpt2", "llama3_2_1b", "qwen2_5_0_5b", "t5_small", "flan_t5_small"]
HALF_PERCENT = 623_228


class FixedTrial:
    """Proposes given values where there are some, else the first choice and the least number."""

    def __init__(self, **values: str | float) -> None:
        self.given = {name.replace("__", "."): value for name, value in values.items()}

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        value = str(self.given.get(name, choices[0]))
        assert value in choices, name
        return value

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return float(self.given.get(name, low))


class Routed(FixedTrial):
    """Takes the choices of a route where no value is given."""

    def __init__(self, route: Route, **given: str) -> None:
        super().__init__(**given)
        self.route = route

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        return self.given[name] if name in self.given else self.route.choose(name, choices)


def every_proposal(space: SearchSpace, **only: str) -> Iterator[Candidate]:
    """Yield one proposal for every path of the tree, with some choices held."""
    return every_route(lambda route: space.suggest(Routed(route, **only)))


def assert_sound(candidate: Candidate, shape: BackboneShape, budget: int) -> None:
    """Assert that a proposal is valid, counted, within the budget, and trained on the sides it edits."""
    configuration = candidate.configuration
    check_on(configuration.edits, shape)
    assert candidate.counts == count(configuration, shape)
    assert 0 < candidate.counts.stored <= budget
    assert (candidate.attention_learning_rate is not None) is bool(configuration.attention)
    assert (candidate.ffn_learning_rate is not None) is bool(configuration.ffn)
    of_attention = count_edits(configuration.attention, shape).stored
    assert candidate.attention_share == pytest.approx(of_attention / candidate.counts.stored)


@pytest.mark.parametrize(
    ("backbone", "share", "number"),
    [
        *(("roberta_base", share, 500) for share in ("0.1%", "0.5%", "2%", "6.7%")),
        *((backbone, share, 140) for share in rotation.parts(["0.2%", "0.5%", "2%"]) for backbone in OTHERS),
    ],
)
def test_random_proposals_are_valid_and_use_the_budget(backbone, share, number, shape_named):
    shape, trial, uses = shape_named(backbone), RandomTrial(2), []
    budget = budget_parameters(read_budget(share), shape.parameters)
    space = SearchSpace(shape=shape, budget=budget)
    for _ in range(number):
        candidate = space.suggest(trial)
        assert_sound(candidate, shape, budget)
        assert set(candidate.parameters) <= set(space.parameters())
        uses.append(candidate.counts.stored / budget)
    assert statistics.median(uses) >= 0.97


@pytest.mark.parametrize("side", ["attention", "ffn"])
def test_every_leaf_can_be_proposed_with_every_gate_scale_and_activation(side, roberta):
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT)
    reached: Counter[tuple[object, ...]] = Counter()
    for candidate in every_proposal(space, placement=side):
        assert_sound(candidate, roberta, HALF_PERCENT)
        edits = getattr(candidate.configuration, side)
        ends = "+".join(edit.write for edit in edits), "+".join(edit.read or "none" for edit in edits)
        gate = edits[0].gate
        reached[
            edits[0].form.name, *ends, edits[0].heads, gate.qualified_name, gate.fixed_scale, edits[0].form.activation
        ] += 1
    expected = Counter[tuple[object, ...]]()
    for point in points_of(side, roberta, space.options):
        leaf, gate = tuple(text for _, text in point.path[:4]), dict(point.path)["gate"]
        for scale in (2.0, 4.0) if gate == "scale" else (None,):
            for activation in Activation if leaf[0] == "bottleneck" else (None,):
                expected[*leaf, gate, scale, activation] += 1
    assert reached == expected
    assert set(expected.values()) == {1}  # each of them once
    prefix = {gate for *leaf, gate, _, _ in reached if leaf == ["softmax_memory", "head", "q", "key_value_heads"]}
    assert prefix == ({"lse_convex", "add", "scale", "scale_learned"} if side == "attention" else set())
    inducers = {tuple(leaf) for *leaf, gate, _, _ in reached if str(gate).startswith("inducer")}
    at_heads = {(form, write, "q", "query_heads") for form in ("bottleneck", "lowrank") for write in ("head", "o")}
    assert inducers == (at_heads if side == "attention" else set())


def test_attention_share_is_the_proposed_one_within_a_step(roberta):
    space = SearchSpace(shape=roberta, budget=2_492_912)
    for share in (0.05, 0.3, 0.72, 0.95):
        candidate = space.suggest(FixedTrial(placement="both", attention_share=share))
        assert candidate.attention_share == pytest.approx(share, abs=2 * 1536 / 2_492_912)


def test_share_is_a_parameter_only_with_two_sized_sides(roberta):
    space, trial, cases = SearchSpace(shape=roberta, budget=HALF_PERCENT), RandomTrial(9), set()
    for _ in range(200):
        candidate = space.suggest(trial)
        sides = (candidate.configuration.attention, candidate.configuration.ffn)
        both_sized = all(any(edit.sized_form for edit in side) for side in sides)
        assert ("attention_share" in candidate.parameters) is both_sized
        cases.add(both_sized)
    assert cases == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        SpaceOptions(),
        SpaceOptions(gates=("add", "lse_convex"), values=FormValues(activations=(Activation.RELU,))),
        SpaceOptions(ffn_forms=()),
        SpaceOptions(attention_forms=("const",), ffn_forms=("const", "lowrank")),
        SpaceOptions(gates=("scale",), values=FormValues(scales=(2.0, 2.0000001, 4))),
        SpaceOptions(sites="separate", layers=("all", "range", "spindle")),
        SpaceOptions(
            gates=("add", "tanh", "inducer"), ffn_forms=("bottleneck",), values=FormValues(inits=(Init.LORA, Init.BERT))
        ),
    ],
    ids=["everything", "few gates", "attention", "constants", "scales", "layers", "gates that depend on inits"],
)
def test_all_declared_parameters_are_used(options, roberta):
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT, options=options)
    parameters, used, draw = space.parameters(), set(), random.Random(3)

    class Watching:
        def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
            used.add(name)
            assert parameters[name] == tuple(choices), name
            return draw.choice(list(choices))

        def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
            used.add(name)
            assert parameters[name] == FloatRange(low=low, high=high, log=log), name
            return draw.uniform(low, high)

    for _ in range(1500):
        candidate = space.suggest(Watching())
        assert set(candidate.parameters) <= used
    named = {*space.options.attention_forms, *space.options.ffn_forms}
    # published methods may need those that are not searched
    rates = {f"learning_rate.{name}" for name, form in FORMS.items() if name in named or not form.is_opt_in}
    assert used | rates == set(parameters)
    for values in parameters.values():
        if isinstance(values, tuple):
            assert len(set(values)) == len(values) >= 2
    assert space.parameters() == parameters


def test_learning_rates_are_log_uniform_in_their_forms_range(roberta):
    options = SpaceOptions(learning_rates={"lowrank": (1e-5, 1e-4)})
    parameters = SearchSpace(shape=roberta, budget=HALF_PERCENT, options=options).parameters()
    found = {name: values for name, values in parameters.items() if name.startswith("learning_rate.")}
    expected = {**LEARNING_RATES, "lowrank": (1e-5, 1e-4)}
    assert found == {
        f"learning_rate.{form}": FloatRange(low=low, high=high, log=True)
        for form, (low, high) in expected.items()
        if not FORMS[form].is_opt_in
    }


def test_equal_forms_share_a_rate_and_others_have_their_own(roberta):
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT)
    rates = {"learning_rate.bottleneck": 0.002, "learning_rate.softmax_memory": 0.03}
    equal_rates = space.suggest(FixedTrial(**rates, attention__form="bottleneck", ffn__form="bottleneck"))
    assert (equal_rates.attention_learning_rate, equal_rates.ffn_learning_rate) == (0.002, 0.002)
    unlike = space.suggest(FixedTrial(**rates, attention__form="softmax_memory", ffn__form="bottleneck"))
    assert (unlike.attention_learning_rate, unlike.ffn_learning_rate) == (0.03, 0.002)


def test_fingerprints_distinguish_rates_to_two_digits(roberta):
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT)

    def print_at(rate: float) -> str:
        trial = FixedTrial(placement="ffn", ffn__form="bottleneck", learning_rate__bottleneck=rate)
        return space.suggest(trial).fingerprint

    assert print_at(0.00200) == print_at(0.00203)
    assert len({print_at(0.0020), print_at(0.0021), print_at(0.02)}) == 3


def smallest_of(error: BudgetError) -> int:
    match = re.search(r"the smallest that fits the study has ([\d,]+)\. Raise the budget\.$", str(error))
    assert match, str(error)
    return int(match[1].replace(",", ""))


@pytest.mark.parametrize(
    ("options", "smallest"),
    [
        (SpaceOptions(), 768),  # a bias of the width of the model at the last layer
        (SpaceOptions(attention_forms=(), ffn_forms=("lowrank",)), 2 * 768 + 1),
        (SpaceOptions(attention_forms=(), ffn_forms=("lowrank",), gates=("add",)), 2 * 768),
        (SpaceOptions(attention_forms=("bottleneck",), ffn_forms=(), gates=("add", "scale_learned")), 1537),
        (SpaceOptions(attention_forms=("bottleneck",), ffn_forms=()), 1536),  # an inducer has no scale
        (SpaceOptions(attention_forms=("softmax_memory",), ffn_forms=("bottleneck",)), 1536),  # nor a prefix
    ],
)
def test_a_budget_that_is_too_small_names_the_smallest_that_is_not(options, smallest, roberta):
    with pytest.raises(BudgetError) as caught:
        SearchSpace(shape=roberta, budget=100, options=options)
    assert "must allow at least one configuration; got 100 parameters" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert smallest_of(caught.value) == smallest
    found = list(every_proposal(SearchSpace(shape=roberta, budget=smallest, options=options)))
    assert found
    for candidate in found:
        assert_sound(candidate, roberta, smallest)
    with pytest.raises(BudgetError) as caught:
        SearchSpace(shape=roberta, budget=smallest - 1, options=options)
    assert smallest_of(caught.value) == smallest


@pytest.mark.parametrize("budget", [768, 1_537, 9_216, 18_431, 18_432, 36_864, 74_000])
def test_small_budgets_have_a_smaller_tree(budget, roberta):
    space, trial = SearchSpace(shape=roberta, budget=budget), RandomTrial(6)
    for _ in range(80):
        assert_sound(space.suggest(trial), roberta, budget)


def test_space_with_one_affordable_side_has_no_share(roberta):
    # a learned scale and one row of LoRA at v takes 1,537 at the last layer, and the FFN's do not fit beside them
    options = SpaceOptions(attention_forms=("lowrank",), ffn_forms=("lowrank",))
    space = SearchSpace(shape=roberta, budget=2 * 1_537 - 1, options=options)
    placement = space.parameters()["placement"]
    assert placement == ("attention", "ffn")
    assert "attention_share" not in space.parameters()
    both = SearchSpace(shape=roberta, budget=2 * 1_537, options=options)
    assert both.parameters()["placement"] == ("both", "attention", "ffn")

    one_side = SpaceOptions(attention_forms=("const",), ffn_forms=("bottleneck",))
    space = SearchSpace(shape=roberta, budget=1_500, options=one_side)
    assert "placement" not in space.parameters()
    assert all(not candidate.configuration.ffn for candidate in every_proposal(space))


LORA = SpaceOptions(attention_forms=("lowrank",), ffn_forms=("lowrank",), gates=("add",))
ROW = 2 * 768  # one row of LoRA at one tensor of a layer


def proposed(space: SearchSpace, **writes: str) -> list[Configuration]:
    """Return the proposals that write these tensors at each side."""
    found = [candidate.configuration for candidate in every_proposal(space)]
    wanted = {"attention": "", "ffn": ""} | writes
    return [
        one
        for one in found
        if all("+".join(edit.write.value for edit in getattr(one, side)) == text for side, text in wanted.items())
    ]


def layers_of(edits: Sequence[Edit]) -> set[tuple[int, ...]]:
    return {edit.layers.block_indices(12) for edit in edits}


def test_edit_too_large_for_all_layers_is_put_in_the_last(roberta):
    space = SearchSpace(shape=roberta, budget=24 * ROW, options=LORA)
    assert not space.fitting.fits_all_layers
    (alone,) = proposed(space, attention="q+v")
    assert layers_of(alone.edits) == {tuple(range(12))}
    (wide,) = proposed(space, attention="q+k+v+o")
    assert layers_of(wide.edits) == {tuple(range(6, 12))}
    both = proposed(space, attention="q+v", ffn="sum")
    assert {*map(lambda one: (*layers_of(one.attention), *layers_of(one.ffn)), both)} == {
        (tuple(range(6, 12)), tuple(range(12)))
    }


def test_affordable_pair_stays_at_all_layers(roberta):
    space = SearchSpace(shape=roberta, budget=36 * ROW, options=LORA)
    for one in proposed(space, attention="q+v", ffn="sum"):
        assert layers_of(one.edits) == {tuple(range(12))}
    (wide,) = proposed(SearchSpace(shape=roberta, budget=48 * ROW, options=LORA), attention="q+k+v+o")
    assert layers_of(wide.edits) == {tuple(range(12))}


def test_chosen_layers_are_cut_from_the_first_on(roberta):
    options = dataclasses.replace(LORA, layers=("range", "spindle"), ffn_forms=())
    space, trial = SearchSpace(shape=roberta, budget=8 * ROW, options=options), RandomTrial(3)
    is_cut = []
    for _ in range(100):
        found = space.suggest(trial)
        assert_sound(found, roberta, 8 * ROW)
        suggested = suggest_layers(
            "attention", space.layers, 12, ParameterRecorder(found.parameters, space.parameters())
        )
        ((*kept,),) = layers_of(found.configuration.edits)
        assert kept == list(suggested.block_indices(12)[-len(kept) :])
        is_cut.append(len(kept) < len(suggested.block_indices(12)))
    assert {*is_cut} == {False, True}


def test_partial_layers_are_left_out_where_nearly_all_fit(roberta):
    options = SpaceOptions()
    legal = points_of("attention", roberta, options)
    dearest = max(cost.parameters for point in legal if (cost := min_cost(point, roberta, options)))
    space = SearchSpace(shape=roberta, budget=2 * dearest - 1)
    assert space.fitting.fits_all_layers
    assert 0.9 * len(legal) < len(space.trees["attention"].points) < len(legal)
    trial = RandomTrial(8)
    assert all(layers_of(space.suggest(trial).configuration.edits) == {tuple(range(12))} for _ in range(100))


def test_options_of_an_empty_space_are_refused(roberta, qwen):
    for published in (COMPARED, ("lora_qv", "bitfit"), ()):
        empty = SpaceOptions(attention_forms=(), ffn_forms=(), published=published)
        with pytest.raises(SearchSpaceError, match=r"must leave something to search; got no form .* on roberta\."):
            SearchSpace(shape=roberta, budget=HALF_PERCENT, options=empty)
    constants = SpaceOptions(attention_forms=("const",), ffn_forms=("const",))
    with pytest.raises(SearchSpaceError, match=r"valid on qwen3\."):
        SearchSpace(shape=qwen, budget=HALF_PERCENT, options=constants)


def test_a_stack_too_short_for_a_spindle_has_no_choice_of_layers(odd):
    with pytest.raises(SearchSpaceError, match=r"Allow more forms and layers\."):
        SearchSpace(shape=odd, budget=10_000, options=SpaceOptions(layers=("spindle",)))
    space = SearchSpace(shape=odd, budget=10_000, options=SpaceOptions(layers=("all", "spindle")))
    assert not any("layers" in name or "groups" in name for name in space.parameters())


def test_published_points_alone_are_a_space_without_a_search(roberta):
    options = SpaceOptions(attention_forms=(), ffn_forms=(), published=("full_finetuning", "intrinsic_did:dint=50"))
    space = SearchSpace(shape=roberta, budget=roberta.parameters, options=options)
    assert set(space.parameters()) == {f"learning_rate.{name}" for name, form in FORMS.items() if not form.is_opt_in}
    assert space.published_that_fit() == options.published
    with pytest.raises(SearchSpaceError, match="published methods only"):
        space.suggest(FixedTrial())


@pytest.fixture
def space(request: pytest.FixtureRequest, roberta: BackboneShape) -> SearchSpace:
    """Under the budget that a test names."""
    return SearchSpace(shape=roberta, budget=budget_parameters(read_budget(request.param), roberta.parameters))


# of VeRA the largest rank, of all channels that it reads and writes
FIXED = {"bitfit": 102_144, "ia3": 12 * (2 * 768 + 3072), "vera": 24 * (2 * 768 + 768)}


@pytest.mark.slow
@pytest.mark.parametrize("space", ["0.5%", "2%"], indirect=True)
@each("name", [name for name in METHODS if name != "head_only"])
def test_a_published_method_is_resized_to_the_budget(name, space):
    roberta, budget = space.shape, space.budget
    if name == "full_finetuning":
        with pytest.raises(BudgetError, match="needs at least 124,055,040 parameters"):
            space.suggest_published(name, FixedTrial())
        return
    candidate = space.suggest_published(name, FixedTrial())
    assert_sound(candidate, roberta, budget)
    assert candidate.method == name
    sides = (candidate.configuration.attention, candidate.configuration.ffn)
    assert set(candidate.parameters) == {f"learning_rate.{side[0].form.name}" for side in sides if side}
    if name in FIXED:
        assert candidate.counts.stored == FIXED[name]
        return
    assert candidate.counts.stored > 0.97 * budget
    if all(any(edit.sized_form for edit in side) for side in sides):
        share = published_method(name).attention_share
        if share is None:
            assert len({edit.sized_form.width for side in sides for edit in side if edit.sized_form}) == 1
        else:
            assert candidate.attention_share == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("lora_qv:r=8", 12 * 4 * 8 * 768),
        ("prefix_tuning:l=3", 12 * 2 * 3 * 768),
        ("intrinsic_did:dint=321", 321),
        ("mam_adapter:l=2,r=4,s=2", 12 * (2 * 2 * 768 + 2 * 4 * 768 + 4 + 768)),
    ],
)
def test_a_point_that_fixes_a_size_is_taken_as_it_is(text, stored, roberta):
    candidate = SearchSpace(shape=roberta, budget=HALF_PERCENT).suggest_published(text, FixedTrial())
    assert (candidate.method, candidate.counts.stored) == (text, stored)
    options = SpaceOptions(attention_forms=(), ffn_forms=(), published=(text,))
    space = SearchSpace(shape=roberta, budget=stored - 1, options=options)
    with pytest.raises(BudgetError, match=rf"{text} stores {stored:,} parameters; the budget is {stored - 1:,}"):
        space.suggest_published(text, FixedTrial())


def test_a_point_that_fixes_no_size_is_resized(roberta):
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT)
    plain = space.suggest_published("lora_qv", FixedTrial()).configuration
    scaled = space.suggest_published("lora_qv:s=7", FixedTrial()).configuration
    for edit, other in zip(plain.edits, scaled.edits, strict=True):
        assert other == dataclasses.replace(edit, gate=FixedScale(value=7.0))
    produced = space.suggest_published("prefix_tuning:mid=40", FixedTrial())
    (edit,) = produced.configuration.edits
    assert isinstance(edit.form, SoftmaxMemory)
    assert (edit.form.reparameterization, edit.form.width) == (40, HALF_PERCENT // (12 * 2 * 768))


def test_published_scales_are_those_of_the_options(roberta):
    for scale in (2.0, 3.5):
        space = SearchSpace(shape=roberta, budget=HALF_PERCENT, options=SpaceOptions(published_scale=scale))
        (edit,) = space.suggest_published("mam_adapter", FixedTrial()).configuration.ffn
        assert edit.gate == FixedScale(value=scale)


def test_the_task_head_alone_is_a_candidate_without_parameters(roberta):
    candidate = SearchSpace(shape=roberta, budget=HALF_PERCENT).suggest_published("head_only", FixedTrial())
    assert candidate.configuration.edits == ()
    assert (candidate.counts.stored, candidate.attention_share) == (0, 0)
    assert (candidate.attention_learning_rate, candidate.ffn_learning_rate) == (None, None)
    assert candidate.parameters == {}


def test_unresizable_published_method_is_refused_with_a_reason(roberta, qwen):
    with pytest.raises(BudgetError, match="needs at least 102,144 parameters; the budget is 100,000"):
        SearchSpace(shape=roberta, budget=100_000).suggest_published("bitfit", FixedTrial())
    with pytest.raises(InvalidEditError, match="BitFit needs biases"):
        SearchSpace(shape=qwen, budget=10**6).suggest_published("bitfit", FixedTrial())
    with pytest.raises(UnknownMethodError, match="Did you mean 'lora_qv'"):
        SearchSpace(shape=roberta, budget=10**6).suggest_published("lora_vq", FixedTrial())


@pytest.mark.parametrize(
    ("backbone", "budget", "missing"),
    [
        ("roberta_base", HALF_PERCENT, set()),
        ("roberta_base", 165_888, set()),
        ("roberta_base", 165_887, {"lora_all"}),
        ("roberta_base", 102_144, {"lora_all"}),
        ("roberta_base", 102_143, {"lora_all", "bitfit"}),
        ("roberta_base", 20_000, set(COMPARED) - {"head_only", "prefix_tuning", "multihead_parallel_adapter"}),
        ("qwen3_0_6b", 3_000_000, {"bitfit"}),
    ],
)
def test_published_methods_that_fit_are_listed(backbone, budget, missing, shape_named):
    space = SearchSpace(shape=shape_named(backbone), budget=budget)
    fitting = space.published_that_fit()
    assert [name for name in COMPARED if name in fitting] == list(fitting)
    for name in COMPARED:
        if name in fitting:
            assert space.suggest_published(name, FixedTrial()).counts.stored <= budget
        else:
            with pytest.raises((BudgetError, InvalidEditError)):
                space.suggest_published(name, FixedTrial())
    assert set(COMPARED) - set(fitting) == missing


def test_a_proposal_like_a_published_method_has_its_fingerprint(roberta):
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT)
    published = space.suggest_published("prefix_tuning", FixedTrial())
    proposed = space.suggest(
        FixedTrial(placement="attention", attention__form="softmax_memory", attention__softmax_memory__write="head")
    )
    assert proposed.configuration == published.configuration
    assert proposed.fingerprint == published.fingerprint
    rates = {"attention": "3.0e-03", "ffn": None}
    assert published.fingerprint == fingerprint(published.configuration, roberta, learning_rates=rates)


def test_separate_kinds_of_attention_have_independent_edits(bart):
    options = SpaceOptions(sites="separate")
    space, trial = SearchSpace(shape=bart, budget=2_000_000, options=options), RandomTrial(1)
    kinds = (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS, Site.FFN)
    assert list(space.trees) == list(space.parts) == [kind.value for kind in kinds]
    assert len(space.placements) == 15
    kinds_seen, forms = set(), set()
    for _ in range(400):
        sites = {edit.site: edit.form.name for edit in space.suggest(trial).configuration.edits}
        kinds_seen.add(frozenset(sites))
        forms.add((sites.get(Site.ENCODER_SELF), sites.get(Site.CROSS)))
    assert len(kinds_seen) == 15
    assert {Site.ATTENTION} & {site for sites in kinds_seen for site in sites} == set()
    assert {("bottleneck", "lowrank"), ("lowrank", "bottleneck"), ("diag", None)} <= forms


@pytest.mark.parametrize(("backbone", "parts"), [("roberta_base", ("enc_self", "ffn")), ("gpt2", ("dec_self", "ffn"))])
def test_where_there_is_one_kind_of_attention_separate_sites_mean_the_same(backbone, parts, shape_named):
    shape = shape_named(backbone)
    tied = SearchSpace(shape=shape, budget=HALF_PERCENT)
    separate = SearchSpace(shape=shape, budget=HALF_PERCENT, options=SpaceOptions(sites="separate"))
    assert separate.parts == parts
    both = FixedTrial(placement="both", attention__form="lowrank")
    same = FixedTrial(placement="+".join(parts), **{f"{parts[0]}__form": "lowrank"})
    assert tied.suggest(both).fingerprint == separate.suggest(same).fingerprint
    assert [len(tree.points) for tree in tied.trees.values()] == [len(tree.points) for tree in separate.trees.values()]


def test_equal_edits_at_every_kind_of_attention_are_the_tied_choice(bart):
    def suggest(sites: str, **values: str | float) -> Candidate:
        options = SpaceOptions(sites=sites, attention_forms=("diag",), ffn_forms=())
        return SearchSpace(shape=bart, budget=10**6, options=options).suggest(FixedTrial(**values))

    writes = {f"{kind}__diag__write": "v" for kind in ("enc_self", "dec_self", "cross")}
    reads = {f"{kind}__diag__v__read": "v" for kind in ("enc_self", "dec_self", "cross")}
    tied = suggest("tied", attention__diag__write="v", attention__diag__v__read="v")
    separate = suggest("separate", placement="enc_self+dec_self+cross", **writes, **reads)
    assert len(separate.configuration.edits) == 3
    assert tied.counts == separate.counts
    assert tied.fingerprint == separate.fingerprint


def test_layers_are_chosen_once_for_attention_and_once_for_the_ffn(bart):
    options = SpaceOptions(layers=("all", "range", "spindle"), sites="separate")
    space = SearchSpace(shape=bart, budget=2_000_000, options=options)
    chosen = {
        "attention__layers": "range",
        "attention__first_layer": 0.25,
        "attention__layer_share": 0.4,
        "ffn__layers": "spindle",
        "ffn__groups": "2+3",
    }
    edits = space.suggest(FixedTrial(**chosen)).configuration.edits
    assert [edit.layers for edit in edits if edit.site.is_attention] == [LayerRange(first=3, last=6)] * 3
    assert [edit.layers for edit in edits if edit.site is Site.FFN] == [SpindleGroups(groups=(2, 3))]
    tied = SearchSpace(shape=bart, budget=2_000_000)
    assert {edit.layers for edit in tied.suggest(FixedTrial()).configuration.edits} == {AllLayers()}
    assert not any("layer" in name for name in tied.parameters())


def test_the_budget_is_solved_over_the_layers_that_are_chosen(roberta):
    options = SpaceOptions(layers=("all", "range"), attention_forms=(), ffn_forms=("lowrank",), gates=("add",))
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT, options=options)
    half = {"ffn__layers": "range", "ffn__first_layer": 0.5, "ffn__layer_share": 1.0}
    ports = {"ffn__lowrank__write": "f", "ffn__lowrank__f__read": "f"}
    widths = []
    for trial in (FixedTrial(**ports), FixedTrial(**half, **ports)):
        candidate = space.suggest(trial)
        assert candidate.counts.stored > 0.997 * HALF_PERCENT
        widths.append(candidate.configuration.edits[0].sized_form.width)
    assert widths == [HALF_PERCENT // (12 * 1536), HALF_PERCENT // (6 * 1536)]


@pytest.mark.parametrize(
    "options",
    [
        SpaceOptions(values=FormValues(norms=(OwnNorm.NONE, OwnNorm.INPUT, OwnNorm.OUTPUT))),
        SpaceOptions(values=FormValues(biases=("with", "without"))),
        SpaceOptions(values=FormValues(inits=tuple(Init))),
        SpaceOptions(values=FormValues(reparameterizations=(None, 8))),
        SpaceOptions(
            attention_forms=("phm",), values=FormValues(products=(2, 4), factors=(1, None), sharing=("shared", "own"))
        ),
        SpaceOptions(values=FormValues(scale_per=tuple(ScalePer))),
        SpaceOptions(gates=("add", "lse_convex", "lse_add", "tanh", "sigmoid", "inducer_convex")),
    ],
    ids=["norms", "biases", "inits", "reparameterizations", "phm", "scales", "gates"],
)
def test_every_value_of_an_option_can_be_proposed(options, roberta):
    space = SearchSpace(shape=roberta, budget=HALF_PERCENT, options=options)
    wanted = {point.path for part in ("attention", "ffn") for point in points_of(part, roberta, options)}
    in_trees = {point.path for tree in space.trees.values() for point in tree.points}
    assert in_trees == wanted
    found = {(name, value) for path in in_trees for name, value in path}
    for name, values in options.attributes.items():
        concerned = {value for dimension, value in found if dimension == name}
        assert concerned in (set(values), set())
    trial = RandomTrial(8)
    for _ in range(60):
        assert_sound(space.suggest(trial), roberta, HALF_PERCENT)
