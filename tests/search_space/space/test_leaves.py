"""The leaves of the tree on each kind of backbone: every legal one is there, near-duplicates are not."""

import dataclasses
from collections.abc import Callable, Sequence

import pytest

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting.counts import count
from search_space.dimensions import Activation, Heads, Positions, Site
from search_space.errors import InvalidEditError
from search_space.forms import FORMS, Bottleneck, Constant, Diagonal, Init, LowRank, SoftmaxMemory
from search_space.gates import GATES, Add, ConvexGate, FixedScale, InducerGate, LearnedScale, Multiply
from search_space.space.leaves import Leaf, side_leaves
from search_space.space.product import legal_combinations
from search_space.validity import check_on

FORM_NAMES = tuple(FORMS)
GATE_NAMES = tuple(GATES)
ADDITIVE = ("add", "scale", "scale_learned", "sigmoid")

# form: {write: reads}, by hand; on every post-LN backbone with biases, absolute positions and as many heads of both
# kinds; a star is a form per query head, two stars one per key/value head
ATTENTION = {
    "softmax_memory": {
        "q": "x_attn q",
        "k": "ctx k",
        "v": "ctx v",
        "head": "q** x_attn** head**",
        "o": "x_attn q q* head* concat o",
    },
    "bottleneck": {
        "q": "x_attn q",
        "k": "ctx k",
        "v": "ctx v",
        "head": "q* x_attn* head*",
        "o": "x_attn q q* head* concat o",
    },
    "lowrank": {
        "q": "x_attn",
        "k": "ctx",
        "v": "ctx",
        "head": "q* x_attn* head*",
        "o": "x_attn q q* head* concat o",
        "q+v": "x_attn+ctx",
        "k+v": "ctx+ctx",
        "q+k+v": "x_attn+ctx+ctx",
        "q+k+v+o": "x_attn+ctx+ctx+concat",
    },
    "phm": {"q": "x_attn q", "k": "ctx k", "v": "ctx v", "o": "x_attn q concat o"},
    "diag": {
        "q": "x_attn q",
        "k": "ctx",
        "v": "ctx v",
        "concat": "x_attn q",
        "o": "x_attn q concat o",
        "k+v": "k+v",
    },
    "const": {"q": "none", "v": "none", "o": "none", "q+v": "none+none"},
}
FFN = {
    "softmax_memory": {"u": "x_ffn u", "m": "x_ffn m", "f": "x_ffn m f", "sum": "sum"},
    "bottleneck": {"u": "x_ffn u", "m": "x_ffn m", "f": "x_ffn m f", "sum": "sum"},
    "lowrank": {"u": "x_ffn u", "m": "x_ffn m", "f": "x_ffn m f", "sum": "sum", "u+f": "x_ffn+m"},
    "phm": {"u": "x_ffn u", "m": "x_ffn m", "f": "x_ffn m f", "sum": "sum"},
    "diag": {"u": "u", "m": "m", "f": "x_ffn f", "sum": "sum"},
    "const": {"u": "none", "f": "none", "u+f": "none+none"},
}
# what grouped queries, rotary positions and residual streams before their norms add or take away
ON_QWEN = {
    "softmax_memory": {
        "q": "x_attn q",
        "k": "ctx k",
        "v": "ctx v",
        "head": "q** q* x_attn** x_attn* head** head*",
        "o": "x_attn res_in q q* head* concat o",
    },
    "diag": {
        "q": "q",  # twice as wide as the stream, which k and v are as wide as
        "k": "ctx k",
        "v": "ctx v",
        "concat": "q concat",
        "o": "x_attn res_in o",
        "k+v": "k+v",
    },
}


def table(leaves: tuple[Leaf, ...]) -> dict[str, dict[str, str]]:
    stars = {Heads.SINGLE: "", Heads.QUERY: "*", Heads.KEY_VALUE: "**"}
    found: dict[str, dict[str, str]] = {}
    for leaf in leaves:
        reads = found.setdefault(leaf.form, {})
        read = f"{leaf.read}{stars[leaf.heads or Heads.SINGLE]}"
        reads[leaf.write] = f"{reads[leaf.write]} {read}" if leaf.write in reads else read
    return found


