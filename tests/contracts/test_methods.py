"""Contract of every published method, the project's own and those of installed packages."""

import json
from pathlib import Path

import pytest
from support.foreign_package import run_with_package
from support.smallest import smallest_count

from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.canonical import canonical
from search_space.codec import configuration_from_json, configuration_to_json
from search_space.conventions import conventions
from search_space.parameter_counts.counts import count
from search_space.published import METHODS, PublishedMethod, published_method
from search_space.published.point import PublishedPoint
from search_space.validity import check_on
from search_space.words.describe import ranked_published, sentence

BACKBONES = Path(__file__).parents[1] / "data" / "backbones"
SHAPES = {
    name: shape_of(json.loads((BACKBONES / name / "config.json").read_text()))
    for name in ("roberta_base", "bart_large", "qwen3_0_6b", "t5_small")
}

SOURCE = """
from search_space.published import HyperParameter, PublishedMethod, edits_from_tables

MINE = PublishedMethod(
    name="mine",
    title="my adapter",
    citation="Somebody 2026, Mine, Nowhere",
    hyperparameters=(HyperParameter(name="bottleneck", alias="r", default=8, meaning="hidden width", is_size=True),),
    build=edits_from_tables(
        [{"site": "ffn", "write": "f", "read": "f", "form": {"name": "bottleneck", "width": "$bottleneck"}}]
    ),
)
"""


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> PublishedMethod:
    return published_method(request.param)


def valid_shapes(method: PublishedMethod) -> list[BackboneShape]:
    return [shape for shape in SHAPES.values() if method.invalid_reason(shape) is None]


def test_method_has_name_title_and_source(method):
    assert METHODS[method.name] is method
    assert method.title
    assert ", " in method.citation
    assert any(character.isdigit() for character in method.citation)
    assert method.attention_share is None or 0 <= method.attention_share <= 1


def test_its_hyperparameters_have_different_names_and_defaults_that_can_be(method):
    keys = [key for one in method.hyperparameters for key in {one.name, one.alias}]
    assert len(set(keys)) == len(keys)
    for one in method.hyperparameters:
        assert one.meaning
        if one.default is not None:
            one.check(one.default)


def test_method_is_valid_on_some_backbone_and_refused_with_reasons(method):
    assert valid_shapes(method)
    for shape in SHAPES.values():
        reason = method.invalid_reason(shape)
        if reason is None:
            check_on(method.structure(shape).edits, shape)
        else:
            assert "\n" not in reason


def test_it_is_counted_and_resized_to_a_budget(method):
    for shape in valid_shapes(method):
        least = smallest_count(method.structure(shape), shape)
        budget = max(least, shape.parameters // 100)
        resized = PublishedPoint(method.name).configuration(shape, parameters=budget, scale=2.0)
        assert least <= count(resized, shape).stored <= budget
        configuration = method.configuration(shape)
        assert conventions(method.name, shape)["trained"] == count(configuration, shape).trained


def test_it_is_stored_described_and_like_itself(method):
    for shape in valid_shapes(method):
        structure = method.structure(shape)
        assert configuration_from_json(configuration_to_json(structure)) == structure
        assert canonical(canonical(structure, shape), shape) == canonical(structure, shape)
        assert "\n" not in sentence(structure, shape)
        if structure.edits:
            (itself,) = (one for one in ranked_published(structure, shape) if one.method is method)
            assert itself.differences == ()


def test_a_setting_that_it_does_not_have_is_refused(method):
    with pytest.raises(KeyError, match="has no hyper-parameter 'nonsense'"):
        PublishedPoint(f"{method.name}:nonsense=1")


def test_method_of_an_installed_package_is_found_and_sized(tmp_path):
    printed = run_with_package(
        tmp_path,
        source=SOURCE,
        points={"deltaspace.methods": "mine = foreign_module:MINE"},
        script="""
from search_space.backbones import FAMILIES, shape_of
from search_space.published import METHODS, published_method
from search_space.published.point import PublishedPoint

shape = shape_of({**FAMILIES["roberta"].example, "model_type": "roberta"})
configuration = PublishedPoint("mine:r=3").configuration(shape, parameters=10_000, scale=1.0)
print(list(METHODS)[-1], published_method("mine").title, configuration.edits[0].form.width)
""",
    )
    assert printed == "mine my adapter 3\n"
