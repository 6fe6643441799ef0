"""What an edit says of itself, and what its form and gate hold."""

import dataclasses
import json

import pytest

from search_space.codec import configuration_to_json
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Insertion, Port, Site
from search_space.edit import Edit
from search_space.forms import FORMS, Bottleneck, Form, Init, LowRank, OwnNorm, SoftmaxMemory
from search_space.gates import GATES, Add, FixedScale


def edit_of(form: Form, *, site: Site = Site.ATTENTION, write: Port = Port.O, read: Port | None = Port.O) -> Edit:
    return Edit(site=site, write=write, read=read, form=form, gate=Add())


@pytest.mark.parametrize(
    ("site", "write", "read", "insertion"),
    [
        (Site.ATTENTION, Port.O, Port.O, Insertion.SEQUENTIAL),
        (Site.ATTENTION, Port.O, Port.X_ATTN, Insertion.PARALLEL),
        (Site.ATTENTION, Port.O, Port.CONCAT, Insertion.PARALLEL),
        (Site.ATTENTION, Port.V, Port.V, Insertion.SEQUENTIAL),
        (Site.FFN, Port.F, Port.F, Insertion.SEQUENTIAL),
        (Site.FFN, Port.F, Port.M, Insertion.PARALLEL),
        (Site.FFN, Port.F, Port.RES_F, Insertion.PARALLEL),
    ],
)
def test_an_edit_is_sequential_exactly_when_it_reads_what_it_writes(site, write, read, insertion):
    assert edit_of(LowRank(width=1), site=site, write=write, read=read).insertion is insertion


@pytest.mark.parametrize("heads", [Heads.QUERY, Heads.KEY_VALUE])
@pytest.mark.parametrize("form", [Bottleneck, LowRank, SoftmaxMemory])
def test_an_edit_has_the_heads_and_the_bottleneck_of_its_form(form, heads):
    edit = edit_of(form(width=3, heads=heads), write=Port.HEAD, read=Port.Q)
    assert edit.heads is heads
    assert edit.sized_form is edit.form


def test_forms_and_gates_of_stored_configurations_keep_their_names_and_their_order():
    forms = "softmax_memory bottleneck lowrank phm diag const prompt encoded_prompt full sparse intrinsic"
    gates = "add scale scale_learned tanh sigmoid lse_convex lse_add inducer inducer_convex mul prepend"
    assert [name for name in FORMS if name in forms.split()] == forms.split()
    assert [name for name in GATES if name in gates.split()] == gates.split()


def test_a_bottleneck_is_by_default_a_relu_adapter_that_starts_as_nothing():
    form = Bottleneck(width=2)
    assert (form.activation, form.heads, form.bias, form.norm, form.init, form.widened) == (
        Activation.RELU,
        Heads.SINGLE,
        True,
        OwnNorm.NONE,
        Init.LORA,
        0,
    )


def test_a_scale_is_the_same_number_however_it_was_written():
    def text(scale: float) -> str:
        edit = dataclasses.replace(edit_of(LowRank(width=1)), gate=FixedScale(value=scale))
        return json.dumps(configuration_to_json(Configuration(edits=(edit,))))

    assert text(4) == text(4.0)
    assert text(4) != text(2)