@pytest.mark.parametrize("backbone", ["roberta_base", "bart_large", "bert_large_cased"])
def test_the_leaves_of_a_post_ln_backbone_with_biases(
    backbone: str, shape_named: Callable[[str], BackboneShape]
) -> None:
    shape = shape_named(backbone)
    assert table(side_leaves("attention", FORM_NAMES, shape)) == ATTENTION
    assert table(side_leaves("ffn", FORM_NAMES, shape)) == FFN


def test_a_pre_ln_backbone_has_the_residual_stream_beside_the_sublayers_input(
    shape_named: Callable[[str], BackboneShape],
) -> None:
    ffn = table(side_leaves("ffn", FORM_NAMES, shape_named("gpt2")))
    assert ffn["bottleneck"] == {"u": "x_ffn res_f u", "m": "x_ffn res_f m", "f": "x_ffn res_f m f", "sum": "sum"}
    attention = table(side_leaves("attention", FORM_NAMES, shape_named("gpt2")))
    assert attention["bottleneck"]["o"] == "x_attn res_in q q* head* concat o"
    assert attention["const"] == ATTENTION["const"]


def test_grouped_queries_and_rotary_positions_tell_apart_what_is_one_elsewhere(qwen: BackboneShape) -> None:
    found = table(side_leaves("attention", FORM_NAMES, qwen))
    assert {form: found[form] for form in ON_QWEN} == ON_QWEN
    assert found["bottleneck"]["head"] == "q* q** x_attn* x_attn** head* head**"
    assert table(side_leaves("ffn", ("lowrank",), qwen))["lowrank"] == {
        "g": "x_ffn res_f g",
        "u": "x_ffn res_f u",
        "m": "x_ffn res_f m",
        "f": "x_ffn res_f m f",
        "sum": "sum",
        "u+f": "x_ffn+m",
        "g+u+f": "x_ffn+x_ffn+m",
    }


def test_constants_are_left_out_where_there_is_no_bias(
    qwen: BackboneShape, shape_named: Callable[[str], BackboneShape]
) -> None:
    assert side_leaves("attention", ("const",), qwen) == ()
    partly = shape_named("qwen2_5_0_5b")  # biases at q, k and v alone
    assert side_leaves("ffn", ("const",), partly) == ()
    rotary = [leaf.write for leaf in side_leaves("attention", ("const",), partly)]
    absolute = dataclasses.replace(partly, positions=Positions.ABSOLUTE)
    assert rotary == ["q", "k", "v", "q+v"]
    assert [leaf.write for leaf in side_leaves("attention", ("const",), absolute)] == ["q", "v", "q+v"]


@pytest.mark.parametrize("backbone", ["roberta_base", "bart_large", "gpt2", "qwen3_0_6b", "t5_small"])
@pytest.mark.parametrize("side", ["attention", "ffn"])
def test_with_near_duplicates_the_leaves_are_all_legal_combinations_of_ports_and_heads(
    side: str, backbone: str, shape_named: Callable[[str], BackboneShape]
) -> None:
    shape = shape_named(backbone)
    everything = side_leaves(side, FORM_NAMES, shape, near_duplicates=True)
    single = {(leaf.form, leaf.write, leaf.read, leaf.heads) for leaf in everything if "+" not in leaf.write}
    site = Site.FFN if side == "ffn" else Site.ATTENTION
    few = {"activation": ("relu",), "init": ("lora",), "norm": ("none",), "sharing": ("own",), "factors": ("1",)}
    legal = [one.edit for one in legal_combinations(site, shape, few)]
    assert single == {(edit.form.name, edit.write, edit.read or "none", edit.heads) for edit in legal}
    assert set(side_leaves(side, FORM_NAMES, shape)) <= set(everything)


def test_a_kind_of_attention_has_the_leaves_of_attention(bart: BackboneShape) -> None:
    collective = side_leaves("attention", FORM_NAMES, bart)
    for kind in ("enc_self", "dec_self", "cross"):
        leaves = side_leaves(kind, FORM_NAMES, bart)
        assert [dataclasses.replace(leaf, side="attention") for leaf in leaves] == list(collective)
        assert {edit.site for leaf in leaves for edit in leaf.edits(gate=leaf.gates(("add",))[0])} == {Site(kind)}


