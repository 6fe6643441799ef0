"""The picture of a block: every edit beside the tensors that it reads and writes."""

import json
from pathlib import Path

import pytest
from support.loops import each

from dashboards.web.picture import EDIT_HEIGHT, EDIT_WIDTH, PORT_HEIGHT, Drawing, picture_of
from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Site
from search_space.errors import InvalidEditError
from search_space.published import METHODS
from search_space.rules import READABLE_PORTS, writable_ports

BACKBONES = Path(__file__).parents[2] / "data" / "backbones"


@pytest.fixture(scope="module")
def shape() -> BackboneShape:
    return shape_of(json.loads((BACKBONES / "roberta_base" / "config.json").read_text()))


def boxes(panel: Drawing) -> list[tuple[float, float, float, float]]:
    found = [(port["x"], port["y"], port["width"], PORT_HEIGHT) for port in panel["ports"]]
    found += [(edit["x"], edit["y"], EDIT_WIDTH, EDIT_HEIGHT) for edit in panel["edits"]]
    return [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for x, y, w, h in found]


@each("name", sorted(METHODS))
def test_every_published_method_can_be_drawn(name, shape):
    try:
        configuration = METHODS[name].configuration(shape)
    except InvalidEditError:
        return
    found = picture_of(configuration, shape)
    drawn = [edit for panel in found["panels"] for edit in panel["edits"]] + found["outside"]
    assert len(drawn) == len(configuration.edits)
    assert sorted(edit["formula"] for edit in drawn) == sorted(one.formula(shape) for one in configuration.edits)
    for panel in found["panels"]:
        names = {port["name"] for port in panel["ports"]}
        assert {end for edit in panel["edits"] for end in (edit["read"], edit["write"]) if end} <= names
        assert {name for flow in panel["flows"] for name in flow} == names
        some = boxes(panel)
        assert all(x0 >= 0 and y0 >= 0 and x1 <= panel["width"] and y1 <= panel["height"] for x0, y0, x1, y1 in some)
        for place, (x0, y0, x1, y1) in enumerate(some):
            assert not any(x0 < u1 and u0 < x1 and y0 < v1 and v0 < y1 for u0, v0, u1, v1 in some[place + 1 :])


def test_every_tensor_that_can_be_read_or_written_has_a_place(shape):
    attention, ffn = (
        {port["name"] for port in panel["ports"]}
        for panel in picture_of(METHODS["bitfit"].configuration(shape), shape)["panels"]
    )
    for site, places in ((Site.ATTENTION, attention), (Site.FFN, ffn | {"g"})):
        for write in writable_ports(site):
            assert {write.value, *(read.value for read in READABLE_PORTS[write])} <= places


def test_mam_reads_and_writes_the_tensors_of_the_paper(shape):
    attention, ffn = picture_of(METHODS["mam_adapter"].configuration(shape), shape)["panels"]
    assert [(edit["read"], edit["write"], edit["insertion"]) for edit in attention["edits"]] == [
        ("q", "head", "parallel")
    ]
    assert [(edit["read"], edit["write"]) for edit in ffn["edits"]] == [("x_ffn", "f")]
    assert ffn["edits"][0]["gate"].startswith("scale ")
