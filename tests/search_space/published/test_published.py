"""Published methods: their names, what can be set, and where they can be built."""

from pathlib import Path
from typing import Any

import pytest
from support.edits import edit
from support.loops import each

from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Port, Site
from search_space.edit import Edit
from search_space.errors import BudgetError, InvalidEditError, SettingError, UnknownMethodError
from search_space.forms import Bottleneck, Constant, Full, Init, Intrinsic, LowRank, OwnNorm, Phm, SoftmaxMemory, Sparse
from search_space.gates import ConvexGate, ConvexInducerGate, FixedScale, Gate, InducerGate, LearnedScale
from search_space.parameter_counts.counts import count
from search_space.published import METHODS, published_method
from search_space.published.point import PublishedPoint

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
        assert method.invalid_reason(shape) == str(caught.value)
        return
    assert method.invalid_reason(shape) is None
    assert (count(method.configuration(shape), shape).stored > 0) is (name != "head_only")


def test_method_stays_valid_where_its_defaults_are_too_wide(odd):
    method = published_method("lora_qv")
    with pytest.raises(InvalidEditError, match="rank 12 where"):
        count(method.configuration(odd, {"r": 12}), odd)
    assert method.invalid_reason(odd) is None
    assert all(width == 1 for width in widths(method.structure(odd)))
    assert "n 4 for widths 11" in (published_method("compacter").invalid_reason(odd) or "")


def test_unknown_name_error_lists_all_and_the_nearest():
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


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("lora_qv", {"l": 3}, "lora_qv has no hyper-parameter 'l'; it has: rank (r)"),
        ("ia3", {"r": 3}, "ia3 has no hyper-parameter 'r'; it has: none."),
        ("bitfit", {"r": 3}, "bitfit has no hyper-parameter 'r'; it has: none."),
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


def adapter(write: str, read: str, width: int = 64, gate: Gate | None = None, **options: Any) -> Edit:
    """Build an adapter with the initialisation of He et al. 2022."""
    return edit(write, read, Bottleneck(**{"width": width, "init": Init.BERT} | options), gate)


def prefix(width: int, **options: Any) -> Edit:
    return edit("head", "q", SoftmaxMemory(width=width, heads=Heads.KEY_VALUE, **options), ConvexGate())


def lora(write: str, read: str, width: int = 8, scale: float = 2, **options: bool) -> Edit:
    return edit(write, read, LowRank(width=width, **options), FixedScale(value=scale))


def inducer(write: str, width: int, gate: Gate) -> Edit:
    """Build an inducer with tanh and its own initialisation."""
    return adapter(write, "q", width, gate, activation=Activation.TANH, heads=Heads.QUERY, init=Init.INDUCER)


