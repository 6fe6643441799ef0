"""Gains of differences by a posterior: closed forms on an interaction, and the order of the path."""

import math
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from search_space.configuration import Configuration
from search_space.gates import FixedScale
from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from studies.analysis.discover.between import Array, Between, Joint, members, smallest_supersets
from studies.analysis.discover.hybrids import Hybrids


def between(space: SearchSpace, worth: Callable[[Candidate], float], covariance: float = 0.0) -> Between:
    """Return the path from parallel adapters at both sublayers to MAM, which differs at attention and the FFN."""
    first = space.suggest_published("pa_attn_plus_pa_ffn", RandomTrial(0))
    last = space.suggest_published("mam_adapter", RandomTrial(1))
    return Between(first, last, space, joint(worth, covariance))


def joint(worth: Callable[[Candidate], float], noise: float) -> Joint:
    """Return a posterior with the formula's means and independent errors of variance ``noise``."""

    def posterior(candidates: Sequence[Candidate]) -> tuple[Array, Array]:
        return np.array([worth(one) for one in candidates]), noise * np.eye(len(candidates))

    return posterior


def is_scaled(candidate: Candidate) -> bool:
    return candidate.configuration.ffn[0].gate.name == "scale"


def test_second_of_two_interacting_changes_gets_the_interaction(space):
    first = space.suggest_published("parallel_adapter_ffn", RandomTrial(0))
    (edit,) = first.configuration.ffn
    other = Configuration(edits=(replace(edit, read=edit.write, gate=FixedScale(value=4.0)),))
    # a rate for four times the scale that changes the output as much
    last = Candidate.of(other, (None, (first.ffn_learning_rate or 0) / 4), space.shape)

    def worth(one: Candidate) -> float:
        (edit,) = one.configuration.ffn
        return (
            0.5 + 0.01 * (edit.insertion == "sequential") + 0.04 * (edit.insertion == "sequential" and is_scaled(one))
        )

    found = Between(first, last, space, joint(worth, 0.0))
    assert ["insertion" in step.words for step in found.steps] == [True, False]
    assert [step.gain.mean for step in found.steps] == pytest.approx([0.01, 0.04], abs=1e-12)


def test_deviations_are_those_of_differences_of_independent_scores(space):
    found = between(space, lambda one: 0.5, covariance=0.01)
    assert found.difference.deviation == pytest.approx(math.sqrt(0.02))
    assert [step.gain.deviation for step in found.steps] == pytest.approx([math.sqrt(0.02)] * len(found.steps))


def test_common_error_does_not_affect_a_difference(space):
    first = space.suggest_published("pa_attn_plus_pa_ffn", RandomTrial(0))
    last = space.suggest_published("mam_adapter", RandomTrial(1))
    found = Between(first, last, space, lambda some: (np.zeros(len(some)), np.ones((len(some), len(some)))))
    assert found.difference.deviation == pytest.approx(0, abs=1e-9)
    assert all(step.gain.deviation < 1e-6 for step in found.steps)
    assert [step.reached.deviation for step in found.steps] == pytest.approx([1.0] * len(found.steps))


def test_path_from_a_candidate_to_itself_is_empty(space):
    one = space.suggest_published("mam_adapter", RandomTrial(0))
    found = Between(one, one, space, joint(lambda _: 0.3, 0.01))
    assert (found.steps, found.difference.mean, found.difference.deviation) == ((), 0.0, 0.0)


@pytest.mark.parametrize(
    ("made", "legal", "expected"),
    [
        (0b000, range(8), [0b001, 0b010, 0b100]),
        (0b010, range(8), [0b011, 0b110]),
        (0b111, range(8), []),
        # two changes that need each other come together, and a single one before them
        (0b000, [0b000, 0b011, 0b100, 0b111], [0b011, 0b100]),
        # nothing but both ends is legal
        (0b000, [0b000, 0b111], [0b111]),
        # the last two are legal together alone
        (0b001, [0b000, 0b001, 0b010, 0b111], [0b111]),
    ],
)
def test_smallest_supersets_are_legal_and_contain_no_other(made, legal, expected):
    assert smallest_supersets(made, legal) == expected


def test_smallest_supersets_equal_all_pairs_written_out():
    draw = random.Random(0)
    for _ in range(50):
        legal = sorted({0, 31, *draw.sample(range(32), draw.randint(0, 20))})
        made = draw.choice(legal)
        larger = [members(one) for one in legal if members(one) > members(made)]
        minimal = [one for one in larger if not any(other < one for other in larger)]
        assert {members(one) for one in smallest_supersets(made, legal)} == set(minimal)


def test_path_takes_the_change_with_the_highest_mean_next(space):
    def worth(one: Candidate) -> float:
        return float(zlib.crc32(one.fingerprint.encode()))

    found = between(space, worth)
    hybrids = Hybrids(found.first, found.last, space)
    legal = {made: hybrids.hybrid(members(made)) for made in range(1 << len(hybrids.changes))}
    first = smallest_supersets(0, [made for made, one in legal.items() if one is not None])
    assert len(found.steps) > 2
    assert found.steps[0].reached.mean == max(worth(one) for made in first if (one := legal[made]))
    assert sum(step.gain.mean for step in found.steps) == pytest.approx(found.difference.mean)
    assert [*chain(*(step.changes for step in found.steps))] != list(found.changes)
    assert {*chain(*(step.changes for step in found.steps))} == set(found.changes)
