"""Configurations as JSON: what is written is read back, and what cannot be read is refused in one line."""

import copy
import dataclasses
import json
from typing import Any

import pytest
from support.edits import edit

from search_space.codec import SCHEMA_VERSION, configuration_from_json, configuration_to_json
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Port, Site
from search_space.errors import CodecError
from search_space.forms import FORMS, Bottleneck, Init, OwnNorm, SoftmaxMemory
from search_space.gates import GATES, ConvexGate, FixedScale
from search_space.layers import LayerPattern, SpindleGroups

PREFIX = SoftmaxMemory(width=3, heads=Heads.KEY_VALUE, reparameterization=9)
ADAPTER = Bottleneck(width=5, widened=2, activation=Activation.SILU, bias=False, norm=OwnNorm.INPUT, init=Init.BERT)
CONFIGURATION = Configuration(
    edits=(
        edit("head", "q", PREFIX, ConvexGate(), site=Site.CROSS),
        edit("f", "res_f", ADAPTER, FixedScale(value=2.5), layers=SpindleGroups(groups=(2, 3))),
    )
)
# The stored form is a contract with databases and exports: changing it needs another schema version.
STORED: dict[str, Any] = {
    "schema_version": 2,
    "edits": [
        {
            "site": "cross",
            "layers": {"name": "all"},
            "write": "head",
            "read": "q",
            "form": {
                "name": "softmax_memory",
                "width": 3,
                "widened": 0,
                "heads": "key_value_heads",
                "reparameterization": 9,
                "robust": False,
            },
            "gate": {"name": "lse_convex"},
        },
        {
            "site": "ffn",
            "layers": {"name": "spindle", "groups": [2, 3]},
            "write": "f",
            "read": "res_f",
            "form": {
                "name": "bottleneck",
                "width": 5,
                "widened": 2,
                "activation": "silu",
                "heads": "single",
                "bias": False,
                "norm": "in",
                "init": "bert",
                "reparameterization": None,
            },
            "gate": {"name": "scale", "value": 2.5},
        },
    ],
}


def through_text(configuration: Configuration) -> Configuration:
    return configuration_from_json(json.loads(json.dumps(configuration_to_json(configuration))))


def test_the_stored_form_is_as_documented():
    assert configuration_to_json(CONFIGURATION) == STORED
    assert STORED["schema_version"] == SCHEMA_VERSION


def test_proposals_are_read_back(proposals):
    assert len(proposals) == 200
    for _, candidate in proposals:
        read = through_text(candidate.configuration)
        assert read == candidate.configuration
        assert [type(edit.form) for edit in read.edits] == [type(edit.form) for edit in candidate.configuration.edits]
        assert all(isinstance(edit.site, Site) and isinstance(edit.write, Port) for edit in read.edits)


def test_no_python_name_is_stored(proposals):
    for _, candidate in proposals:
        text = json.dumps(configuration_to_json(candidate.configuration))
        for name in ("search_space", "Bottleneck", "LowRank", "SoftmaxMemory", "Constant", "Port.", "__", "py/"):
            assert name not in text


def test_the_stored_form_is_read_and_left_as_it_is():
    stored = copy.deepcopy(STORED)
    assert configuration_from_json(stored) == CONFIGURATION
    assert stored == STORED


def changed(*path: str | int, value: object) -> dict[str, Any]:
    data = copy.deepcopy(STORED)
    place: Any = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return data


def without(*path: str | int) -> dict[str, Any]:
    data = changed(*path, value=None)
    place: Any = data
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed("schema_version", value=1), "schema version 2; got 1. Use the release that wrote it."),
        (changed("schema_version", value=3), "schema version 2; got 3. Use the release that wrote it."),
        (without("schema_version"), "schema version 2; got None"),
        ([], "schema version 2; got None"),
        (without("edits"), "configuration must have exactly its fields; got missing: edits; unknown: none"),
        (changed("name", value="x"), "missing: none; unknown: name"),
        (changed("edits", value=3), "'int' object is not iterable"),
        (changed("edits", value="mam"), "a stored edit must be a mapping; got str"),
        (changed("edits", 0, value=None), "a stored edit must be a mapping; got NoneType"),
        (without("edits", 0, "gate"), "a stored edit must have exactly its fields; got missing: gate"),
        (changed("edits", 1, "site", value="embedding"), "'embedding' is not a valid Site"),
        (changed("edits", 1, "write", value="mean"), "'mean' is not a valid Port"),
        (changed("edits", 1, "layers", value={"name": "some"}), "all, range, spindle, pattern; got 'some'"),
        (changed("edits", 1, "form", "name", value="tucker"), f"{list(FORMS)[-1]}; got 'tucker'"),
        (changed("edits", 1, "gate", "name", value="max"), f"{list(GATES)[-1]}; got 'max'"),
        (changed("edits", 1, "layers", "groups", value=[3, 2]), "ascending numbers"),
        (without("edits", 1, "layers"), "a stored edit must have exactly its fields; got missing: layers"),
        (without("edits", 1, "form", "name"), "got None"),
        (changed("edits", 1, "form", value="lowrank"), "'str' object has no attribute"),
        # a lost field must not come back as its default
        *(
            (without("edits", 1, "form", field), f"bottleneck must have exactly its fields; got missing: {field};")
            for field in ("width", "widened", "activation", "heads", "bias", "norm", "init", "reparameterization")
        ),
        (without("edits", 1, "gate", "value"), "a stored scale must have exactly its fields; got missing: value"),
        (changed("edits", 1, "form", "rank", value=3), "got missing: none; unknown: rank"),
        (changed("edits", 1, "form", "activation", value="elu"), "'elu' is not a valid Activation"),
        (changed("edits", 1, "form", "width", value="5"), "whole number of at least 1; got '5'"),
        (changed("edits", 1, "form", "bias", value={}), "a flag must be true or false; got {}"),
        (changed("edits", 1, "form", "width", value=0), "whole number of at least 1; got 0"),
        (changed("edits", 1, "gate", "value", value="two"), "not supported between"),
        (changed("edits", 1, "gate", "value", value=-1.0), "got -1.0. [scale]"),
        (changed("edits", 1, "write", value="u"), "cannot read a stored configuration: "),
        (changed("edits", 1, "gate", value={"name": "lse_convex"}), "[V1]"),
        (changed("edits", value=[STORED["edits"][0]] * 2), "[V18]"),
    ],
)
def test_unreadable_configuration_is_refused_in_one_line(data, message):
    if message == "cannot read a stored configuration: ":
        data["edits"][1]["read"] = "m"
    with pytest.raises(CodecError) as caught:
        configuration_from_json(data)
    assert message in str(caught.value)
    assert str(caught.value).startswith(("cannot read a stored configuration: ", "a stored ", "a configuration must "))
    assert "\n" not in str(caught.value)
    assert "__" not in str(caught.value)


def test_a_pattern_of_layers_is_stored_by_its_sixths():
    layers = LayerPattern(sixths=(1, 3, 4))
    configuration = Configuration(edits=(dataclasses.replace(CONFIGURATION.edits[1], layers=layers),))
    stored = configuration_to_json(configuration)
    assert stored["edits"][0]["layers"] == {"name": "pattern", "sixths": [1, 3, 4]}
    assert stored["schema_version"] == STORED["schema_version"]
    assert configuration_from_json(json.loads(json.dumps(stored))) == configuration
