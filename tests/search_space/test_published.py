"""Published methods: their names, what can be set, and where they can be built."""

from collections.abc import Callable
from pathlib import Path

import pytest

from search_space.backbone_shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting import count
from search_space.dimensions import Activation, Heads, Insertion, Port, Site
from search_space.errors import InvalidEditError, UnknownMethodError
from search_space.form import Bottleneck, Constant, Init, LowRank, SoftmaxMemory
from search_space.gate import ConvexGate, FixedScale, LearnedScale
from search_space.published import COMPARED, PUBLISHED, published_method

BACKBONES = sorted(
    path.parent.name for path in (Path(__file__).parents[1] / "data" / "backbones").glob("*/config.json")
)
WITHOUT_BIASES = ("llama3_2_1b", "qwen3_0_6b", "smollm2_135m")
NAMES = [method.name for method in PUBLISHED]


def test_there_are_ten_backbones() -> None:
    assert len(BACKBONES) == 10


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_built_on_a_backbone_or_refused_by_its_rule(
    name: str, backbone: str, shape_named: Callable[[str], BackboneShape]
) -> None:
    shape = shape_named(backbone)
    if name == "bitfit" and backbone in WITHOUT_BIASES:
        with pytest.raises(InvalidEditError, match=r"^BitFit needs biases; (llama|qwen3) has none\.") as caught:
            published_method(name).configuration(shape)
        assert caught.value.rule == "V14"
        return
    configuration = published_method(name).configuration(shape)
    assert (count(configuration, shape).stored > 0) is (name != "head_only")


def test_names_are_unique_and_every_method_is_told_where_it_was_published() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for method in PUBLISHED:
        assert method.title
        assert ", " in method.citation
        assert any(year in method.citation for year in ("2018", "2019", "2021", "2022"))
        assert 0 <= method.attention_share <= 1


def test_the_compared_methods_are_published_ones() -> None:
    assert set(COMPARED) <= set(NAMES)
    assert len(set(COMPARED)) == len(COMPARED)
    # what a search must stand beside
    assert set(COMPARED) >= {
        "prefix_tuning",
        "sequential_adapter_ffn",
        "parallel_adapter_ffn",
        "scaled_parallel_adapter_ffn",
        "multihead_parallel_adapter",
        "lora_qv",
        "lora_ffn",
        "mam_adapter",
        "bitfit",
    }


def test_an_unknown_name_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(UnknownMethodError) as caught:
        published_method("mam_adaptor")
    assert (
        str(caught.value)
        == f"no published method 'mam_adaptor'; known: {', '.join(NAMES)}. Did you mean 'mam_adapter'?"
    )
    with pytest.raises(UnknownMethodError) as caught:
        published_method("xyz")
    assert str(caught.value).endswith(f"{NAMES[-1]}.")


def widths(configuration: Configuration) -> list[int]:
    return [edit.sized_form.width for edit in configuration.edits if edit.sized_form is not None]


@pytest.mark.parametrize(
    ("name", "settings", "same"),
    [
        ("prefix_tuning", {"l": 7}, {"prefix_length": 7}),
        ("prefix_tuning", {"l": 7, "mid": 9}, {"prefix_length": 7, "reparameterization_width": 9}),
        ("mam_adapter", {"l": 7, "r": 8, "s": 2.5}, {"prefix_length": 7, "bottleneck": 8, "scale": 2.5}),
        ("lora_qv", {"r": 9}, {"rank": 9}),
        ("lora_ffn", {"r": 9.0}, {"rank": 9}),
        ("pa_attn_plus_pa_ffn", {"ra": 3, "r": 4}, {"attention_bottleneck": 3, "bottleneck": 4}),
        ("prefix_plus_lora_ffn", {"l": 3, "r": 4}, {"prefix_length": 3, "rank": 4}),
    ],
)
def test_letters_of_the_papers_are_names_of_the_settings(
    name: str, settings: dict[str, float], same: dict[str, float], roberta: BackboneShape
) -> None:
    method = published_method(name)
    configuration = method.configuration(roberta, settings)
    assert configuration == method.configuration(roberta, same)
    assert configuration != method.configuration(roberta)


