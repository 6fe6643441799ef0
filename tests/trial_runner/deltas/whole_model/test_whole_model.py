"""Changes of whole models against closed forms in float64, and their application to a model."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from support.built_forms import build_whole, nudged
from support.rounding import rounding
from torch import Tensor, nn

from search_space.forms import Full, Intrinsic, Sparse
from trial_runner.backbones import load_backbone
from trial_runner.deltas.whole_model.intrinsic import Fastfood, IntrinsicDelta, walsh_hadamard
from trial_runner.deltas.whole_model.sparse import SparseDelta, hard_concrete
from trial_runner.deltas.whole_model.swap import swapped
from trial_runner.deltas.whole_model.whole_delta import WholeModelDelta

DID = Intrinsic(width=80)
SAID = Intrinsic(width=300, per_tensor=True)
GlobalForm = Full | Intrinsic | Sparse
FORMS: tuple[GlobalForm, ...] = (Full(), Sparse(width=50), DID, SAID)


@pytest.fixture
def load(tiny_backbone: Callable[[str], Path]) -> Callable[[str], nn.Module]:
    """Frozen base models in float64, anew each time."""
    return lambda family: load_backbone(str(tiny_backbone(family)), precision="float64").model


@pytest.fixture(params=["roberta", "bart"])
def model(request: pytest.FixtureRequest, load: Callable[[str], nn.Module]) -> nn.Module:
    return load(request.param)


def build(form: GlobalForm, model: nn.Module, seed: int = 0) -> WholeModelDelta:
    return build_whole(form, dict(model.named_parameters()), torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("form", [Full(), DID, SAID])
def test_the_gradient_is_that_of_finite_differences(form):
    frozen = {"a": torch.randn(3, 4, dtype=torch.float64), "b": torch.randn(5, dtype=torch.float64)}
    small = Intrinsic(width=6, per_tensor=form == SAID) if isinstance(form, Intrinsic) else form
    delta = nudged(build_whole(small, frozen, torch.Generator().manual_seed(0)).double(), 0.1)
    parameters = list(delta.parameters())

    def weights(*_: Tensor) -> tuple[Tensor, ...]:
        return tuple(delta.weights().values())

    assert torch.autograd.gradcheck(weights, parameters)


def test_a_change_holds_no_copy_of_the_model(model):
    """Test that its tensors are its own parameters and the masks of diff pruning; the model's are referred to."""
    for form in FORMS:
        delta = build(form, model)
        names = {name for name, _ in delta.state_dict().items()}
        masks = {"mask", "is_fixed"} if isinstance(delta, SparseDelta) else set()
        assert names == {name for name, _ in delta.named_parameters()} | masks
        held = delta.frozen.tensors.values()
        assert all(one is other for one, other in zip(held, model.parameters(), strict=True))


# ---- swapping


def test_swapping_back_restores_the_same_parameters_in_the_same_order(model):
    names = list(model.state_dict())
    before = [(name, id(parameter)) for name, parameter in model.named_parameters(remove_duplicate=False)]
    weights = nudged(build(Full(), model), 0.1).weights()
    with swapped(model, weights):
        assert list(model.state_dict()) == names
        assert not any(isinstance(parameter, nn.Parameter) for parameter in model.parameters())
    with pytest.raises(IndexError), swapped(model, weights):
        model(input_ids=torch.tensor([[1000]]))
    assert [(name, id(parameter)) for name, parameter in model.named_parameters(remove_duplicate=False)] == before
    assert all(isinstance(parameter, nn.Parameter) for parameter in model.parameters())


def test_every_alias_of_a_tied_tensor_is_replaced(load):
    model = load("bart")
    aliases = ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
    other = torch.ones_like(model.get_submodule(aliases[0]).weight)
    for name in aliases:
        with swapped(model, {f"{name}.weight": other}):
            assert all(model.get_submodule(alias).weight is other for alias in aliases)
    assert model.get_submodule(aliases[0]).weight is model.get_submodule(aliases[2]).weight


# ---- intrinsic dimension


def hadamard(length: int) -> Tensor:
    """Return Sylvester's matrix: the sign is the parity of the common bits."""
    signs = [[(-1.0) ** (row & column).bit_count() for column in range(length)] for row in range(length)]
    return torch.tensor(signs, dtype=torch.float64)


@pytest.mark.parametrize("length", [1, 2, 8, 32])
def test_the_fast_transform_is_the_hadamard_matrix(length):
    torch.testing.assert_close(walsh_hadamard(torch.eye(length, dtype=torch.float64)[0]), torch.ones(length).double())
    x = torch.randn(length, dtype=torch.float64)
    torch.testing.assert_close(walsh_hadamard(x), hadamard(length) @ x, rtol=0, atol=1e-12)
    torch.testing.assert_close(walsh_hadamard(walsh_hadamard(x)), length * x)


