"""The contract of gates, on the value side: whatever gate is listed keeps it.

The examples: ``trial_runner/port_discovery/examples.toml``. The contract of what computes them is in ``test_edits.py``.
"""

from dataclasses import replace

import pytest
from support.covers import EVERYTHING
from support.example_edits import assert_is_kept, examples_with

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Port, ScalePer
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.gates import GATES, Add, Gate
from search_space.parameter_counts.counts import count_edits, instance_count
from search_space.space.options import SEARCHED_GATES, SpaceOptions
from search_space.words.describe import sentence
from trial_runner.deltas.gates import GATE_DELTAS
from trial_runner.port_discovery.examples import GATE_EXAMPLES

LISTED = {"scale_per": tuple(ScalePer), "key_widths": (None, 1, 3)}

every_gate = pytest.mark.parametrize("gate", GATES.values(), ids=lambda gate: gate.name)


def edits_of(gate: type[Gate]) -> list[tuple[Edit, BackboneShape]]:
    return examples_with(gate, lambda edit: edit.gate)


@every_gate
def test_a_gate_is_listed_by_its_name_and_has_tensors_and_examples(gate):
    assert GATES[gate.name] is gate
    assert gate.name in GATE_DELTAS, f"{gate.name} needs its class in trial_runner/deltas/gates.py, in GATE_DELTAS"
    assert gate.name in GATE_EXAMPLES, (
        f"{gate.name} needs its smallest example in trial_runner/port_discovery/examples.toml"
    )


@every_gate
def test_gate_is_a_frozen_value_with_an_idempotent_canonical_form(gate):
    for edit, shape in edits_of(gate):
        assert_is_kept(edit, edit.gate, shape)
        assert edit.gate.canonical().canonical() == edit.gate.canonical()
        assert edit.gate.pack_key().pack_key() == edit.gate.pack_key()


@every_gate
def test_stored_parameters_are_those_of_form_and_gate(gate):
    for edit, shape in edits_of(gate):
        if edit.form.shared_parameters is not None or edit.form.widened:
            continue
        own, number = edit.gate.count(edit, shape), instance_count(edit, shape)
        form = edit.form.count(edit, shape)
        assert own.slope == 0
        counts = count_edits((edit,), shape)
        of_form = number * form.intercept + form.slope * (number * edit.sized_form.width if edit.sized_form else 0)
        assert counts.stored == of_form + number * own.intercept
        assert counts.with_bias - counts.weights_only >= number * own.biases


@every_gate
def test_a_gate_has_words_and_is_in_the_formula(gate):
    for edit, shape in edits_of(gate):
        assert sentence(Configuration(edits=(edit,)), shape)
        assert edit.gate.label in ("", edit.gate.label.strip())
        formula = edit.formula(shape)
        assert " <- " in formula
        assert formula.endswith(edit.gate.matrices(shape))
        if not (edit.gate.multiplies or edit.gate.outside_site or isinstance(edit.gate, Add)):
            assert replace(edit, gate=Add()).formula(shape) != formula


@every_gate
def test_open_dimensions_of_a_gate_are_listed_by_their_texts(gate):
    values = gate.variants(LISTED)
    assert all(type(value) is gate for value in values)
    texts = [value.qualified_name for value in values]
    assert len(set(texts)) == len(values)
    assert all(text.partition(":")[0] == gate.name for text in texts)
    assert (gate.name in SEARCHED_GATES) == (gate.outside_site is None and not gate.multiplies)
    if gate.outside_site is None:
        assert any(text.partition(":")[0] == gate.name for text in EVERYTHING["gate"])
    if gate.name in SEARCHED_GATES:
        options = SpaceOptions(gates=tuple(dict.fromkeys(("add", gate.name))))
        assert {text.partition(":")[0] for text in options.gate_values} == {"add", gate.name}


@every_gate
def test_gate_of_logits_refuses_edits_without_a_query(gate):
    for edit, _ in edits_of(gate):
        if edit.gate.logits is not None:
            assert edit.form.logits is edit.gate.logits
            with pytest.raises(InvalidEditError) as caught:
                replace(edit, read=Port.HEAD)
            assert caught.value.rule in ("V1", "V10", "V17")
