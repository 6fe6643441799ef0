"""Published methods: their names, what can be set, and where they can be built."""

from pathlib import Path

import pytest
from support.loops import each

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Insertion, Port, Site
from search_space.edit import Edit
from search_space.errors import BudgetError, InvalidEditError, SettingError, UnknownMethodError
from search_space.forms import (
    Bottleneck,
    Constant,
    Full,
    Init,
    Intrinsic,
    LowRank,
    OwnNorm,
    Phm,
    SoftmaxMemory,
    Sparse,
)
from search_space.gates import (
    Add,
    ConvexInducerGate,
    FixedScale,
    InducerGate,
)
from search_space.parameter_counts.counts import count
from search_space.published import METHODS, published_method

BACKBONES = sorted(
    path.parent.name for path in (Path(__file__).parents[2] / "data" / "backbones").glob("*/config.json")
)
# (method, backbone family) to the rule that refuses it.
REFUSED = {
    ("bitfit", "llama"): "V14",
    ("bitfit", "qwen3"): "V14",
    ("bitfit", "t5"): "V14",
    ("prompt_tuning", "electra"): "V19",
    ("p_tuning", "electra"): "V19",
} | {("unipelt", family): "sample" for family in ("bart", "mbart", "marian", "t5", "gpt2", "llama", "qwen2", "qwen3")}
NAMES = list(METHODS)


@pytest.mark.parametrize("backbone", BACKBONES)
@each("name", NAMES)
def test_a_method_is_built_on_a_backbone_or_refused_by_its_rule(name, backbone, shape_named):
    shape, method = shape_named(backbone), published_method(name)
    rule = REFUSED.get((name, shape.family))
    if rule is not None:
        with pytest.raises(InvalidEditError) as caught:
            count(method.configuration(shape), shape)
        assert caught.value.rule == rule
        assert method.validity(shape) == str(caught.value)
        return
    assert method.validity(shape) is None
    assert (count(method.configuration(shape), shape).stored > 0) is (name != "head_only")


def test_a_method_is_valid_on_a_backbone_that_its_defaults_are_too_wide_for(odd):
    method = published_method("lora_qv")
    with pytest.raises(InvalidEditError, match="rank 12 where"):
        count(method.configuration(odd, {"r": 12}), odd)
    assert method.validity(odd) is None
    assert all(width == 1 for width in widths(method.structure(odd)))
    assert "n 4 for widths 11" in (published_method("compacter").validity(odd) or "")


def test_an_unknown_name_lists_the_known_ones_and_the_nearest():
    with pytest.raises(UnknownMethodError) as caught:
        published_method("mam_adaptor")
    assert (
        str(caught.value)
        == f"no published method 'mam_adaptor'. Did you mean 'mam_adapter'? Known: {', '.join(NAMES)}."
    )
    with pytest.raises(UnknownMethodError) as caught:
        published_method("xyz")
    assert str(caught.value).endswith(f"{NAMES[-1]}.")


def widths(configuration: Configuration) -> list[int]:
    return [edit.sized_form.width for edit in configuration.edits if edit.sized_form is not None]


