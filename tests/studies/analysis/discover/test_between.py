"""What differences are worth by a posterior: closed forms on an additive truth and on one interaction."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from search_space.configuration import Configuration
from search_space.gates import FixedScale
from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from studies.analysis.discover.between import Array, Between, Joint


def between(space: SearchSpace, worth: Callable[[Candidate], float], covariance: float = 0.0) -> Between:
    """From the parallel adapters at both sublayers to MAM, which differ at attention and at the FFN."""
    first = space.suggest_published("pa_attn_plus_pa_ffn", RandomTrial(0))
    last = space.suggest_published("mam_adapter", RandomTrial(1))
    return Between(first, last, space, joint(worth, covariance))


def joint(worth: Callable[[Candidate], float], noise: float) -> Joint:
    """Means that a formula gives; independent errors of variance ``noise``."""

    def posterior(candidates: Sequence[Candidate]) -> tuple[Array, Array]:
        return np.array([worth(one) for one in candidates]), noise * np.eye(len(candidates))

    return posterior


def is_scaled(candidate: Candidate) -> bool:
    return candidate.configuration.ffn[0].gate.name == "scale"


def values(found: Between) -> dict[str, float]:
    return {step.words: step.value.mean for step in found.steps}


def of(found: Between, *words: str) -> float:
    """Of the step that changes something; 0 without one."""
    return sum(value for text, value in values(found).items() if any(word in text for word in words))


def test_an_interaction_of_two_changes_is_shared_by_halves(space):
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
    assert of(found, "insertion") == pytest.approx(0.03, abs=1e-12)
    assert of(found, "gate") == pytest.approx(0.02, abs=1e-12)
    # on the path the second change gets all of it
    assert [step.gain.mean for step in found.steps] == pytest.approx([0.01, 0.04], abs=1e-12)


def test_deviations_are_those_of_differences_of_independent_scores(space):
    found = between(space, lambda one: 0.5, covariance=0.01)
    assert found.difference.deviation == pytest.approx(math.sqrt(0.02))
    assert [step.gain.deviation for step in found.steps] == pytest.approx([math.sqrt(0.02)] * len(found.steps))
    assert all(0 < step.value.deviation < math.sqrt(0.02) for step in found.steps)


def test_what_is_common_to_all_is_no_error_of_a_difference(space):
    first = space.suggest_published("pa_attn_plus_pa_ffn", RandomTrial(0))
    last = space.suggest_published("mam_adapter", RandomTrial(1))
    found = Between(first, last, space, lambda some: (np.zeros(len(some)), np.ones((len(some), len(some)))))
    assert found.difference.deviation == pytest.approx(0, abs=1e-9)
    assert all(step.value.deviation < 1e-6 for step in found.steps)
    assert [step.reached.deviation for step in found.steps] == pytest.approx([1.0] * len(found.steps))


def test_nothing_lies_between_a_candidate_and_itself(space):
    one = space.suggest_published("mam_adapter", RandomTrial(0))
    found = Between(one, one, space, joint(lambda _: 0.3, 0.01))
    assert (found.steps, found.difference.mean, found.difference.deviation) == ((), 0.0, 0.0)