def test_settings_end_up_where_they_belong(roberta: BackboneShape) -> None:
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
    ("name", "defaults"),
    [
        ("prefix_tuning", [30]),
        ("mam_adapter", [30, 512]),
        ("pa_attn_plus_pa_ffn", [30, 512]),
        ("houlsby_adapter", [64, 64]),
    ],
)
def test_defaults_are_those_of_the_papers(name: str, defaults: list[int], roberta: BackboneShape) -> None:
    assert widths(published_method(name).configuration(roberta)) == defaults
    assert widths(published_method(name).configuration(roberta, {})) == defaults


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("lora_qv", {"l": 3}, "lora_qv has no hyper-parameter 'l'; it has: rank (r)"),
        ("bitfit", {"r": 3}, "bitfit has no hyper-parameter 'r'; it has: none."),
        ("prefix_tuning", {"l": 0}, "prefix_length must be a whole number of at least 1; got 0."),
        ("prefix_tuning", {"prefix_length": 2.5}, "prefix_length must be a whole number of at least 1; got 2.5."),
        ("prefix_tuning", {"mid": -1}, "reparameterization_width must be a whole number of at least 1; got -1."),
        ("mam_adapter", {"r": float("inf")}, "bottleneck must be a whole number of at least 1; got inf."),
        ("mam_adapter", {"r": float("nan")}, "bottleneck must be a whole number of at least 1; got nan."),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(
    name: str, settings: dict[str, float], message: str, roberta: BackboneShape
) -> None:
    with pytest.raises(UnknownMethodError) as caught:
        published_method(name).configuration(roberta, settings)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", [0, -1, float("nan")])
def test_a_scale_out_of_range_is_refused(scale: float, roberta: BackboneShape) -> None:
    with pytest.raises(InvalidEditError, match="scale"):
        published_method("mam_adapter").configuration(roberta, {"s": scale})


def test_a_rank_beyond_the_width_of_the_backbone_is_refused_when_it_is_counted(roberta: BackboneShape) -> None:
    configuration = published_method("lora_qv").configuration(roberta, {"r": 769})
    with pytest.raises(InvalidEditError, match="rank 769 where 768"):
        count(configuration, roberta)


def test_methods_of_he_et_al_are_at_the_points_of_their_table(roberta: BackboneShape) -> None:
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


def test_adapters_are_relu_with_biases_and_without_norms(roberta: BackboneShape) -> None:
    for name, init in (("sequential_adapter_ffn", Init.BERT), ("scaled_parallel_adapter_ffn", Init.LORA)):
        (edit,) = published_method(name).configuration(roberta).edits
        assert isinstance(edit.form, Bottleneck)
        assert (edit.form.activation, edit.form.bias, edit.form.norm, edit.form.init) == (
            Activation.RELU,
            True,
            False,
            init,
        )


def test_the_multi_head_adapter_has_a_block_for_every_query_head_and_no_bias(qwen: BackboneShape) -> None:
    (edit,) = published_method("multihead_parallel_adapter").configuration(qwen).edits
    assert isinstance(edit.form, Bottleneck)
    assert (edit.heads, edit.read, edit.write, edit.form.bias) == (Heads.QUERY, Port.Q, Port.HEAD, False)


def test_lora_reads_the_input_of_the_projection_it_writes(bart: BackboneShape) -> None:
    pairs = {
        name: [(edit.read, edit.write) for edit in published_method(name).configuration(bart).edits]
        for name in ("lora_qv", "lora_kv", "lora_ffn")
    }
    assert pairs == {
        "lora_qv": [(Port.X_ATTN, Port.Q), (Port.CTX, Port.V)],
        "lora_kv": [(Port.CTX, Port.K), (Port.CTX, Port.V)],
        "lora_ffn": [(Port.X_FFN, Port.U), (Port.M, Port.F)],
    }


def test_lora_on_a_gated_ffn_writes_the_gate_too(qwen: BackboneShape) -> None:
    edits = published_method("lora_ffn").configuration(qwen).edits
    assert [(edit.read, edit.write) for edit in edits] == [
        (Port.X_FFN, Port.G),
        (Port.X_FFN, Port.U),
        (Port.M, Port.F),
    ]
    assert all(isinstance(edit.form, LowRank) for edit in edits)


def test_bitfit_trains_a_constant_at_every_bias_of_the_backbone(shape_named: Callable[[str], BackboneShape]) -> None:
    for backbone in BACKBONES:
        shape = shape_named(backbone)
        if backbone in WITHOUT_BIASES:
            continue
        edits = published_method("bitfit").configuration(shape).edits
        assert all(isinstance(edit.form, Constant) for edit in edits)
        at_stack = {(edit.site, edit.write) for edit in edits} - shape.biased_ports
        assert at_stack == ({(Site.STACK, Port.NORM)} if shape.stack_norms else set())
        assert len(edits) == len(shape.biased_ports) + len(at_stack)


def test_a_learned_scale_and_the_convex_gate_are_gates_of_methods(roberta: BackboneShape) -> None:
    (learned,) = published_method("scaled_parallel_adapter_ffn_learned").configuration(roberta).edits
    assert learned.gate == LearnedScale()
    assert published_method("mam_adapter").configuration(roberta).attention[0].gate == ConvexGate()


def test_head_only_changes_nothing(roberta: BackboneShape) -> None:
    assert published_method("head_only").configuration(roberta).edits == ()
