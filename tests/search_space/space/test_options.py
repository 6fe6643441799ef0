"""What a study may search: its defaults, what is refused, and points of published methods."""

from typing import Any

import pytest

from search_space.dimensions import Activation, ScalePer
from search_space.errors import SearchSpaceError, UnknownMethodError
from search_space.forms import FORMS, Diagonal, Init, OwnNorm, Phm
from search_space.published import COMPARED, LATER, METHODS
from search_space.published.point import PublishedPoint
from search_space.space.options import LEARNING_RATES, SEARCHED_FORMS, SEARCHED_GATES, SpaceOptions

FORM_NAMES = tuple(FORMS)


def test_by_default_all_dimensions_are_searched_and_what_adds_little_is_left_aside() -> None:
    options = SpaceOptions()
    assert set(options.attention_forms) == set(options.ffn_forms)
    assert set(options.attention_forms) == {"softmax_memory", "bottleneck", "lowrank", "diag", "const"}
    assert set(SEARCHED_GATES) - set(options.gates) >= {"tanh", "sigmoid", "lse_add", "inducer_convex"}
    assert set(options.activations) == set(Activation)
    assert options.learning_rates == LEARNING_RATES
    assert options.published_points == COMPARED
    assert (options.sites, options.layers, options.near_duplicates) == ("tied", ("all",), False)
    single = (options.norms, options.biases, options.inits, options.reparameterizations, options.scale_per)
    assert single == ((OwnNorm.NONE,), ("usual",), (Init.LORA,), (None,), (ScalePer.SUBLAYER,))


def test_a_method_that_came_later_is_tried_where_it_is_named() -> None:
    """A stored study of all methods goes on with the 39 that there were when it was begun."""
    names = [str(point) for point in SpaceOptions(published="all").published_points]
    assert len(names) == 39
    assert names == [name for name in METHODS if name not in {"dora", "vera", "unipelt"}]
    assert set(METHODS) > LATER
    assert [str(point) for point in SpaceOptions(published=("dora",)).published_points] == ["dora"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"attention_forms": ("lora",)},
            f"a form must be one of {', '.join(SEARCHED_FORMS)}; got 'lora'",
        ),
        ({"ffn_forms": ("bottleneck", "prompt")}, f"{SEARCHED_FORMS[-1]}; got 'prompt'"),
        ({"learning_rates": {"prefix": (1e-3, 1e-2)}}, "got 'prefix'"),
        (
            {"gates": ("add", "mul")},
            f"a gate must be one of {', '.join(SEARCHED_GATES)}; got 'mul'",
        ),
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
        ({"sites": "both"}, "a choice of sites must be one of tied, separate; got 'both'"),
        ({"layers": ("all", "some")}, "a choice of layers must be one of all, range, spindle, pattern; got 'some'"),
        ({"layers": ()}, "at least one choice of layers must be allowed; got none"),
        ({"layers": ("all", "all")}, "layers must not name anything twice"),
        ({"biases": ("yes",)}, "a choice of biases must be one of usual, with, without; got 'yes'"),
        ({"sharing": ("none",)}, "a choice of sharing must be one of shared, own; got 'none'"),
        ({"norms": ()}, "at least one norm must be allowed; got none"),
        ({"inits": (Init.LORA, Init.LORA)}, "inits must not name anything twice; got lora, lora"),
        ({"key_widths": (0,)}, "the bottleneck of an inducer's keys must be a whole number of at least 1; got 0"),
        ({"key_widths": ()}, "at least one bottleneck of an inducer's keys must be allowed; got none"),
        ({"reparameterizations": (2.5,)}, "hidden width of a reparameterization must be a whole number"),
        ({"products": (None,)}, "the number of products of phm must be a whole number of at least 1; got None"),
        ({"factors": (True,)}, "the rank of phm's factors must be a whole number of at least 1; got True"),
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


def test_a_learned_scale_and_an_inducer_are_as_many_gates_as_they_have_variants() -> None:
    options = SpaceOptions(
        gates=("add", "scale_learned", "inducer", "inducer_convex"),
        scale_per=(ScalePer.CHANNEL, ScalePer.SUBLAYER),
        key_widths=(None, 8),
    )
    scales = ("scale_learned:channel", "scale_learned")
    inducers = ("inducer", "inducer:8", "inducer_convex", "inducer_convex:8")
    assert tuple(options.gate_values) == ("add", *scales, *inducers)


def test_values_of_a_side_are_those_of_its_forms() -> None:
    options = SpaceOptions(attention_forms=("diag",), ffn_forms=("phm",), products=(2,), factors=(1, None))
    attention, ffn = options.values("cross"), options.values("ffn")
    assert (attention["form"], ffn["form"]) == ({"diag": Diagonal}, {"phm": Phm})
    assert (ffn["products"], ffn["factors"], ffn["reparameterization"]) == (
        {"2": 2},
        {"1": 1, "full": None},
        {"none": None},
    )
    assert (ffn["bias"], ffn["sharing"], ffn["init"]) == ({"usual": None}, {"shared": True}, {"lora": Init.LORA})


def test_what_is_published_is_read_once() -> None:
    (point,) = SpaceOptions(published=("lora_qv:r=8",)).published
    assert isinstance(point, PublishedPoint)
    (again,) = SpaceOptions(published=(point,)).published
    assert again is point
