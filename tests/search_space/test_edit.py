"""Properties of an edit, and fields of its form and gate."""

import json

import pytest
from support.edits import edit

from search_space.codec import configuration_to_json
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Insertion
from search_space.forms import FORMS, Bottleneck, Init, LowRank, OwnNorm, SoftmaxMemory
from search_space.gates import GATES, FixedScale


@pytest.mark.parametrize(
    ("write", "read", "insertion"),
    [
        ("o", "o", Insertion.SEQUENTIAL),
        ("o", "x_attn", Insertion.PARALLEL),
        ("o", "concat", Insertion.PARALLEL),
        ("v", "v", Insertion.SEQUENTIAL),
        ("f", "f", Insertion.SEQUENTIAL),
        ("f", "m", Insertion.PARALLEL),
        ("f", "res_f", Insertion.PARALLEL),
    ],
)
def test_edit_is_sequential_if_it_reads_the_written_port(write, read, insertion):
    assert edit(write, read, LowRank(width=1)).insertion is insertion


@pytest.mark.parametrize("heads", [Heads.QUERY, Heads.KEY_VALUE])
@pytest.mark.parametrize("form", [Bottleneck, LowRank, SoftmaxMemory])
def test_an_edit_has_the_heads_and_the_bottleneck_of_its_form(form, heads):
    one = edit("head", "q", form(width=3, heads=heads))
    assert one.heads is heads
    assert one.sized_form is one.form


def test_stored_names_of_forms_and_gates_are_stable():
    forms = "softmax_memory bottleneck lowrank phm diag const prompt encoded_prompt full sparse intrinsic"
    gates = "add scale scale_learned tanh sigmoid lse_convex lse_add inducer inducer_convex mul prepend"
    assert [name for name in FORMS if name in forms.split()] == forms.split()
    assert [name for name in GATES if name in gates.split()] == gates.split()


def test_default_bottleneck_is_a_relu_adapter_starting_at_zero():
    values = {
        "activation": Activation.RELU,
        "heads": Heads.SINGLE,
        "bias": True,
        "norm": OwnNorm.NONE,
        "init": Init.LORA,
    }
    assert Bottleneck(width=2) == Bottleneck(width=2, widened=0, **values)


def test_a_scale_is_the_same_number_however_it_was_written():
    def text(scale: float) -> str:
        one = edit("o", "o", LowRank(width=1), FixedScale(value=scale))
        return json.dumps(configuration_to_json(Configuration(edits=(one,))))

    assert text(4) == text(4.0)
    assert text(4) != text(2)
