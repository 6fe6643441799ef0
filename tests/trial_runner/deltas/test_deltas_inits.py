"""How forms start: the moments and bounds of their draws, against closed forms or integrals of the density."""

import math

import pytest
import torch
from support.built_forms import build_delta, made_up_shape
from support.edits import edit
from torch import Tensor, nn

from search_space.dimensions import Heads, Port
from search_space.forms import Bottleneck, Form, Init, LowRank, OwnNorm, Phm
from search_space.gates import Gate, InducerGate
from trial_runner.deltas.phm import PhmShared
from trial_runner.deltas.vera import VeraMatrices

SHAPE = made_up_shape(decoder_layers=1, width=256, query_heads=8, key_value_heads=4, head_width=64, ffn_width=512)
WIDTH = 128

_GRID = torch.linspace(-12, 12, 240_001, dtype=torch.float64)
_DENSITY = torch.exp(-(_GRID**2) / 2) / math.sqrt(2 * math.pi)


def deviation_of(values: Tensor) -> float:
    """Standard deviation of a function of a standard normal, given on the grid."""
    return float(torch.trapezoid(values**2 * _DENSITY, _GRID)) ** 0.5


REMAINDER = 0.01 * deviation_of(torch.fmod(_GRID, 2))
_INSIDE = (_GRID.abs() <= 2).double()
TRUNCATED = 1e-3 * deviation_of(_GRID * _INSIDE) / deviation_of(_INSIDE)


def built(
    form: Form, *, gate: Gate | None = None, write: Port = Port.F, read: Port = Port.M, seed: int = 0
) -> nn.Module:
    return build_delta(edit(write, read, form, gate), WIDTH, SHAPE, torch.Generator().manual_seed(seed))


def assert_deviates(values: Tensor, deviation: float) -> None:
    """Assert that mean and deviation of draws lie within 5 standard errors, at most 1/sqrt(N) each."""
    number = values.numel()
    error = 5 / math.sqrt(number)
    assert abs(float(values.detach().mean())) < error * deviation
    assert abs(float(values.detach().std()) / deviation - 1) < error


@pytest.mark.parametrize("heads", [Heads.SINGLE, Heads.QUERY])
def test_lora_is_uniform_below_and_zero_above(heads):
    ends = {"write": Port.O, "read": Port.Q} if heads is Heads.QUERY else {}
    bound = (64 if heads is Heads.QUERY else 512) ** -0.5
    for form in (Bottleneck(width=WIDTH, heads=heads), LowRank(width=WIDTH, heads=heads, bias=True)):
        own = built(form, **ends).form
        down, up = (own.down, own.up) if isinstance(form, Bottleneck) else (own.a, own.b)
        biases = [own.down_bias, own.up_bias] if isinstance(form, Bottleneck) else [own.bias]
        assert bound * 0.999 < down.abs().max() <= bound
        assert_deviates(down, bound / math.sqrt(3))
        assert not any(zero.any() for zero in (up, *biases))


def test_bert_is_normal_with_zero_biases():
    own = built(Bottleneck(width=WIDTH, init=Init.BERT, norm=OwnNorm.OUTPUT)).form
    for weight in (own.down, own.up):
        assert_deviates(weight, 0.02)
        assert weight.abs().max() > 3 * 0.02, "the tails are there"
    assert not any(zero.any() for zero in (own.down_bias, own.up_bias, own.output_norm.bias))
    assert bool((own.output_norm.weight == 1).all())


def test_houlsby_is_a_normal_without_its_tails():
    own = built(Bottleneck(width=WIDTH, init=Init.HOULSBY)).form
    for weight in (own.down, own.up):
        assert_deviates(weight, TRUNCATED)
        assert 1.99e-3 < weight.abs().max() <= 2e-3
        # clamping would put 4.6% of the draws on the bounds
        assert (weight.abs() > 1.999e-3).double().mean() < 1e-3
    assert not own.down_bias.any()
    assert not own.up_bias.any()


def test_an_inducer_draws_biases_too_and_folds_its_tails():
    form = Bottleneck(width=WIDTH, heads=Heads.QUERY, init=Init.INDUCER)
    delta = built(form, gate=InducerGate(key_width=WIDTH), write=Port.O, read=Port.Q)
    parameters = dict(delta.named_parameters())
    assert len(parameters) == 8
    for parameter in parameters.values():
        assert_deviates(parameter, REMAINDER)
        assert parameter.abs().max() < 0.02
    weight = parameters["form.up"].detach()
    near_zero = (weight.abs() < 0.005).double().mean()
    # |x| < 1/2 or 2 < |x| < 5/2, of a standard normal
    expected = math.erf(0.5 / math.sqrt(2)) + math.erf(2.5 / math.sqrt(2)) - math.erf(2 / math.sqrt(2))
    assert abs(float(near_zero) - expected) < 5 / math.sqrt(weight.numel())


@pytest.mark.parametrize("rank", [None, 16])
def test_kronecker_factors_have_glorot_initialization(rank):
    own = built(Phm(width=WIDTH, n=4, factor_rank=rank, shared=False)).form
    for matrix, rows, columns in ((own.down, 128, 32), (own.up, 32, 64)):
        assert_deviates(matrix.rule, 0.01)
        for factor, ends in ((matrix.whole, rows + columns), (matrix.left, rows + 16), (matrix.right, 16 + columns)):
            if factor is not None:
                bound = math.sqrt(6 / ends)
                assert bound * 0.99 < factor.abs().max() <= bound
                assert_deviates(factor, bound / math.sqrt(3))
    assert not own.down_bias.any()
    assert not own.up_bias.any()
    assert_deviates(PhmShared(16, torch.Generator().manual_seed(0)).rule, 1e-4)


@pytest.mark.parametrize(
    "form",
    [*(Bottleneck(width=8, init=init) for init in Init), Phm(width=8, shared=False)],
    ids=lambda form: getattr(form, "init", form.name),
)
def test_draws_depend_on_the_generator_alone(form):
    first, again, other = (list(built(form, seed=seed).parameters()) for seed in (1, 1, 2))
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    assert not all(torch.equal(one, two) for one, two in zip(first, other, strict=True))
    assert all(parameter.dtype is torch.float64 for parameter in first)


@pytest.mark.parametrize(("rank", "in_width", "out_width"), [(4, 768, 3072), (256, 128, 96)])
def test_vera_matrices_are_kaiming_uniform(rank, in_width, out_width):
    drawn = VeraMatrices(in_width, rank, out_width, seed=3)
    for matrix, inputs in ((drawn.a, in_width), (drawn.b, rank)):
        bound = math.sqrt(6 / inputs)
        largest = float(matrix.abs().max())
        assert 0.99 * bound < largest <= bound
        # six standard errors of the deviation of a uniform draw
        expected, error = bound / math.sqrt(3), bound / math.sqrt(3) * math.sqrt(0.2 / matrix.numel())
        assert float(matrix.double().square().mean().sqrt()) == pytest.approx(expected, abs=6 * error)