def test_forms_come_in_the_order_they_are_named_and_no_others(roberta: BackboneShape) -> None:
    leaves = side_leaves("ffn", ("const", "bottleneck"), roberta)
    assert list(dict.fromkeys(leaf.form for leaf in leaves)) == ["const", "bottleneck"]
    assert side_leaves("ffn", (), roberta) == ()
    assert side_leaves("ffn", ("prompt", "full", "intrinsic"), roberta) == ()


def leaf(form: str, write: str, read: str, side: str = "attention", heads: Heads | None = None) -> Leaf:
    return Leaf(side=side, form=form, write=write, read=read, heads=heads)


PREFIX = leaf("softmax_memory", "head", "q")
MEMORY = leaf("softmax_memory", "o", "o")
BIAS = leaf("const", "q+v", "none+none")
SCALING = leaf("diag", "k+v", "k+v")
EXTENSION = leaf("bottleneck", "o", "q", heads=Heads.QUERY)


def test_the_gates_of_a_leaf_are_those_that_are_legal() -> None:
    assert PREFIX.gates(GATE_NAMES) == ("lse_convex", "lse_add", "add", "scale", "scale_learned", "tanh", "sigmoid")
    assert PREFIX.gates(("add",)) == ("add",)
    for memory in (MEMORY, leaf("softmax_memory", "head", "head"), leaf("softmax_memory", "head", "x_attn")):
        assert memory.gates(GATE_NAMES) == ("add", "scale", "scale_learned", "tanh", "sigmoid")
    for adapter in (EXTENSION, leaf("bottleneck", "head", "q"), leaf("lowrank", "head", "q")):
        assert adapter.gates(GATE_NAMES) == (*ADDITIVE, "inducer", "inducer_convex")
    for adapter in (leaf("bottleneck", "o", "q"), leaf("bottleneck", "head", "head"), leaf("lowrank", "q", "x_attn")):
        assert adapter.gates(GATE_NAMES) == ADDITIVE
    assert EXTENSION.gates(("inducer", "add", "inducer:4")) == ("add", "inducer", "inducer:4")


def test_constants_are_added_and_diagonals_multiply_what_they_read_whatever_is_allowed() -> None:
    assert BIAS.gates(("scale",)) == ("add",)
    assert SCALING.gates(("scale",)) == ("mul",)
    assert leaf("diag", "o", "x_attn").gates(("scale", "tanh")) == ("scale",)


def test_a_gate_that_starts_closed_needs_a_form_that_does_not_start_at_zero() -> None:
    adapter = leaf("bottleneck", "f", "f", side="ffn")
    assert adapter.gates(("add", "tanh")) == ("add",)
    assert adapter.gates(("add", "tanh"), {"init": Init.BERT.value}) == ("add", "tanh")


@pytest.mark.parametrize(
    ("one", "allowed", "widest"),
    [
        (PREFIX, GATE_NAMES, "scale_learned"),
        (PREFIX, ("add", "scale"), "add"),
        (BIAS, GATE_NAMES, "add"),
        (SCALING, GATE_NAMES, "mul"),
    ],
)
def test_the_widest_plain_gate_is_the_one_with_a_parameter_of_its_own(
    one: Leaf, allowed: tuple[str, ...], widest: str
) -> None:
    assert one.widest_gate(allowed) == widest


@pytest.mark.parametrize("side", ["attention", "ffn"])
def test_no_plain_gate_costs_more_than_the_widest(side: str, roberta: BackboneShape) -> None:
    def stored(one: Leaf, gate: str) -> int:
        return count(Configuration(edits=one.edits(gate=gate)), roberta).stored

    for one in side_leaves(side, FORM_NAMES, roberta):
        for allowed in (("add", "scale", "scale_learned"), ("add", "scale")):
            assert stored(one, one.widest_gate(allowed)) == max(stored(one, gate) for gate in one.gates(allowed))