NORMED, LORA = {"norm": OwnNorm.INPUT}, {"init": Init.LORA}
BESIDE_LORA = inducer("o", 12, InducerGate(key_width=5))
IN_MAM = [inducer("o", 7, InducerGate(key_width=3)), lora("q", "x_attn", 16)]
OWN_PHM = Phm(width=24, factor_rank=None, shared=False)
POINTS = {
    # He et al. 2022, table 1 and figure 1; their released code has a LayerNorm in every adapter at attention
    "roberta_base prefix_tuning": [prefix(30)],
    "roberta_base houlsby_adapter": [adapter("o", "o", **NORMED), adapter("f", "f")],
    "roberta_base sequential_adapter_ffn": [adapter("f", "f")],
    "roberta_base sequential_adapter_attn": [adapter("o", "o", **NORMED)],
    "roberta_base sequential_adapter_single": [adapter("sum", "sum", 108, **NORMED)],
    "roberta_base pfeiffer_adapter": [adapter("sum", "sum")],
    "roberta_base parallel_adapter_ffn": [adapter("f", "x_ffn")],
    "roberta_base parallel_adapter_attn": [adapter("o", "x_attn", **NORMED)],
    "roberta_base parallel_adapter_attn_concat": [adapter("concat", "x_attn", **NORMED)],
    "roberta_base scaled_parallel_adapter_ffn": [adapter("f", "x_ffn", 512, FixedScale(value=4), **LORA)],
    "roberta_base scaled_parallel_adapter_ffn_learned": [adapter("f", "x_ffn", 512, LearnedScale(), **LORA)],
    "qwen3_0_6b multihead_parallel_adapter": [adapter("head", "q", 30, heads=Heads.QUERY, bias=False)],
    # LoRA reads the input of the projection that it writes, and on a gated FFN writes the gate, too
    "bart_large lora_qv": [lora("q", "x_attn"), lora("v", "ctx")],
    "bart_large lora_kv": [lora("k", "ctx"), lora("v", "ctx")],
    "bart_large lora_ffn": [lora("u", "x_ffn"), lora("f", "m")],
    "qwen3_0_6b lora_ffn": [lora("g", "x_ffn"), lora("u", "x_ffn"), lora("f", "m")],
    "roberta_base mam_adapter:l=7,r=8,s=2.5,mid=9": [
        prefix(7, reparameterization=9),
        adapter("f", "x_ffn", 8, FixedScale(value=2.5), **LORA),
    ],
    "roberta_base pa_attn_plus_pa_ffn:ra=3,r=4": [adapter("o", "x_attn", 3, **NORMED), adapter("f", "x_ffn", 4)],
    "roberta_base prefix_plus_lora_ffn:l=3,r=4": [prefix(3), lora("u", "x_ffn", 4), lora("f", "m", 4)],
    "roberta_base robust_prefix_tuning:l=7": [prefix(7, robust=True)],
    # Chen et al. 2022, tables 1 and 3: key source, extension and composition
    "roberta_base inducer_adaptive": [inducer("head", 108, InducerGate())],
    "roberta_base inducer_extension": [inducer("o", 16, InducerGate())],
    "roberta_base inducer_gating": [inducer("o", 15, ConvexInducerGate(key_width=10))],
    "roberta_base inducer": [inducer("o", 15, InducerGate(key_width=10))],
    # LoRA beside it is as released unless it is set: scale 32 / rank, a bias for generation, none for classification
    "gpt2 inducer_plus_lora_q": [BESIDE_LORA, lora("q", "x_attn", 24, 32 / 24, bias=True)],
    "gpt2 inducer_plus_lora_q:bias=no": [BESIDE_LORA, lora("q", "x_attn", 24, 32 / 24)],
    "roberta_base inducer_plus_lora_q:r=4": [BESIDE_LORA, lora("q", "x_attn", 4, 8)],
    "roberta_base inducer_plus_lora_q:bias=yes,sl=2": [BESIDE_LORA, lora("q", "x_attn", 24, 2, bias=True)],
    "roberta_base mam_inducer": [*IN_MAM, adapter("f", "x_ffn", 42)],
    "roberta_base mam_inducer:s=2,init=lora,rf=12": [
        *IN_MAM,
        adapter("f", "x_ffn", 12, FixedScale(value=2), **LORA),
    ],
    # a 32nd of the width unless set; the factors of Compacter are shared
    "roberta_base compacter": [edit("o", "o", Phm(width=24)), edit("f", "f", Phm(width=24))],
    "roberta_base compacter_pp:r=24": [edit("f", "f", Phm(width=24))],
    "roberta_base phm_adapter:r=24": [edit("o", "o", OWN_PHM), edit("f", "f", OWN_PHM)],
    "roberta_base full_finetuning": [edit("weights", None, Full())],
    "roberta_base diff_pruning": [edit("weights", None, Sparse(width=124_645_632 // 200))],
    "roberta_base diff_pruning:fraction=0.01": [edit("weights", None, Sparse(width=124_645_632 // 100))],
    "roberta_base intrinsic_did": [edit("weights", None, Intrinsic(width=1000))],
    "roberta_base intrinsic_said": [edit("weights", None, Intrinsic(width=1000, per_tensor=True))],
}


@pytest.mark.parametrize("case", POINTS)
def test_method_has_its_papers_dimensions_and_settings(case, shape_named):
    backbone, _, text = case.partition(" ")
    assert PublishedPoint(text).structure(shape_named(backbone)) == Configuration(edits=tuple(POINTS[case]))


def test_changed_weights_are_at_most_all_weights(roberta):
    with pytest.raises(BudgetError, match="above 0%"):
        published_method("diff_pruning").configuration(roberta, {"fraction": 2})


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


@pytest.mark.parametrize("name", NAMES)
def test_every_choice_can_be_made_and_changes_something(name, qwen):
    """Test a backbone with separate tensors, on which every choice has an effect."""
    method = published_method(name)
    for parameter in method.hyperparameters:
        if not parameter.choices or parameter.default is None:
            continue
        built = {choice: method.configuration(qwen, {parameter.alias: choice}) for choice in parameter.choices}
        assert len(set(built.values())) == len(parameter.choices)
        assert built[str(parameter.default)] == method.configuration(qwen)


def test_values_have_full_names():
    assert published_method("mam_adapter").values({"l": 7, "read": "res_f"}) == {
        "prefix_length": 7,
        "bottleneck": 512,
        "scale": 4,
        "reparameterization_width": None,
        "read": "res_f",
        "norm": "none",
        "init": "lora",
    }
