"""The product of the dimensions: every combination is legal or refused by a rule, and covers leave no pair out."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations as subsets

import pytest

from search_space.backbones.shape import BackboneShape
from search_space.counting.counts import count
from search_space.dimensions import Heads, ScalePer, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import FORMS, Bottleneck, Full, Intrinsic, LowRank, OwnNorm, Phm, Prompt, Sparse
from search_space.forms import EncodedPrompt as Encoded
from search_space.gates import (
    GATES,
    ConvexInducerGate,
    FixedScale,
    InducerGate,
    LearnedScale,
    Prepend,
    TanhGate,
)
from search_space.layers import LayerRange
from search_space.space.choices import DIMENSIONS, EVERYTHING, edit_of, form_dimensions, gate_of, site_values
from search_space.space.product import (
    Combination,
    combinations,
    covering_configurations,
    legal_combinations,
    pairwise_cover,
    product_size,
    refusals,
)
from search_space.validity import RULES, check_on

FEW = {
    "form": ("bottleneck", "softmax_memory", "diag"),
    "activation": ("relu", "tanh"),
    "init": ("lora", "bert"),
    "norm": ("none", "in"),
    "bias": ("without",),
    "gate": ("add", "tanh", "inducer:3", "lse_convex", "mul"),
}
SITES = (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS, Site.FFN)


@pytest.mark.parametrize("site", [Site.ATTENTION, Site.FFN, Site.STACK])
def test_every_combination_is_an_edit_or_names_the_rule_that_refuses_it(site: Site, roberta: BackboneShape) -> None:
    seen = list(combinations(site, roberta, FEW if site is not Site.STACK else {"form": ("const",)}))
    assert len({tuple(one.choices.items()) for one in seen}) == len(seen)
    for one in seen:
        assert set(one.choices) == {"form", "write", "read", "gate", *form_dimensions(one.choices["form"])}
        if one.rule is None:
            check_on((one.edit,), roberta)
            assert one.edit == edit_of(site, one.choices)
        else:
            assert one.rule in RULES
            with pytest.raises(InvalidEditError, match=rf"\[{one.rule}\]"):
                _ = one.edit


def test_a_refused_combination_is_refused_when_it_is_built_alone_and_for_the_same_rule(roberta: BackboneShape) -> None:
    refused = [one for one in combinations(Site.FFN, roberta, FEW) if one.rule is not None]
    assert len(refused) > 1000
    for one in refused:
        with pytest.raises(InvalidEditError) as caught:
            check_on((edit_of(Site.FFN, one.choices),), roberta)
        assert caught.value.rule == one.rule


@pytest.mark.parametrize("site", [Site.ENCODER_SELF, Site.FFN])
def test_sizes_and_refusals_are_those_of_the_combinations(site: Site, roberta: BackboneShape) -> None:
    seen = list(combinations(site, roberta, FEW))
    assert product_size(site, FEW) == len(seen)
    assert refusals(site, roberta, FEW) == Counter(one.rule for one in seen if one.rule is not None)
    assert list(legal_combinations(site, roberta, FEW)) == [one for one in seen if one.rule is None]


def test_the_size_of_the_product_by_hand() -> None:
    ports, reads, gates = 7, 11, len(EVERYTHING["gate"])  # q k v head concat o norm; res_in x_attn ctx and none beside
    assert gates == 14
    open_values = {
        "softmax_memory": 3 * 2,
        "bottleneck": 3 * 4 * 3 * 2 * 4 * 2,
        "lowrank": 3 * 2,
        "phm": 4 * 2 * 2 * 2,
        "diag": 1,
        "const": 1,
    }
    assert product_size(Site.ATTENTION) == ports * reads * gates * sum(open_values.values())


def test_the_product_has_every_form_and_gate_that_is_no_prompts_nor_of_the_whole_model() -> None:
    outside = (Prompt, Encoded, Full, Sparse, Intrinsic)
    assert set(EVERYTHING["form"]) == {name for name, form in FORMS.items() if form not in outside}
    assert {gate_of(gate).name for gate in EVERYTHING["gate"]} == {
        name for name, gate in GATES.items() if gate is not Prepend
    }
    assert {gate_of(gate) for gate in EVERYTHING["gate"] if gate.startswith("scale_learned")} == {
        LearnedScale(per=per) for per in ScalePer
    }
    assert {dimension for form in EVERYTHING["form"] for dimension in form_dimensions(form)} <= set(DIMENSIONS)


def test_gates_are_read_with_their_numbers() -> None:
    assert gate_of("scale", 3.0) == FixedScale(value=3.0)
    assert gate_of("scale:4", 3.0) == FixedScale(value=4.0)
    assert gate_of("inducer") == InducerGate(key_width=None)
    assert gate_of("inducer_convex:12") == ConvexInducerGate(key_width=12)
    assert gate_of("tanh") == TanhGate()


def test_an_edit_has_what_its_choices_say() -> None:
    choices = {
        "form": "bottleneck",
        "write": "o",
        "read": "concat",
        "heads": "single",
        "activation": "tanh",
        "norm": "out",
        "bias": "without",
        "init": "inducer",
        "reparameterization": "none",
        "gate": "scale_learned:channel",
    }
    edit = edit_of(Site.CROSS, choices, width=3, layers=LayerRange(first=1, last=2))
    assert isinstance(edit.form, Bottleneck)
    assert (edit.site, edit.write, edit.read, edit.layers) == (Site.CROSS, "o", "concat", LayerRange(first=1, last=2))
    assert (edit.form.width, edit.form.norm, edit.form.bias, edit.form.init) == (3, OwnNorm.OUTPUT, False, "inducer")
    phm = {"form": "phm", "write": "f", "read": "f", "activation": "gelu", "bias": "with", "gate": "add"}
    kronecker = edit_of(Site.FFN, phm | {"products": "2", "factors": "full", "sharing": "own"}, width=3)
    assert kronecker.form == Phm(width=6, n=2, factor_rank=None, shared=False)


def pairs(one: Combination) -> Iterator[tuple[tuple[str, str], ...]]:
    return subsets(sorted(one.choices.items()), 2)


@pytest.mark.parametrize("backbone", ["roberta_base", "bart_large", "gpt2", "llama3_2_1b", "t5_small"])
def test_a_cover_has_every_pair_of_values_that_is_legal(
    backbone: str, shape_named: Callable[[str], BackboneShape]
) -> None:
    shape = shape_named(backbone)
    few = {"activation": ("relu",), "sharing": ("shared",), "init": ("lora", "inducer"), "norm": ("none", "in")}
    for site in (Site.ATTENTION, Site.FFN):
        cover = pairwise_cover(site, shape, values=few)
        legal = legal_combinations(site, shape, few)
        wanted = {pair for one in legal for pair in pairs(one)}
        assert {pair for one in cover for pair in pairs(one)} == wanted
        assert all(one.rule is None for one in cover)
        assert len(cover) < len(legal) / 5


def test_a_cover_is_the_same_for_the_same_seed_and_another_for_another(roberta: BackboneShape) -> None:
    first, again, other = (pairwise_cover(Site.FFN, roberta, seed=seed, values=FEW) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_covering_configurations_are_different_valid_and_have_an_edit_everywhere(bart: BackboneShape) -> None:
    configurations = covering_configurations(bart, 150, seed=3)
    assert len(configurations) == len(set(configurations)) >= 150
    for configuration in configurations:
        check_on(configuration.edits, bart)
        assert [edit.site for edit in configuration.edits] == list(SITES)
        assert count(configuration, bart).stored > 0
    logits = {"lse_convex", "lse_add", "inducer", "inducer_convex"}
    for site in SITES:
        edits = {edit for configuration in configurations for edit in configuration.edits if edit.site is site}
        assert {edit.form.name for edit in edits} == set(EVERYTHING["form"])
        gates = {gate_of(gate) for gate in EVERYTHING["gate"]}
        legal = gates if site.is_attention else {gate for gate in gates if gate.name not in logits}
        assert {edit.gate for edit in edits} - legal == set()
        assert legal - {edit.gate for edit in edits} <= {LearnedScale(per=ScalePer.HEAD)}


def test_the_values_of_a_site_are_its_own_tensors() -> None:
    attention, ffn, stack = (site_values(site) for site in (Site.CROSS, Site.FFN, Site.STACK))
    assert attention["write"] == ("q", "k", "v", "head", "concat", "o", "norm")
    assert ffn["write"] == ("g", "u", "m", "f", "sum", "norm")
    assert set(ffn["read"]) - set(ffn["write"]) == {"none", "res_f", "x_ffn"}
    assert (stack["write"], stack["read"]) == (("norm",), ("none", "norm"))


@pytest.mark.parametrize(("form", "heads"), [("lowrank", Heads.QUERY), ("softmax_memory", Heads.KEY_VALUE)])
def test_combinations_at_the_heads_are_legal(form: str, heads: Heads, qwen: BackboneShape) -> None:
    legal = [one.edit for one in legal_combinations(Site.DECODER_SELF, qwen, {"form": (form,)})]
    found = [edit for edit in legal if edit.write == "head" and edit.heads is heads]
    assert {edit.read for edit in found} == {"q", "x_attn", "head"}
    assert all(isinstance(edit, Edit) and (form != "lowrank" or isinstance(edit.form, LowRank)) for edit in found)