def test_edits_of_a_leaf_are_of_the_named_form_and_gate() -> None:
    (edit,) = leaf("bottleneck", "f", "m", side="ffn").edits(activation=Activation.SILU, gate="scale", scale=3.0)
    assert edit.site is Site.FFN
    assert (edit.write, edit.read, edit.gate) == ("f", "m", FixedScale(value=3.0))
    assert edit.form == Bottleneck(width=1, activation=Activation.SILU)
    names = PREFIX.gates(("add", "scale", "scale_learned", "lse_convex"))
    gates = [PREFIX.edits(gate=name, scale=3.0)[0].gate for name in names]
    assert gates == [ConvexGate(), Add(), FixedScale(value=3.0), LearnedScale()]
    (inducer,) = EXTENSION.edits(gate="inducer:4")
    assert (inducer.gate, inducer.heads) == (InducerGate(key_width=4), Heads.QUERY)


def test_several_writes_are_an_edit_each() -> None:
    edits = leaf("lowrank", "q+k+v+o", "x_attn+ctx+ctx+concat").edits(gate="add")
    assert [(edit.write, edit.read) for edit in edits] == [("q", "x_attn"), ("k", "ctx"), ("v", "ctx"), ("o", "concat")]
    assert {edit.site for edit in edits} == {Site.ATTENTION}
    biases = BIAS.edits(gate="add")
    assert [(edit.write, edit.read, edit.form) for edit in biases] == [("q", None, Constant()), ("v", None, Constant())]
    scaled = SCALING.edits(gate="mul")
    assert [(edit.write, edit.form, edit.gate) for edit in scaled] == [
        (port, Diagonal(), Multiply()) for port in ("k", "v")
    ]


def test_forms_at_the_heads_have_one_block_a_head_and_no_bias() -> None:
    (adapter,) = leaf("bottleneck", "head", "x_attn").edits(activation=Activation.TANH, gate="add")
    assert adapter.form == Bottleneck(width=1, activation=Activation.TANH, heads=Heads.QUERY, bias=False)
    (memory,) = PREFIX.edits(gate="add")
    assert memory.form == SoftmaxMemory(width=1, heads=Heads.KEY_VALUE)
    (single,) = MEMORY.edits(gate="add")
    assert single.heads is Heads.SINGLE


def test_adapters_have_biases_but_not_at_the_keys_where_they_move_all_logits_alike() -> None:
    ports = (("q", "q"), ("k", "ctx"), ("v", "ctx"), ("head", "q"), ("o", "o"))

    def with_bias(form: str, bias: str) -> set[str]:
        edits = {write: leaf(form, write, read).edits(gate="add", attributes={"bias": bias}) for write, read in ports}
        return {write for write, (edit,) in edits.items() if getattr(edit.form, "bias", None)}

    assert with_bias("bottleneck", "usual") == {"q", "v", "o"}
    assert with_bias("lowrank", "usual") == set()
    for form in ("bottleneck", "lowrank"):
        assert (with_bias(form, "with"), with_bias(form, "without")) == ({"q", "k", "v", "head", "o"}, set())


def test_attributes_are_those_that_are_given_and_the_usual_otherwise() -> None:
    given = {"init": "houlsby", "norm": "out", "reparameterization": "none"}
    (edit,) = leaf("bottleneck", "f", "f", side="ffn").edits(gate="add", attributes=given)
    assert isinstance(edit.form, Bottleneck)
    assert (edit.form.init, edit.form.norm, edit.form.bias) == ("houlsby", "out", True)
    (table_of_mlp,) = PREFIX.edits(gate="lse_convex", attributes={"reparameterization": "7"})
    assert isinstance(table_of_mlp.form, SoftmaxMemory)
    assert table_of_mlp.form.reparameterization == 7
    (plain,) = leaf("lowrank", "q", "x_attn").edits(gate="add", attributes=given)
    assert plain.form == LowRank(width=1)


@pytest.mark.parametrize(
    ("one", "shape_name"),
    [
        (leaf("bottleneck", "o", "k"), None),
        (leaf("lowrank", "g", "x_ffn", side="ffn"), "roberta_base"),
        (leaf("lowrank", "q", "x_attn", side="cross"), "roberta_base"),
    ],
)
def test_a_leaf_that_breaks_a_rule_cannot_be_used(
    one: Leaf, shape_name: str | None, shape_named: Callable[[str], BackboneShape]
) -> None:
    def use() -> Sequence[object]:
        edits = one.edits(gate="add")
        if shape_name is not None:
            check_on(edits, shape_named(shape_name))
        return edits

    with pytest.raises(InvalidEditError):
        use()
