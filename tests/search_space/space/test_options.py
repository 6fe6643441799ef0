"""Options of the space: defaults, refused values, and points of published methods."""

import re

import pytest

from search_space.dimensions import Activation, ScalePer
from search_space.errors import SettingError
from search_space.forms import FORMS, Diagonal, Init, OwnNorm, Phm
from search_space.published import COMPARED, METHODS
from search_space.published.point import PublishedPoint
from search_space.space.options import LEARNING_RATES, SEARCHED_FORMS, SEARCHED_GATES, FormValues, SpaceOptions


def test_default_options_search_all_dimensions_but_rare_values():
    options = SpaceOptions()
    assert set(options.attention_forms) == set(options.ffn_forms)
    assert set(options.attention_forms) == {"softmax_memory", "bottleneck", "lowrank", "diag", "const"}
    assert set(SEARCHED_GATES) - set(options.gates) >= {"tanh", "sigmoid", "lse_add", "inducer_convex"}
    assert set(options.values.activations) == set(Activation)
    assert options.learning_rates == LEARNING_RATES
    assert options.published_points == COMPARED
    assert (options.sites, options.layers, options.near_duplicates) == ("tied", ("all",), False)
    values = options.values
    single = (values.norms, values.biases, values.inits, values.reparameterizations, values.scale_per)
    assert single == ((OwnNorm.NONE,), ("usual",), (Init.LORA,), (None,), (ScalePer.SUBLAYER,))


def test_word_all_means_every_published_method():
    assert SpaceOptions(published="all").published_points == tuple(METHODS)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"attention_forms": ("lorank",)}, f"must be among {', '.join(SEARCHED_FORMS)}; got 'lorank'"),
        ({"ffn_forms": ("bottleneck", "prompt")}, "got 'prompt'"),
        ({"ffn_forms": ("const", "const")}, "must not name anything twice"),
        ({"learning_rates": {"prefix": (1e-3, 1e-2)}}, "got 'prefix'"),
        ({"learning_rates": {"const": (0.0, 1e-2)}}, "greater than 0"),
        ({"learning_rates": {"const": (1e-2, 1e-3)}}, "must be two numbers, the lower one first"),
        ({"learning_rates": {"const": (1e-2, float("inf"))}}, "a finite number"),
        ({"gates": ("add", "mul")}, f"must be among {', '.join(SEARCHED_GATES)}; got 'mul'"),
        ({"gates": ("lse_convex",)}, "must have at least one of add, scale, scale_learned"),
        ({"values": {"activations": ()}}, "at least 1 item"),
        ({"values": {"scales": (2.0, 2)}}, "must not name anything twice"),
        ({"published_scale": float("nan")}, "a finite number"),
        ({"published": ("bitfitt",)}, "did you mean 'bitfit'"),
        ({"attention_share": (0.5, 1.0)}, "must be a range within 0 and 1"),
        ({"split": (0.5, 1.0)}, "must be a range within 0 and 1"),
        ({"size": (0.5, 1.5)}, "must be a range within 0 and 1"),
        ({"layers": ("all", "some")}, "'all', 'range', 'spindle' or 'pattern'"),
        ({"edits_per_side": (2,)}, "must be 1, or 1 and 2"),
        ({"values": {"products": (None,)}}, "a valid integer"),
        ({"values": {"factors": (True,)}}, "must be a number"),
        ({"gates": ("x",), "size": (1.0, 0.5)}, "SpaceOptions gates.0: must be among"),
        ({"gatez": ("add",)}, "SpaceOptions gatez: Unexpected keyword argument"),
    ],
)
def test_options_that_cannot_be_are_refused(changed, message):
    with pytest.raises(SettingError, match=re.escape(message)) as refused:
        SpaceOptions(**changed)
    assert "\n" not in str(refused.value)


def test_learning_rates_that_are_not_given_keep_their_default():
    rates = SpaceOptions(learning_rates={"const": (1e-3, 1e-3)}).learning_rates
    assert rates == {**LEARNING_RATES, "const": (1e-3, 1e-3)}
    assert set(LEARNING_RATES) == set(FORMS)


def test_gates_with_variants_count_once_per_variant():
    options = SpaceOptions(
        gates=("add", "scale_learned", "inducer", "inducer_convex"),
        values=FormValues(scale_per=(ScalePer.CHANNEL, ScalePer.SUBLAYER), key_widths=(None, 8)),
    )
    scales = ("scale_learned:channel", "scale_learned")
    inducers = ("inducer", "inducer:8", "inducer_convex", "inducer_convex:8")
    assert tuple(options.gate_values) == ("add", *scales, *inducers)


def test_values_of_a_side_are_those_of_its_forms():
    options = SpaceOptions(
        attention_forms=("diag",), ffn_forms=("phm",), values=FormValues(products=(2,), factors=(1, None))
    )
    attention, ffn = options.dimensions("cross"), options.dimensions("ffn")
    assert (attention["form"], ffn["form"]) == ({"diag": Diagonal}, {"phm": Phm})
    assert (ffn["products"], ffn["factors"], ffn["reparameterization"]) == (
        {"2": 2},
        {"1": 1, "full": None},
        {"none": None},
    )
    assert (ffn["bias"], ffn["sharing"], ffn["init"]) == ({"usual": None}, {"shared": True}, {"lora": Init.LORA})


def test_published_methods_are_parsed_once():
    (point,) = SpaceOptions(published=("lora_qv:r=8",)).published
    assert isinstance(point, PublishedPoint)
    (again,) = SpaceOptions(published=(point,)).published
    assert again is point