def test_settings_end_up_where_they_belong(roberta):
    mam = published_method("mam_adapter").configuration(roberta, {"l": 7, "r": 8, "s": 2.5, "mid": 9})
    assert widths(mam) == [7, 8]
    assert mam.ffn[0].gate == FixedScale(value=2.5)
    assert isinstance(mam.attention[0].form, SoftmaxMemory)
    assert mam.attention[0].form.reparameterization == 9
    both = published_method("pa_attn_plus_pa_ffn").configuration(roberta, {"ra": 3, "r": 4})
    assert (widths(Configuration(edits=both.attention)), widths(Configuration(edits=both.ffn))) == ([3], [4])
    mixed = published_method("prefix_plus_lora_ffn").configuration(roberta, {"l": 3, "r": 4})
    assert widths(mixed) == [3, 4, 4]


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("lora_qv", {"l": 3}, "lora_qv has no hyper-parameter 'l'; it has: rank (r)"),
        ("ia3", {"r": 3}, "ia3 has no hyper-parameter 'r'; it has: none."),
        ("bitfit", {"r": 3}, "bitfit has no hyper-parameter 'r'; it has: labels (labels)."),
        ("mam_adapter", {"r": "wide"}, "bottleneck must be a whole number of at least 1; got wide."),
        ("mam_adapter", {"s": "wide"}, "scale must be a number; got wide."),
        ("mam_adapter", {"read": "q"}, "read must be one of x_ffn, res_f; got q."),
        ("mam_adapter", {"read": 3}, "read must be one of x_ffn, res_f; got 3."),
        ("inducer", {"rk": 0}, "key_width must be a whole number of at least 1; got 0."),
        ("prefix_tuning", {"l": 0}, "prefix_length must be a whole number of at least 1; got 0."),
        ("prefix_tuning", {"prefix_length": 2.5}, "prefix_length must be a whole number of at least 1; got 2.5."),
        ("prefix_tuning", {"mid": -1}, "reparameterization_width must be a whole number of at least 1; got -1."),
        ("mam_adapter", {"r": float("inf")}, "bottleneck must be a whole number of at least 1; got inf."),
        ("mam_adapter", {"r": float("nan")}, "bottleneck must be a whole number of at least 1; got nan."),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(name, settings, message, roberta):
    expected = UnknownMethodError if "no hyper-parameter" in message else SettingError
    with pytest.raises(expected) as caught:
        published_method(name).configuration(roberta, settings)
    assert isinstance(caught.value, ValueError) is (expected is SettingError)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_methods_of_he_et_al_are_at_the_points_of_their_table(roberta):
    """Functional form, insertion, modified representation and composition of He et al. 2022, table 1 and figure 1."""
    points = {
        name: [
            (edit.site, edit.form.name, edit.insertion, edit.write, edit.gate.name)
            for edit in published_method(name).configuration(roberta).edits
        ]
        for name in ("prefix_tuning", "houlsby_adapter", "parallel_adapter_ffn", "scaled_parallel_adapter_ffn")
    }
    parallel, sequential = Insertion.PARALLEL, Insertion.SEQUENTIAL
    assert points == {
        "prefix_tuning": [(Site.ATTENTION, "softmax_memory", parallel, Port.HEAD, "lse_convex")],
        "houlsby_adapter": [
            (Site.ATTENTION, "bottleneck", sequential, Port.O, "add"),
            (Site.FFN, "bottleneck", sequential, Port.F, "add"),
        ],
        "parallel_adapter_ffn": [(Site.FFN, "bottleneck", parallel, Port.F, "add")],
        "scaled_parallel_adapter_ffn": [(Site.FFN, "bottleneck", parallel, Port.F, "scale")],
    }


@pytest.mark.parametrize(
    ("name", "norm", "init"),
    [
        ("sequential_adapter_ffn", OwnNorm.NONE, Init.BERT),
        ("parallel_adapter_ffn", OwnNorm.NONE, Init.BERT),
        ("pfeiffer_adapter", OwnNorm.NONE, Init.BERT),
        ("scaled_parallel_adapter_ffn", OwnNorm.NONE, Init.LORA),
        ("scaled_parallel_adapter_ffn_learned", OwnNorm.NONE, Init.LORA),
        # the released code of He et al. 2022 has a LayerNorm in every adapter at attention
        ("sequential_adapter_attn", OwnNorm.INPUT, Init.BERT),
        ("parallel_adapter_attn", OwnNorm.INPUT, Init.BERT),
        ("parallel_adapter_attn_concat", OwnNorm.INPUT, Init.BERT),
        ("sequential_adapter_single", OwnNorm.INPUT, Init.BERT),
    ],
)
def test_adapters_are_relu_with_biases(name, norm, init, roberta):
    (edit,) = published_method(name).configuration(roberta).edits
    assert isinstance(edit.form, Bottleneck)
    assert (edit.form.activation, edit.form.bias, edit.form.norm, edit.form.init) == (
        Activation.RELU,
        True,
        norm,
        init,
    )


