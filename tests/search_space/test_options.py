"""What a study may search: options that are refused, and the leaves of the tree on each kind of backbone."""

from collections.abc import Callable
from typing import Any

import pytest

from search_space.backbone_shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting import count
from search_space.dimensions import Activation, Heads, Site
from search_space.errors import InvalidEditError, SearchSpaceError, UnknownMethodError
from search_space.form import FORMS, Bottleneck, Constant, SoftmaxMemory
from search_space.gate import GATES, Add, ConvexGate, FixedScale, LearnedScale
from search_space.options import LEARNING_RATES, Leaf, SpaceOptions, side_leaves
from search_space.published import COMPARED
from search_space.validity import check_on

FORM_NAMES = tuple(form.name for form in FORMS)
GATE_NAMES = tuple(gate.name for gate in GATES)


def test_by_default_everything_is_searched() -> None:
    options = SpaceOptions()
    assert set(options.attention_forms) == set(options.ffn_forms) == set(FORM_NAMES)
    assert set(options.gates) == set(GATE_NAMES)
    assert set(options.activations) == set(Activation)
    assert options.learning_rates == LEARNING_RATES
    assert options.published == COMPARED


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"attention_forms": ("lora",)},
            "a form must be one of softmax_memory, bottleneck, lowrank, const; got 'lora'",
        ),
        ({"ffn_forms": ("bottleneck", "phm")}, "got 'phm'"),
        ({"learning_rates": {"prefix": (1e-3, 1e-2)}}, "got 'prefix'"),
        ({"gates": ("add", "mul")}, "a gate must be one of add, scale, scale_learned, lse_convex; got 'mul'"),
        (
            {"gates": ("lse_convex",)},
            "at least one of the gates add, scale and scale_learned must be allowed; got none",
        ),
        ({"gates": ()}, "at least one of the gates"),
        ({"gates": ("add", "add")}, "gates must not name anything twice; got add, add"),
        ({"ffn_forms": ("const", "const")}, "ffn_forms must not name anything twice"),
        ({"activations": ()}, "at least one activation must be allowed; got none"),
        ({"activations": (Activation.RELU, Activation.RELU)}, "activations must not name anything twice"),
        ({"scales": ()}, "the gate scale needs at least one fixed scale; got none"),
        ({"scales": (2.0, 2)}, "scales must not name anything twice"),
        ({"scales": (0.0,)}, "a fixed scale must be finite and above 0; got 0.0"),
        ({"published_scale": float("nan")}, "a fixed scale must be finite and above 0; got nan"),
        ({"attention_share": (0.0, 0.5)}, "the share of attention must be a range within (0, 1); got 0.0 to 0.5"),
        ({"attention_share": (0.5, 1.0)}, "got 0.5 to 1.0"),
        ({"attention_share": (0.6, 0.5)}, "got 0.6 to 0.5"),
        ({"attention_share": (float("nan"), 0.5)}, "got nan to 0.5"),
        (
            {"learning_rates": {"const": (0.0, 1e-2)}},
            "learning rates of const must be a range above 0; got 0.0 to 0.01",
        ),
        ({"learning_rates": {"const": (1e-2, 1e-3)}}, "got 0.01 to 0.001"),
        ({"learning_rates": {"const": (1e-2, float("inf"))}}, "got 0.01 to inf"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_line(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(SearchSpaceError) as caught:
        SpaceOptions(**changed)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_published_method_is_refused() -> None:
    with pytest.raises(UnknownMethodError, match="Did you mean 'bitfit'"):
        SpaceOptions(published=("bitfitt",))


def test_fixed_scales_may_be_left_out_with_their_gate() -> None:
    assert SpaceOptions(gates=("add",), scales=()).scales == ()


def test_learning_rates_that_are_not_given_keep_their_default() -> None:
    rates = SpaceOptions(learning_rates={"const": (1e-3, 1e-3)}).learning_rates
    assert rates == {**LEARNING_RATES, "const": (1e-3, 1e-3)}
    assert set(LEARNING_RATES) == set(FORM_NAMES)


# form: {write: reads}, by hand; on every backbone with biases
ATTENTION = {
    "softmax_memory": {"head": "q head", "o": "x_attn o"},
    "bottleneck": {
        "q": "x_attn q",
        "k": "ctx k",
        "v": "ctx v",
        "head": "q x_attn head",
        "o": "x_attn q concat o",
    },
    "lowrank": {
        "q": "x_attn",
        "k": "ctx",
        "v": "ctx",
        "q+v": "x_attn+ctx",
        "k+v": "ctx+ctx",
        "q+k+v": "x_attn+ctx+ctx",
        "head": "q x_attn head",
        "o": "x_attn concat o",
        "q+k+v+o": "x_attn+ctx+ctx+concat",
    },
    "const": {"q": "none", "v": "none", "o": "none", "q+v": "none+none"},
}
FFN = {
    "softmax_memory": {"u": "x_ffn", "f": "x_ffn m f"},
    "bottleneck": {"u": "x_ffn u", "f": "x_ffn m f"},
    "lowrank": {"u": "x_ffn u", "f": "x_ffn m f", "u+f": "x_ffn+m"},
    "const": {"u": "none", "f": "none", "u+f": "none+none"},
}


def table(leaves: tuple[Leaf, ...]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for leaf in leaves:
        reads = found.setdefault(leaf.form, {})
        reads[leaf.write] = f"{reads[leaf.write]} {leaf.read}" if leaf.write in reads else leaf.read
    return found


@pytest.mark.parametrize("backbone", ["roberta_base", "bart_large", "gpt2", "bert_large_cased"])
def test_every_leaf_is_valid_on_a_backbone_with_biases(
    backbone: str, shape_named: Callable[[str], BackboneShape]
) -> None:
    shape = shape_named(backbone)
    assert table(side_leaves("attention", FORM_NAMES, shape)) == ATTENTION
    assert table(side_leaves("ffn", FORM_NAMES, shape)) == FFN


def test_constants_are_left_out_where_there_is_no_bias(
    qwen: BackboneShape, shape_named: Callable[[str], BackboneShape]
) -> None:
    assert side_leaves("attention", ("const",), qwen) == ()
    partly = shape_named("qwen2_5_0_5b")  # biases at q, k and v alone
    assert [leaf.write for leaf in side_leaves("attention", ("const",), partly)] == ["q", "v", "q+v"]
    assert side_leaves("ffn", ("const",), partly) == ()


def test_forms_come_in_the_order_they_are_named_and_no_others(roberta: BackboneShape) -> None:
    leaves = side_leaves("ffn", ("const", "bottleneck"), roberta)
    assert list(dict.fromkeys(leaf.form for leaf in leaves)) == ["const", "bottleneck"]
    assert side_leaves("ffn", (), roberta) == ()


def leaf(form: str, write: str, read: str, side: str = "attention") -> Leaf:
    return Leaf(side=side, form=form, write=write, read=read)


PREFIX = leaf("softmax_memory", "head", "q")
MEMORY = leaf("softmax_memory", "o", "o")
BIAS = leaf("const", "q+v", "none+none")


def test_the_convex_gate_is_offered_to_prefixes_alone() -> None:
    assert PREFIX.gates(GATE_NAMES) == ("lse_convex", "add", "scale", "scale_learned")
    assert PREFIX.gates(("add",)) == ("add",)
    for other in (MEMORY, leaf("softmax_memory", "head", "head"), leaf("bottleneck", "head", "q")):
        assert other.gates(GATE_NAMES) == ("add", "scale", "scale_learned")
    assert BIAS.gates(("scale",)) == ("add",)


@pytest.mark.parametrize(
    ("one", "allowed", "widest"),
    [(PREFIX, GATE_NAMES, "scale_learned"), (PREFIX, ("add", "scale"), "add"), (BIAS, GATE_NAMES, "add")],
)
def test_the_widest_gate_is_the_one_with_a_parameter_of_its_own(
    one: Leaf, allowed: tuple[str, ...], widest: str
) -> None:
    assert one.widest_gate(allowed) == widest


@pytest.mark.parametrize("side", ["attention", "ffn"])
def test_no_gate_costs_more_than_the_widest(side: str, roberta: BackboneShape) -> None:
    def stored(one: Leaf, gate: str) -> int:
        return count(Configuration(edits=one.edits(activation=Activation.RELU, gate=gate, scale=2.0)), roberta).stored

    for one in side_leaves(side, FORM_NAMES, roberta):
        for allowed in (GATE_NAMES, ("add", "lse_convex")):
            most = max(stored(one, gate) for gate in one.gates(allowed))
            assert stored(one, one.widest_gate(allowed)) == most


def test_edits_of_a_leaf_are_of_the_named_form_and_gate() -> None:
    (edit,) = leaf("bottleneck", "f", "m", side="ffn").edits(activation=Activation.SILU, gate="scale", scale=3.0)
    assert edit.site is Site.FFN
    assert (edit.write, edit.read, edit.gate) == ("f", "m", FixedScale(value=3.0))
    assert edit.form == Bottleneck(width=1, activation=Activation.SILU)
    gates = [
        PREFIX.edits(activation=Activation.RELU, gate=name, scale=3.0)[0].gate for name in PREFIX.gates(GATE_NAMES)
    ]
    assert gates == [ConvexGate(), Add(), FixedScale(value=3.0), LearnedScale()]


def test_several_writes_are_an_edit_each() -> None:
    edits = leaf("lowrank", "q+k+v+o", "x_attn+ctx+ctx+concat").edits(activation=Activation.RELU, gate="add", scale=1.0)
    assert [(edit.write, edit.read) for edit in edits] == [("q", "x_attn"), ("k", "ctx"), ("v", "ctx"), ("o", "concat")]
    assert {edit.site for edit in edits} == {Site.ATTENTION}
    biases = BIAS.edits(activation=Activation.RELU, gate="add", scale=1.0)
    assert [(edit.write, edit.read, edit.form) for edit in biases] == [("q", None, Constant()), ("v", None, Constant())]


def test_forms_at_the_heads_have_one_block_a_head_and_no_bias() -> None:
    (adapter,) = leaf("bottleneck", "head", "x_attn").edits(activation=Activation.TANH, gate="add", scale=1.0)
    assert adapter.form == Bottleneck(width=1, activation=Activation.TANH, heads=Heads.QUERY, bias=False)
    (memory,) = PREFIX.edits(activation=Activation.RELU, gate="add", scale=1.0)
    assert memory.form == SoftmaxMemory(width=1, heads=Heads.KEY_VALUE)
    (single,) = MEMORY.edits(activation=Activation.RELU, gate="add", scale=1.0)
    assert single.heads is Heads.SINGLE


def test_adapters_have_biases_but_not_at_the_keys_where_they_move_all_logits_alike() -> None:
    has_bias = {
        write: leaf("bottleneck", write, read).edits(activation=Activation.RELU, gate="add", scale=1.0)[0].form
        for write, read in (("q", "q"), ("k", "ctx"), ("v", "ctx"), ("head", "q"), ("o", "o"))
    }
    assert {write for write, form in has_bias.items() if getattr(form, "bias", None)} == {"q", "v", "o"}


def test_a_leaf_that_breaks_a_rule_cannot_become_edits(roberta: BackboneShape) -> None:
    with pytest.raises(InvalidEditError):
        leaf("bottleneck", "f", "m").edits(activation=Activation.RELU, gate="add", scale=1.0)
    edits = leaf("lowrank", "g", "x_ffn", side="ffn").edits(activation=Activation.RELU, gate="add", scale=1.0)
    with pytest.raises(InvalidEditError):
        check_on(edits, roberta)
