"""Stored studies go on with the parameters and the proposals that they began with: these never change by themselves."""

import hashlib
import json
from typing import Any

import pytest

from search_space.codec import configuration_to_json
from search_space.forms import FORMS, Init, OwnNorm
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace

DRAWS = 300
EARLIER: dict[str, Any] = {
    "learning_rates_of": "weights",
    "learning_rates": {"softmax_memory": (3e-3, 5e-2), "bottleneck": (1e-3, 1e-2), "lowrank": (1e-3, 2e-2)},
}
OPTIONS = {
    "usual": SpaceOptions(**EARLIER),
    "separate": SpaceOptions(**EARLIER, sites="separate", layers=("all", "range")),
    "open": SpaceOptions(
        **EARLIER,
        layers=("all", "range", "spindle"),
        near_duplicates=True,
        ffn_forms=("phm", "bottleneck", "const"),
        values=FormValues(inits=(Init.LORA, Init.BERT), norms=(OwnNorm.NONE, OwnNorm.INPUT)),
    ),
}


def digest(space: SearchSpace) -> str:
    """Return a digest of the names, order and ranges of all parameters, and of seeded draws."""
    table = [
        (name, list(one) if isinstance(one, tuple) else (one.low, one.high, one.log))
        for name, one in space.parameters().items()
    ]
    trial, drawn = RandomTrial(7), []
    for _ in range(DRAWS):
        candidate = space.suggest(trial)
        drawn.append((configuration_to_json(candidate.configuration), candidate.fingerprint, [*candidate.parameters]))
    return hashlib.sha256(json.dumps([table, drawn]).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("backbone", "name", "expected"),
    [
        ("roberta_base", "usual", "557fe6a539682e03"),
        ("roberta_base", "open", "e918ff08a7fab11f"),
        ("bart_large", "separate", "2106b9367434b352"),
        ("qwen3_0_6b", "usual", "21e6d28d87152dc2"),
    ],
)
def test_parameters_and_draws_are_unchanged(backbone, name, expected, shape_named):
    shape = shape_named(backbone)
    assert digest(SearchSpace(shape=shape, budget=shape.parameters // 200, options=OPTIONS[name])) == expected


@pytest.mark.parametrize("option", [{"ffn_forms": ("dora",)}, {"published": ["dora"]}])
def test_opt_in_form_is_searched_only_where_it_is_named(option, shape_named):
    shape = shape_named("roberta_base")
    later = {f"learning_rate.{name}" for name, form in FORMS.items() if form.is_opt_in}
    usual = SearchSpace(shape=shape, budget=shape.parameters // 200).parameters()
    naming = SearchSpace(shape=shape, budget=shape.parameters // 200, options=SpaceOptions(**option)).parameters()
    assert later & set(usual) == set()
    assert later & set(naming) == {"learning_rate.dora"}
