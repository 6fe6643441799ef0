"""The product of the dimensions: every element is legal or refused by a rule, and covers leave no pair out."""

import pytest
from support.covers import EVERYTHING, every_element, legal, values_of
from support.edits import edit

from search_space.dimensions import Activation, Heads, Port, ScalePer, Site
from search_space.errors import InvalidEditError
from search_space.forms import FORMS, Bottleneck, EncodedPrompt, Full, Init, Intrinsic, OwnNorm, Phm, Prompt, Sparse
from search_space.gates import GATES, Add, FixedScale, LearnedScale, Prepend
from search_space.layers import AllLayers, LayerRange
from search_space.rules import RULES, writable_ports
from search_space.space.product import (
    BIASES,
    StructureFamily,
    families,
    readable,
)
from search_space.validity import check_on

FEW = {
    "form": ("bottleneck", "softmax_memory", "diag"),
    "activation": ("relu", "tanh"),
    "init": ("lora", "bert"),
    "norm": ("none", "in"),
    "bias": ("without",),
    "gate": ("add", "tanh", "inducer:2", "lse_convex", "mul"),
}


@pytest.mark.parametrize("site", [Site.ATTENTION, Site.FFN, Site.STACK])
def test_every_element_is_edits_or_names_the_rule_that_refuses_it(site, roberta):
    elements = dict(every_element(site, roberta, FEW if site is not Site.STACK else {"form": ("const",)}))
    values = values_of(FEW if site is not Site.STACK else {"form": ("const",)})
    assert len(elements) == sum(map(len, families(site, {**EVERYTHING, **values})))
    for path, outcome in elements.items():
        form = dict(path)["form"]
        assert [name for name, _ in path] == ["form", "write", "read", "heads", *FORMS[form].dimensions, "gate"]
        if isinstance(outcome, InvalidEditError):
            assert f"[{outcome.rule}]" in str(outcome)
            assert outcome.rule in RULES
        else:
            check_on(outcome, roberta)


@pytest.mark.parametrize("site", [Site.ENCODER_SELF, Site.FFN])
def test_points_are_the_legal_elements(site, roberta):
    found = {
        frozenset(path): outcome
        for path, outcome in every_element(site, roberta, FEW)
        if not isinstance(outcome, InvalidEditError)
    }
    points = legal(site, roberta, FEW)
    assert {frozenset(point.path): point.edits for point in points} == found
    assert len(points) == len(found)


def test_the_size_of_the_product_by_hand():
    ports, reads, gates = 7, 11, len(EVERYTHING["gate"])  # q k v head concat o norm; res_in x_attn ctx and none beside
    open_values = {
        "softmax_memory": 3 * 2,
        "bottleneck": 3 * 4 * 3 * 2 * 4 * 2,
        "lowrank": 3 * 2,
        "phm": 4 * 2 * 2 * 2,
        "diag": 1,
        "const": 1,
    }
    values = {**EVERYTHING, "form": {name: FORMS[name] for name in open_values}}
    size = sum(map(len, families(Site.ATTENTION, values)))
    assert size == ports * reads * gates * sum(open_values.values())


def test_product_has_all_forms_but_prompts_and_whole_model():
    outside = (Prompt, EncodedPrompt, Full, Sparse, Intrinsic)
    assert set(EVERYTHING["form"].values()) == {form for form in FORMS.values() if form not in outside}
    assert {gate.name for gate in EVERYTHING["gate"].values()} == set(GATES) - {Prepend.name}
    assert {gate for gate in EVERYTHING["gate"].values() if isinstance(gate, LearnedScale)} == {
        LearnedScale(per=per) for per in ScalePer
    }


def family(form: str, write: Port, read: Port | None, heads: Heads = Heads.SINGLE, **values: object) -> StructureFamily:
    """Return a family with one element."""
    site = Site.FFN if write in writable_ports(Site.FFN) else Site.ATTENTION
    given = {name: {"-": value} for name, value in values.items()}
    return StructureFamily(site=site, ports=((write, read),), form=FORMS[form], heads=heads, values=given)


def test_edit_has_the_given_values(roberta):
    values = {"activation": Activation.TANH, "norm": OwnNorm.OUTPUT, "bias": False, "init": Init.INDUCER}
    gate = LearnedScale(per=ScalePer.CHANNEL)
    (adapter,) = family("bottleneck", Port.O, Port.CONCAT, **values, reparameterization=None, gate=gate).points(roberta)
    assert adapter.edits == (edit("o", "concat", Bottleneck(width=1, **values), gate),)
    usual = {"activation": Activation.GELU, "bias": True}
    own = family("phm", Port.F, Port.F, **usual, products=2, factors=None, sharing=False, gate=Add())
    (kronecker,) = own.points(roberta)
    assert kronecker.edits == (edit("f", "f", Phm(width=2, n=2, factor_rank=None, shared=False)),)


def test_adapters_have_biases_except_at_keys(roberta):
    reads = {Port.Q: Port.Q, Port.K: Port.CTX, Port.V: Port.CTX, Port.HEAD: Port.Q, Port.O: Port.O}

    def with_bias(form: str, text: str) -> set[str]:
        found = set()
        for write, read in reads.items():
            heads = Heads.QUERY if write is Port.HEAD else Heads.SINGLE
            more = {"activation": Activation.RELU} if form == "bottleneck" else {}
            (point,) = family(form, write, read, heads, **more, bias=BIASES[text], gate=Add()).points(roberta)
            found |= {one.write.value for one in point.edits if one.form.bias}
        return found

    assert with_bias("bottleneck", "usual") == {"q", "v", "o"}
    assert with_bias("lowrank", "usual") == set()
    for form in ("bottleneck", "lowrank"):
        assert (with_bias(form, "with"), with_bias(form, "without")) == ({"q", "k", "v", "head", "o"}, set())


def test_point_is_varied_only_in_its_open_dimensions(roberta):
    (adapter,) = family("bottleneck", Port.F, Port.M, gate=FixedScale(value=2.0)).points(roberta)
    varied = adapter.with_value("activation", Activation.SILU).with_value("scale", 3.0)
    assert varied.edits == (edit("f", "m", Bottleneck(width=1, activation=Activation.SILU), FixedScale(value=3.0)),)
    assert varied.path == (*adapter.path, ("activation", "silu"), ("scale", "3.0"))
    (linear,) = family("lowrank", Port.F, Port.M, gate=Add()).points(roberta)
    assert linear.with_value("activation", Activation.SILU).with_value("scale", 3.0) is linear
    assert linear.at_layers(AllLayers()) == linear.edits
    assert [edit.layers for edit in linear.at_layers(LayerRange(first=1, last=2))] == [LayerRange(first=1, last=2)]


def test_the_tensors_of_a_site_are_its_own():
    assert writable_ports(Site.CROSS) == ("q", "k", "v", "head", "concat", "o", "norm")
    assert writable_ports(Site.FFN) == ("g", "u", "m", "f", "sum", "norm")
    assert set(readable(Site.FFN)) - set(writable_ports(Site.FFN)) == {None, "res_f", "x_ffn"}
    assert (writable_ports(Site.STACK), readable(Site.STACK)) == (("norm",), (None, "norm"))
