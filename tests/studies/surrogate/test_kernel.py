"""How alike configurations are: a kernel, its closed form, and what a missing side is like."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from studies.surrogate.features import Features, SideStructure, TrainedSide
from studies.surrogate.hyperparameters import SEARCH_PRIORS
from studies.surrogate.kernel import PointPairs, Points, variance
from studies.surrogate.structure_distances import DIMENSIONS, StructureDistances

VALUES = SEARCH_PRIORS.medians


def structure(**changes: object) -> SideStructure:
    words = {
        "form": "lowrank",
        "write": "q",
        "read": "x_attn",
        "insertion": "parallel",
        "heads": "single",
        "gate": "add",
        "activation": "",
        "other": "",
        "layers": "",
    }
    given = {**words, **changes}
    sets = {name: frozenset(str(given[name]).split()) for name in words}
    return SideStructure(**sets, scale=float(str(changes.get("scale", 0.0))))


def kernel(one: Features, other: Features) -> float:
    distances = StructureDistances()
    left, right = Points.of([one], distances), Points.of([other], distances)
    return float(PointPairs(left, right, distances).kernel(VALUES)[0, 0])


def side(rate: float = 0.0, size: float = -1.0, **changes: object) -> TrainedSide:
    return TrainedSide(structure(**changes), rate, size)


def test_the_kernel_of_any_trials_is_symmetric_and_positive_semidefinite(encoding, history):
    views = [encoding.features_of(one) for one in history(150)]
    distances = StructureDistances()
    points = Points.of(views, distances)
    matrix = PointPairs(points, points, distances).kernel(VALUES)
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-15)
    assert np.linalg.eigvalsh(matrix).min() > -1e-12
    np.testing.assert_allclose(np.diag(matrix), variance(VALUES), rtol=1e-14)


def matern(distance: float) -> float:
    return float(Matern(length_scale=1.0, nu=2.5)([[distance]], [[0.0]])[0, 0])


def test_the_kernel_of_two_sides_is_its_formula():
    one = side(rate=0.3, size=-1.0), side(rate=0.1)
    other = side(rate=-0.2, size=-1.5, form="bottleneck", write="q v", gate="scale", scale=1), side(rate=0.4)
    weight = {name: VALUES[f"weight.{name}"] for name in DIMENSIONS}
    distance = weight["form"] + 0.5 * weight["write"] + 0.5 * weight["gate"] + weight["scale"]
    rate, size = VALUES["length.rate"], VALUES["length.size"]
    attention = np.exp(-distance) * matern(0.5 / rate) * matern(0.5 / size)
    ffn = matern(0.3 / rate)
    expected = VALUES["level"] ** 2 + VALUES["attention"] ** 2 * attention + VALUES["ffn"] ** 2 * ffn
    expected += VALUES["pair"] ** 2 * attention * ffn
    assert kernel(one, other) == pytest.approx(float(expected), rel=1e-14)


def test_distances_do_not_depend_on_the_order_of_structures(encoding, history):
    views = [encoding.features_of(one) for one in history(80)]
    there = [attention.structure for attention, _ in views if attention is not None]
    forwards, backwards = StructureDistances(), StructureDistances()
    ours = np.array([forwards.number(one) for one in there])
    for one in reversed(there):
        backwards.number(one)
    theirs = np.array([backwards.number(one) for one in there])
    np.testing.assert_array_equal(forwards.distances(ours, ours), backwards.distances(theirs, theirs))