def test_the_multi_head_adapter_has_a_block_for_every_query_head_and_no_bias(qwen):
    (edit,) = published_method("multihead_parallel_adapter").configuration(qwen).edits
    assert isinstance(edit.form, Bottleneck)
    assert (edit.heads, edit.read, edit.write, edit.form.bias) == (Heads.QUERY, Port.Q, Port.HEAD, False)


def test_lora_reads_the_input_of_the_projection_it_writes(bart):
    pairs = {
        name: [(edit.read, edit.write) for edit in published_method(name).configuration(bart).edits]
        for name in ("lora_qv", "lora_kv", "lora_ffn")
    }
    assert pairs == {
        "lora_qv": [(Port.X_ATTN, Port.Q), (Port.CTX, Port.V)],
        "lora_kv": [(Port.CTX, Port.K), (Port.CTX, Port.V)],
        "lora_ffn": [(Port.X_FFN, Port.U), (Port.M, Port.F)],
    }


def test_lora_on_a_gated_ffn_writes_the_gate_too(qwen):
    edits = published_method("lora_ffn").configuration(qwen).edits
    assert [(edit.read, edit.write) for edit in edits] == [
        (Port.X_FFN, Port.G),
        (Port.X_FFN, Port.U),
        (Port.M, Port.F),
    ]
    assert all(isinstance(edit.form, LowRank) for edit in edits)


def test_bitfit_trains_a_constant_at_every_bias_of_the_backbone(shape_named):
    for backbone in BACKBONES:
        shape = shape_named(backbone)
        if ("bitfit", shape.family) in REFUSED:
            continue
        edits = published_method("bitfit").configuration(shape).edits
        assert all(isinstance(edit.form, Constant) for edit in edits)
        at_stack = {(edit.site, edit.write) for edit in edits} - shape.biased_ports
        assert at_stack == ({(Site.STACK, Port.NORM)} if shape.stack_norms else set())
        assert len(edits) == len(shape.biased_ports) + len(at_stack)


def only(name: str, shape: BackboneShape, settings: dict[str, float | str] | None = None) -> Edit:
    """The one edit of a method."""
    (edit,) = published_method(name).configuration(shape, settings).edits
    return edit


@pytest.mark.parametrize("name", NAMES)
def test_every_choice_can_be_made_and_changes_something(name, qwen):
    """On a backbone where every tensor is one of its own, so that no choice is void."""
    method = published_method(name)
    for parameter in method.hyperparameters:
        if not parameter.choices or parameter.default is None:
            continue
        built = {choice: method.configuration(qwen, {parameter.alias: choice}) for choice in parameter.choices}
        assert len(set(built.values())) == len(parameter.choices)
        assert built[str(parameter.default)] == method.configuration(qwen)


def test_what_is_only_counted_changes_nothing_that_is_built(roberta):
    counted = [(method, one) for method in METHODS.values() for one in method.hyperparameters if one.is_counted_only]
    assert {(method.name, one.name) for method, one in counted} == {
        ("bitfit", "labels"),
        ("houlsby_adapter", "labels"),
        ("diff_pruning", "tensors"),
    }
    for method, one in counted:
        assert method.configuration(roberta, {one.name: 7}) == method.configuration(roberta)


def test_all_values_are_told_by_their_full_names():
    assert published_method("mam_adapter").values({"l": 7, "read": "res_f"}) == {
        "prefix_length": 7,
        "bottleneck": 512,
        "scale": 4,
        "reparameterization_width": None,
        "read": "res_f",
        "norm": "none",
        "init": "lora",
    }


def test_robust_prefix_tuning_is_a_prefix_with_a_table_for_every_batch(roberta):
    robust, plain = only("robust_prefix_tuning", roberta, {"l": 7}), only("prefix_tuning", roberta, {"l": 7})
    assert robust.form == SoftmaxMemory(width=7, heads=Heads.KEY_VALUE, robust=True)
    assert (robust.write, robust.read, robust.gate) == (plain.write, plain.read, plain.gate)