def explicit(size: int, seed: int, z: Tensor) -> Tensor:
    """Compute the formula with matrices, from the same signs, permutation and normal draws."""
    length = 2 ** math.ceil(math.log2(size))
    generator = torch.Generator().manual_seed(seed)
    signs = (torch.randint(2, (length,), generator=generator, dtype=torch.int8) * 2 - 1).double()
    order = torch.randperm(length, generator=generator, dtype=torch.int32).long()
    normal = torch.randn(length, generator=generator).double()
    padded = torch.zeros(length, dtype=torch.float64)
    number = min(length, len(z))
    padded[:number] = z[:number]
    matrix = hadamard(length)
    product = matrix @ torch.diag(normal) @ torch.eye(length).double()[order] @ matrix @ torch.diag(signs) @ padded
    return product[:size] / (math.sqrt(length * float((normal**2).sum())) * math.sqrt(size / length))


@pytest.mark.parametrize(("size", "width"), [(16, 5), (12, 5), (16, 16), (6, 20), (1, 3)])
def test_fastfood_is_its_formula_padded_or_cropped(size, width):
    z = torch.randn(width, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    torch.testing.assert_close(Fastfood(size, 7)(z), explicit(size, 7, z), rtol=1e-12, atol=1e-12)
    assert not torch.allclose(Fastfood(size, 8)(z), explicit(size, 7, z)) or size == 1


def test_the_subspace_depends_on_the_seed_and_not_on_the_precision(model):
    def weights(seed: int, dtype: torch.dtype) -> Tensor:
        delta = build(DID, model, seed).to(dtype)
        assert isinstance(delta, IntrinsicDelta)
        with torch.no_grad():
            delta.z += torch.linspace(-1, 1, 80)
        return torch.cat([tensor.detach().flatten() for tensor in delta.weights().values()])

    single, double = weights(0, torch.float32), weights(0, torch.float64)
    torch.testing.assert_close(single.double(), double, rtol=0, atol=rounding(double, terms=int(DID.width)))
    assert not torch.allclose(weights(0, torch.float64), weights(1, torch.float64), atol=1e-2)


def test_tensors_of_one_size_have_subspaces_of_their_own(model):
    delta = nudged(build(DID, model), 0.1)
    frozen = dict(model.named_parameters())
    changes = [tensor - frozen[name] for name, tensor in delta.weights().items() if tensor.shape == (16, 16)]
    assert len(changes) >= 8
    assert all(not torch.allclose(changes[0], other, atol=1e-3) for other in changes[1:])


def test_per_tensor_subspace_scales_each_change_by_its_factor(model):
    frozen = dict(model.named_parameters())
    delta = build(SAID, model)
    assert isinstance(delta, IntrinsicDelta)
    assert delta.factors is not None
    with torch.no_grad():
        delta.z += torch.linspace(-1, 1, delta.z.numel())
        single = {name: tensor - frozen[name] for name, tensor in delta.weights().items()}
        delta.factors.copy_(torch.arange(1, len(frozen) + 1))
        for number, (name, tensor) in enumerate(delta.weights().items(), 1):
            torch.testing.assert_close(tensor - frozen[name], number * single[name], rtol=0, atol=1e-12)


# ---- diff pruning


def sparse(width: int = 3) -> SparseDelta:
    frozen = {"a": torch.zeros(2, 3, dtype=torch.float64), "b": torch.zeros(4, dtype=torch.float64)}
    delta = build_whole(Sparse(width=width), frozen, torch.Generator()).double()
    assert isinstance(delta, SparseDelta)
    return delta


def change_of(delta: SparseDelta) -> Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in delta.weights().values()])


@pytest.mark.parametrize("alpha", [-2.0, 0.0, 1.0, 5.0])
def test_gates_open_with_their_probability_and_have_their_mean(alpha):
    """P(z > 0) = sigmoid(alpha); the mean is an integral over u, here by the midpoint rule."""
    number = 200_000
    noise = torch.rand(number, generator=torch.Generator().manual_seed(0))
    gates = hard_concrete(torch.full((number,), alpha, dtype=torch.float64), noise)
    assert float((gates > 0).double().mean()) == pytest.approx(1 / (1 + math.exp(-alpha)), abs=0.005)
    middle = (torch.arange(number, dtype=torch.float64) + 0.5) / number
    stretched = 3 / (1 + (1 - middle) / middle * math.exp(-alpha)) - 1.5
    assert float(gates.mean()) == pytest.approx(float(stretched.clamp(0, 1).mean()), abs=0.005)
    assert float(gates.min()) >= 0
    assert float(gates.max()) <= 1


