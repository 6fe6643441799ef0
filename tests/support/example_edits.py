"""Examples of forms and gates, ``trial_runner/port_discovery/examples.toml``, and invariants of every edit."""

import json
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from search_space.backbones import FAMILIES, shape_of
from search_space.backbones.shape import BackboneShape
from search_space.canonical import canonical, fingerprint
from search_space.codec import configuration_from_json, configuration_to_json
from search_space.configuration import Configuration
from search_space.dimensions import Site
from search_space.edit import Edit
from search_space.parameter_counts.counts import count
from trial_runner.port_discovery.examples import examples_at

BACKBONES = ("roberta", "bart", "qwen3")
SITES = (Site.ATTENTION, Site.FFN, Site.STACK, Site.EMBEDDING, Site.GLOBAL)


def shapes() -> Iterator[BackboneShape]:
    """Small backbones: post-LN, of two stacks, and with grouped queries, a gated FFN and no biases."""
    for name in BACKBONES:
        yield shape_of({**FAMILIES[name].example, "model_type": name})


def examples_with(kind: Any, part: Callable[[Edit], object]) -> list[tuple[Edit, BackboneShape]]:
    """Return the examples with a form or a gate, at all sites."""
    examples = ((edit, shape) for shape in shapes() for site in SITES for edit in examples_at(site, shape))
    found = [(edit, shape) for edit, shape in examples if type(part(edit)) is kind]
    assert found, (
        f"{kind.name} needs an example in trial_runner/port_discovery/examples.toml that is valid on one of {BACKBONES}"
    )
    return found


def assert_is_kept(edit: Edit, part: Any, shape: BackboneShape) -> Configuration:
    """Check that a part of an edit is frozen, survives JSON, and keeps its counts in canonical form."""
    assert replace(part) == part
    assert hash(replace(part)) == hash(part)
    for field in fields(part):
        with pytest.raises(FrozenInstanceError):
            setattr(part, field.name, getattr(part, field.name))
    configuration = Configuration(edits=(edit,))
    assert configuration_from_json(json.loads(json.dumps(configuration_to_json(configuration)))) == configuration
    kept = canonical(configuration, shape)
    assert canonical(kept, shape) == kept
    assert fingerprint(kept, shape) == fingerprint(configuration, shape)
    assert count(kept, shape) == count(configuration, shape)
    return kept
