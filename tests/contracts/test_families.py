"""The contract of backbone families, on the value side: whatever family is listed keeps it.

That its shape and its ports are those of a model is for ``test_families_against_models``, which builds every example.
"""

from typing import Any

import pytest
from support.smallest import smallest_count

from search_space.backbones import FAMILIES, REFUSED, BackboneFamily, family_of, shape_of
from search_space.backbones.shape import BackboneShape
from search_space.canonical import canonical
from search_space.dimensions import Port, Site
from search_space.errors import UnsupportedBackboneError
from search_space.parameter_counts.budget import solve
from search_space.parameter_counts.counts import count
from search_space.published import METHODS

every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)


def config_of(family: BackboneFamily, model_type: str | None = None) -> dict[str, Any]:
    return {**family.example, "model_type": model_type or family.model_types[0]}


def example_of(family: BackboneFamily) -> BackboneShape:
    return shape_of(config_of(family))


@every_family
def test_a_family_is_listed_by_its_name_and_found_by_its_model_types(family):
    assert FAMILIES[family.name] is family
    assert family.model_types
    for model_type in family.model_types:
        assert family_of(config_of(family, model_type)) is family
        assert model_type not in REFUSED


def test_a_model_type_means_one_family():
    model_types = [model_type for family in FAMILIES.values() for model_type in family.model_types]
    assert len(model_types) == len(set(model_types))


@every_family
def test_shape_names_its_family_and_has_consistent_sizes(family):
    shape = example_of(family)
    assert shape.family == family.name
    assert 0 < shape.frozen_parameters <= shape.parameters
    assert shape.parameter_tensors >= 1
    assert bool(shape.sublayers(Site.CROSS)) == bool(shape.encoder_layers and shape.decoder_layers)
    assert len(shape.sublayers(Site.FFN)) == shape.encoder_layers + shape.decoder_layers


@every_family
def test_a_size_that_is_missing_or_cannot_be_is_refused_by_its_name(family):
    refusals = {name: refusal_without(config_of(family), name) for name in family.example}
    explained = {name: text for name, text in refusals.items() if text is not None}
    assert explained
    for name, text in explained.items():
        assert name in text
        is_size = type(family.example[name]) is int
        for value in (0, -4, 2.5, "768", True, float("nan")) if is_size else ():
            with pytest.raises(UnsupportedBackboneError, match=f"{name} of a .*; got ") as caught:
                shape_of({**config_of(family), name: value})
            assert "\n" not in str(caught.value)


def refusal_without(config: dict[str, Any], name: str) -> str | None:
    try:
        shape_of({key: value for key, value in config.items() if key != name})
    except UnsupportedBackboneError as error:
        return str(error)
    return None


@every_family
def test_valid_published_methods_fit_their_smallest_budget(family):
    shape = example_of(family)
    valid = [method for method in METHODS.values() if method.invalid_reason(shape) is None]
    assert len(valid) > len(METHODS) // 2
    for method in valid:
        structure = method.structure(shape)
        if all(edit.form.outside_site is None for edit in structure.edits):
            least = smallest_count(structure, shape)
            assert count(solve(structure, shape, attention_share=0.5, parameters=least), shape).stored == least
        assert canonical(canonical(structure, shape), shape) == canonical(structure, shape)


@every_family
def test_a_family_has_a_place_for_every_port_of_its_sublayers(family):
    shape = example_of(family)
    table = family.ports(shape)
    attention = {Port.RES_IN, Port.X_ATTN, Port.CTX, Port.Q, Port.K, Port.V, Port.CONCAT, Port.O, Port.NORM}
    ffn = {Port.RES_F, Port.X_FFN, Port.U, Port.M, Port.F, Port.SUM, Port.NORM}
    ffn |= {Port.G} if shape.gated_ffn else set()
    places = {(sublayer.stack, sublayer.site) for sublayer in shape.sublayers(Site.ATTENTION)}
    places |= {(sublayer.stack, sublayer.site) for sublayer in shape.sublayers(Site.FFN)}
    assert set(table.ports) == {
        (stack, site, port)
        for stack, site in places
        for port in (ffn if site is Site.FFN else attention)
        if shape.has(site, port)
    }
    assert set(table.attention_modules) == {site for _, site in places if site is not Site.FFN}
    assert set(table.layers) == {stack for stack, _ in places}
    assert len(table.stack_norms) == shape.stack_norms