def test_gates_without_noise_are_a_clipped_sigmoid():
    alpha = torch.tensor([-1.0, 0.0, 0.5, 5.0], dtype=torch.float64)
    expected = [0.0, 0.0, 3 / (1 + math.exp(-0.5)) - 1.5, 1.0]
    assert hard_concrete(alpha, None).tolist() == pytest.approx(expected, abs=1e-15)


def test_a_change_is_gated_by_its_own_and_its_tensor_s_gate():
    delta = sparse()
    with torch.no_grad():
        delta.change.copy_(torch.arange(1, 11))
        delta.alpha.copy_(torch.linspace(-0.5, 0.5, 10))
        delta.tensor_alpha.copy_(torch.tensor([0.3, 0.2]))
    own = hard_concrete(delta.alpha, None)
    tensors = hard_concrete(delta.tensor_alpha, None)[[0] * 6 + [1] * 4]
    torch.testing.assert_close(change_of(delta), (delta.change * own * tensors).detach(), rtol=1e-14, atol=0)


def test_the_penalty_is_the_expected_number_of_changed_weights():
    delta = sparse()
    with torch.no_grad():
        delta.alpha.copy_(torch.linspace(-2, 3, 10))
        delta.tensor_alpha.copy_(torch.tensor([0.5, -1.0]))
    penalty = float(delta.penalty().detach())
    own = torch.sigmoid(delta.alpha).tolist()
    tensors = torch.sigmoid(delta.tensor_alpha).tolist()
    expected = 1.25e-7 * sum(one * tensors[place >= 6] for place, one in enumerate(own))
    assert penalty == pytest.approx(expected, rel=1e-12)
    noise = torch.rand(40_000, 10, generator=torch.Generator().manual_seed(0))
    shared = torch.rand(40_000, 2, generator=torch.Generator().manual_seed(1))[:, [0] * 6 + [1] * 4]
    spread = delta.tensor_alpha[[0] * 6 + [1] * 4]
    products = hard_concrete(delta.alpha.expand_as(noise), noise) * hard_concrete(spread.expand_as(shared), shared)
    changed = float((products > 0).double().sum(dim=1).mean().detach())
    assert penalty == pytest.approx(1.25e-7 * changed, rel=0.01)


def test_gates_are_random_in_training_steps_only_and_by_their_seed():
    delta = sparse()
    with torch.no_grad():
        delta.change.fill_(1)
        delta.alpha.fill_(0.5)
    still = change_of(delta)
    delta.before_step(11)
    first = change_of(delta)
    assert torch.equal(change_of(delta), first)
    assert not torch.equal(first, still)
    delta.before_step(12)
    assert not torch.equal(change_of(delta), first)
    delta.eval()
    assert torch.equal(change_of(delta), still)
    delta.train()
    delta.before_step(11)
    assert torch.equal(change_of(delta), first)


@pytest.mark.parametrize(("steps", "half"), [(8, 4), (7, 4), (1, 1)])
def test_half_way_the_largest_changes_are_kept(steps, half):
    delta = sparse(width=3)
    with torch.no_grad():
        delta.change.copy_(torch.tensor([1, -9, 2, 3, -4, 8, -6, 7, 0.5, 100]))
        delta.alpha[9] = -5  # its gate is closed: a large change that does not count
        delta.alpha[[1, 5, 7]] = torch.tensor([0.1, 1.0, 0.9], dtype=torch.float64)  # partly open
    before = change_of(delta)
    delta.before_step(3)
    for done in range(1, half):
        assert not delta.after_step(done, steps)
    assert bool(delta.penalty() > 0)
    assert delta.after_step(half, steps)
    assert not any(delta.after_step(done, steps) for done in range(half, steps + 1))
    expected = torch.zeros(10, dtype=torch.float64)
    expected[[5, 6, 7]] = before[[5, 6, 7]]
    for _ in range(2):
        assert torch.equal(change_of(delta), expected)
        delta.eval()
    assert float(delta.penalty()) == 0
    places, values = delta.kept()
    assert places.tolist() == [5, 6, 7]
    assert torch.equal(values, expected[5:8])


def test_only_kept_changes_are_trained_on():
    delta = sparse(width=2)
    with torch.no_grad():
        delta.change.copy_(torch.arange(10))
    delta.after_step(1, 1)
    optimizer = torch.optim.AdamW(delta.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        sum(tensor.square().sum() for tensor in delta.weights().values()).backward()  # type: ignore[union-attr]
        optimizer.step()
    change = change_of(delta)
    assert int((change != 0).sum()) == 2
    assert float(change[8]) == pytest.approx(7.5, abs=0.1)
    assert bool((delta.alpha == 5).all())


def test_ties_do_not_change_how_many_are_kept():
    delta = sparse(width=4)
    delta.after_step(1, 1)
    assert len(delta.kept()[0]) == 4
