"""The contract of functional forms, on the value side: whatever form is listed keeps it.

The examples are those of ``trial_runner/port_discovery/examples.toml``; ``test_edits.py`` has the contract of modules.
"""

import math
import re
from dataclasses import replace

import pytest
from support.covers import EVERYTHING
from support.example_edits import assert_is_kept, examples_with, shapes
from support.smallest import smallest_count

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import FORMS, Form, SizedForm
from search_space.parameter_counts.budget import solve
from search_space.parameter_counts.counts import affine_count, count, instance_count, shared_parameter_count
from search_space.space.options import LEARNING_RATES, SEARCHED_FORMS, SpaceOptions
from search_space.space.points import points_of
from search_space.validity import check_on
from search_space.words.describe import sentence
from trial_runner.deltas import DELTAS
from trial_runner.port_discovery.examples import FORM_EXAMPLES

every_form = pytest.mark.parametrize("form", FORMS.values(), ids=lambda form: form.name)


def every_edit(form: type[Form]) -> list[tuple[Edit, BackboneShape]]:
    return examples_with(form, lambda edit: edit.form)


@every_form
def test_a_form_is_listed_by_its_name_and_has_tensors_and_examples(form):
    assert FORMS[form.name] is form
    assert form.name in DELTAS, f"{form.name} needs its module in trial_runner/deltas, and its word in DELTAS"
    assert form.name in FORM_EXAMPLES, (
        f"{form.name} needs its smallest example in trial_runner/port_discovery/examples.toml"
    )


@every_form
def test_form_is_frozen_and_survives_json_and_canonical_form(form):
    for edit, shape in every_edit(form):
        kept = assert_is_kept(edit, edit.form, shape)
        assert [type(one.form) for one in kept.edits] == [form]


def listed_sizes(formula: str, heads: int) -> int:
    """Return the entries of all matrices and vectors in a formula; those of blocks once per block."""
    total = 0
    for part in formula.split("; ")[1:]:
        blocks = heads if " per " in part else 1
        sizes = re.findall(r"(?:^|, )\w+: (\d+(?: × \d+)*)", part.split(", W = ")[0])
        total += blocks * sum(math.prod(map(int, size.split(" × "))) for size in sizes)
    return total


@every_form
def test_form_has_words_and_a_formula_with_counted_matrices(form):
    for edit, shape in every_edit(form):
        assert sentence(Configuration(edits=(edit,)), shape)
        assert edit.form.display_name(edit)
        assert edit.form.display_name(edit) in edit.form.describe(edit) or edit.form.outside_site is not None
        formula = edit.formula(shape)
        assert " <- " in formula
        has_listed_matrices = isinstance(edit.form, SizedForm) and edit.form.outside_site is None
        if not has_listed_matrices or edit.form.shared_parameters or "⊗" in formula or edit.form.widened:
            continue
        weights = count(Configuration(edits=(edit,)), shape).weights_only
        assert weights == instance_count(edit, shape) * listed_sizes(formula, shape.heads(edit.heads)), formula


@every_form
def test_a_count_is_affine_in_the_width(form):
    for edit, shape in every_edit(form):
        each, number = affine_count(edit, shape), instance_count(edit, shape)
        stored = count(Configuration(edits=(edit,)), shape).stored - shared_parameter_count((edit,))
        if edit.sized_form is None:
            assert (each.slope, stored) == (0, number * each.intercept)
            continue
        widened = edit.sized_form.width_step * edit.form.widened
        assert stored == number * (each.intercept + each.slope * edit.sized_form.width) + widened * each.slope
        assert each.slope > 0


@every_form
def test_resized_form_has_the_width_and_allowed_cost(form):
    for edit, shape in every_edit(form):
        sized = edit.sized_form
        if sized is None:
            assert edit.form.smallest is edit.form
            assert edit.form.size == ""
            continue
        wider = sized.resized(2 * sized.width_step, 0)
        assert (wider.width, wider.widened) == (2 * sized.width_step, 0)
        assert str(wider.width) in wider.size
        if sized.outside_site is None:
            narrowest = Configuration(edits=(replace(edit, form=sized.smallest),))
            least = smallest_count(narrowest, shape)
            assert count(solve(narrowest, shape, attention_share=0.5, parameters=least), shape).stored == least


@every_form
def test_open_dimensions_of_a_form_are_legal(form):
    low, high = LEARNING_RATES[form.name]
    assert 0 < low < high < math.inf
    assert (form.name in SEARCHED_FORMS) == (form.outside_site is None)
    assert set(form.dimensions) <= set(EVERYTHING)
    assert form.per_head in (None, Heads.QUERY, Heads.KEY_VALUE)
    if form.outside_site is not None:
        return
    options = SpaceOptions(attention_forms=(form.name,), ffn_forms=(form.name,), near_duplicates=True)
    for shape in shapes():
        for part in ("attention", "ffn"):
            for point in points_of(part, shape, options):
                check_on(point.edits, shape)
                assert {type(edit.form) for edit in point.edits} == {form}


@every_form
def test_pack_key_of_a_form_has_its_type(form):
    for edit, _ in every_edit(form):
        pack_key = edit.form.pack_key()
        assert pack_key.pack_key() == pack_key
        assert type(pack_key) is form


@every_form
def test_a_form_belongs_to_its_place_alone(form):
    for edit, _ in every_edit(form):
        assert (edit.site if edit.site in (Site.EMBEDDING, Site.GLOBAL) else None) == form.outside_site
        assert (edit.read is not None) == form.reads
        other_site = Site.FFN if form.outside_site is not None else Site.GLOBAL
        with pytest.raises(InvalidEditError):
            replace(edit, site=other_site)


@every_form
def test_trained_parameters_are_stored_ones_and_the_surplus(form):
    for edit, shape in every_edit(form):
        counts = count(Configuration(edits=(edit,)), shape)
        assert counts.weights_only <= counts.with_bias <= counts.stored
        assert counts.trained == counts.stored + edit.form.training_surplus(edit, shape)
