"""Smallest examples of each form and each gate, by site, from ``examples.toml``."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from search_space.backbones.shape import BackboneShape
from search_space.codec import from_fields
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import FORMS, Form
from search_space.gates import GATES, Add, Gate
from search_space.validity import check_on

Example = tuple[tuple[Port, Port | None], Form, Gate]
ExampleFactory = Callable[[BackboneShape], tuple[Example, ...]]

_TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_MORE_TENSORS = 20
_ELSEWHERE = ("site", "sample", "V19", "ports", "V14", "V15", "width")
"""Rules by which an example belongs to another site or another backbone."""


def _examples(said: Sequence[Mapping[str, Any]], name: str, shape: BackboneShape) -> tuple[Example, ...]:
    found: list[Example] = []
    for one in said:
        own = {"name": name, **{key: value for key, value in one.items() if key not in ("at", "form", "gate")}}
        form, gate = (one["form"], own) if "form" in one else (own, one.get("gate", {"name": Add.name}))
        for place in one["at"]:
            write, *read = map(Port, place.split())
            found.append(((write, next(iter(read), None)), _made(FORMS, form, shape), _made(GATES, gate, shape)))
    return tuple(found)


def _made(kinds: Mapping[str, Any], said: Mapping[str, Any], shape: BackboneShape) -> Any:
    words = {"absent": None, "tensors": shape.parameter_tensors + _MORE_TENSORS}
    fields = {key: words.get(value, value) for key, value in said.items() if key != "name"}
    return from_fields(kinds[said["name"]], fields)


FORM_EXAMPLES: Mapping[str, ExampleFactory] = {
    name: partial(_examples, said, name) for name, said in _TABLES["forms"].items()
}
"""ExampleFactory of each form, of the smallest sizes, for every location with its ports."""
GATE_EXAMPLES: Mapping[str, ExampleFactory] = {
    name: partial(_examples, said, name) for name, said in _TABLES["gates"].items()
}
"""ExampleFactory of each gate, of the smallest sizes."""


def examples_at(site: Site, shape: BackboneShape) -> Iterator[Edit]:
    """Yield every example for a site that is valid on the backbone."""
    for examples in (*FORM_EXAMPLES.values(), *GATE_EXAMPLES.values()):
        for (write, read), form, gate in examples(shape):
            try:
                edit = Edit(site=site, write=write, read=read, form=form, gate=gate)
                check_on((edit,), shape)
            except InvalidEditError as error:
                if error.rule not in _ELSEWHERE:
                    raise
                continue
            yield edit