def test_inducers_are_at_the_points_of_chen_et_al(roberta):
    """Key source, extension and composition of Chen et al. 2022, tables 1 and 3; tanh and their own init throughout."""
    points = {}
    for name in ("inducer_adaptive", "inducer_extension", "inducer_gating", "inducer"):
        edit = only(name, roberta)
        points[name] = (edit.write, edit.read, edit.gate)
        assert edit.form == Bottleneck(
            width=edit.form.width if isinstance(edit.form, Bottleneck) else 0,
            activation=Activation.TANH,
            heads=Heads.QUERY,
            init=Init.INDUCER,
        )
    assert points == {
        "inducer_adaptive": (Port.HEAD, Port.Q, InducerGate()),
        "inducer_extension": (Port.O, Port.Q, InducerGate()),
        "inducer_gating": (Port.O, Port.Q, ConvexInducerGate(key_width=10)),
        "inducer": (Port.O, Port.Q, InducerGate(key_width=10)),
    }


def test_an_inducers_lora_is_as_released_unless_it_is_set(roberta, shape_named):
    """Scale 32 / rank; with a bias for generation, without for classification."""
    gpt2, method = shape_named("gpt2"), published_method("inducer_plus_lora_q")
    for shape, settings, bias, scale in (
        (gpt2, {}, True, 32 / 24),
        (roberta, {"r": 4}, False, 8.0),
        (roberta, {"bias": "yes", "sl": 2}, True, 2.0),
        (gpt2, {"bias": "no"}, False, 32 / 24),
    ):
        lora = method.configuration(shape, settings).edits[1]
        assert (lora.write, lora.read, lora.gate) == (Port.Q, Port.X_ATTN, FixedScale(value=scale))
        assert isinstance(lora.form, LowRank)
        assert lora.form.bias is bias


def test_the_mam_inducer_has_a_plain_adapter_or_a_scaled_one(roberta):
    method = published_method("mam_inducer")
    (plain,) = method.configuration(roberta).ffn
    assert (plain.gate, plain.form) == (Add(), Bottleneck(width=42, init=Init.BERT))
    (scaled,) = method.configuration(roberta, {"s": 2, "init": "lora", "rf": 12}).ffn
    assert (scaled.gate, scaled.form) == (FixedScale(value=2), Bottleneck(width=12))


def test_compacter_shares_its_factors_and_the_phm_adapter_does_not(roberta):
    sites = {
        name: [(edit.write, edit.form) for edit in published_method(name).configuration(roberta, {"r": 24}).edits]
        for name in ("compacter", "compacter_pp", "phm_adapter")
    }
    shared, own = Phm(width=24), Phm(width=24, factor_rank=None, shared=False)
    assert sites == {
        "compacter": [(Port.O, shared), (Port.F, shared)],
        "compacter_pp": [(Port.F, shared)],
        "phm_adapter": [(Port.O, own), (Port.F, own)],
    }
    # a 32nd of the width unless set
    assert widths(published_method("compacter").configuration(roberta)) == [24, 24]


def test_methods_of_the_whole_model_stand_alone(roberta):
    forms = {
        name: only(name, roberta).form
        for name in ("full_finetuning", "diff_pruning", "intrinsic_did", "intrinsic_said")
    }
    assert forms == {
        "full_finetuning": Full(),
        "diff_pruning": Sparse(width=roberta.parameters // 200),
        "intrinsic_did": Intrinsic(width=1000),
        "intrinsic_said": Intrinsic(width=1000, per_tensor=True),
    }
    assert only("diff_pruning", roberta, {"fraction": 0.01}).form == Sparse(width=roberta.parameters // 100)
    with pytest.raises(BudgetError, match="above 0%"):
        published_method("diff_pruning").configuration(roberta, {"fraction": 2})
