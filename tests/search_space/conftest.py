"""Backbones, and trials that propose at random, for the tests of the search space."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Site, StackKind
from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace

BACKBONES = Path(__file__).parents[1] / "data" / "backbones"


@cache
def read_shape(backbone: str) -> BackboneShape:
    return shape_of(json.loads((BACKBONES / backbone / "config.json").read_text()))


@pytest.fixture(scope="session")
def shape_named() -> Callable[[str], BackboneShape]:
    """Return a reader of shapes of ``tests/data/backbones``."""
    return read_shape


@pytest.fixture(scope="session")
def roberta() -> BackboneShape:
    """RoBERTa-base: post-LN encoder, a key/value head for every query head, biases everywhere."""
    return read_shape("roberta_base")


@pytest.fixture(scope="session")
def bart() -> BackboneShape:
    """BART-large: post-LN, attention of three kinds."""
    return read_shape("bart_large")


@pytest.fixture(scope="session")
def qwen() -> BackboneShape:
    """Qwen3-0.6B: pre-LN decoder, grouped queries, gated FFN, q wider than the model, no biases."""
    return read_shape("qwen3_0_6b")


@pytest.fixture(scope="session")
def odd() -> BackboneShape:
    """Build a constructed encoder-decoder with distinct sizes, so that no count is right by accident."""
    biased = {
        *((Site.ATTENTION, port) for port in (Port.Q, Port.K, Port.V, Port.O, Port.NORM)),
        *((Site.FFN, port) for port in (Port.G, Port.U, Port.F, Port.NORM)),
    }
    return BackboneShape(
        family="odd",
        kind=StackKind.ENCODER_DECODER,
        norm=NormPlacement.PRE,
        encoder_layers=2,
        decoder_layers=3,
        width=11,
        query_heads=6,
        key_value_heads=2,
        head_width=5,
        ffn_width=17,
        gated_ffn=True,
        parameters=100_000,
        biased_ports=frozenset(biased),
        stack_norms=4,
    )


@pytest.fixture(scope="session")
def proposals(roberta: BackboneShape, qwen: BackboneShape) -> list[tuple[BackboneShape, Candidate]]:
    """Draw 200 random proposals on two backbones, with the backbone of each."""
    found = []
    for shape in (roberta, qwen):
        space, trial = SearchSpace(shape=shape, budget=shape.parameters // 200), RandomTrial(7)
        found += [(shape, space.suggest(trial)) for _ in range(100)]
    return found
