"""Properties of every configuration on every backbone. Each is a function that raises if it is violated."""

from collections.abc import Callable
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor
from torch.overrides import TorchFunctionMode

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Port
from search_space.edit import Edit
from search_space.edit_protocol import sublayers_of
from search_space.forms import Bottleneck, Constant, OwnNorm
from search_space.forms.form import Form
from search_space.gates import (
    ConvexGate,
    ConvexInducerGate,
    ConvexSampleGate,
    Prepend,
    SigmoidGate,
    WeightedGate,
)
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.errors import EditPropertyError
from trial_runner.port_discovery.rig import Rig


class in_double(TorchFunctionMode):  # noqa: N801 - read as a verb: with in_double()
    """Context in which no tensor of float64 is converted to float32."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Convert no float64 tensor; see `torch.overrides`."""
        kwargs = kwargs or {}
        first = args[0] if args else None
        if isinstance(first, Tensor) and first.dtype == torch.float64:
            asked = (*args[1:], *kwargs.values())
            if func is Tensor.float or (func is Tensor.to and torch.float32 in asked):
                return first
        return func(*args, **kwargs)


_SEED = 3
_RATE = 0.05
_STEPS = 3
_NO_GRADIENT = 1e-12
_SAME = 1e-9
_FELT = 1e-12
_PLACES = 6


def build(rig: Rig, configuration: Configuration, *, dtype: torch.dtype = torch.float64) -> DeltaSet:
    """Build the modules of a configuration on a backbone, without any randomness in training."""
    deltas = DeltaSet(configuration, rig.backbone.shape, seed=_SEED, dtype=dtype, frozen=rig.weights())
    return deltas.eval()


def moved(deltas: DeltaSet, *, seed: int = 1, by: float = 0.3) -> DeltaSet:
    """Move every parameter of the deltas, so that no zero hides a wrong path; return the same deltas."""
    generator = torch.Generator().manual_seed(seed)
    is_whole = deltas.whole is not None
    with torch.no_grad():
        for parameter in deltas.parameters():
            # larger biases would switch ReLU units off, and larger changes of all weights saturate everything
            deviation = by if parameter.dim() > 1 and not is_whole else by / 10
            parameter.add_(deviation * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return deltas


def is_identity_at_start(edit: Edit) -> bool:
    """Return whether an edit leaves the frozen model unchanged at the start of training, bit for bit."""
    if edit.gate.multiplies or edit.gate.starts_closed:
        return True
    if isinstance(edit.gate, ConvexGate | ConvexSampleGate | WeightedGate | ConvexInducerGate | Prepend):
        return False  # the convex inducer shrinks what is there, whatever it adds
    return edit.form.starts_at_zero


def may_be_silent(form: Form) -> bool:
    """Return whether a form is a ReLU without biases: by chance its output may be 0 for all tokens."""
    return isinstance(form, Bottleneck) and form.activation is Activation.RELU and not form.bias


def is_inert(configuration: Configuration, name: str, shape: BackboneShape) -> bool:
    """Return whether a parameter has no effect, by V12.

    If positions do not act on the keys and no trained key is present, a constant at k moves all logits of a query
    equally. Then neither a constant there nor a bias that ends a form has an effect.

    Args:
        configuration: All edits.
        name: Name of the parameter.
        shape: Shape of the backbone.
    """
    _, module, *path = name.split(".")
    index = module.split("_")[0]
    if module.startswith(f"{index}_stack") or shape.positions.multiply_keys:
        return False
    edit = configuration.edits[int(index)]
    if edit.write is not Port.K or isinstance(edit.gate, SigmoidGate):
        return False
    here = set(sublayers_of(edit, shape))
    if any(other.gate.logits is not None and here & set(sublayers_of(other, shape)) for other in configuration.edits):
        return False
    if isinstance(edit.form, Constant):
        return True
    is_normed = isinstance(edit.form, Bottleneck) and edit.form.norm is OwnNorm.OUTPUT
    last = ("form.output_norm.bias",) if is_normed else ("form.up_bias", "form.bias")
    return ".".join(path) in last


def check_everything(rig: Rig, configuration: Configuration) -> None:
    """Check all properties of a configuration.

    Raises:
        EditPropertyError: If one is violated.
    """
    deltas = build(rig, configuration)
    _check_start(rig, deltas)
    at_start = _check_training(rig, deltas)
    with torch.no_grad():
        there = rig.hidden(moved(deltas), rig.inputs)
        _check_reload(rig, deltas, there, at_start)
        _check_padding(rig, deltas, there)
        _check_order(rig, deltas, there)
        _require(torch.equal(rig.outputs(), rig.frozen), "without the deltas the backbone must be as before")


def _require(is_met: bool, description: str) -> None:
    if not is_met:
        raise EditPropertyError(description)


def _close(found: Tensor, expected: Tensor, description: str) -> None:
    is_same = found.shape == expected.shape and bool((found - expected).abs().max() <= _SAME)  # false where one is NaN
    _require(is_same, description)


def _check_start(rig: Rig, deltas: DeltaSet) -> None:
    """Check that the untrained deltas leave the frozen model unchanged, bit for bit, if and only if they should.

    A first change may be so small that norms, which models compute in float32, round it away.
    """
    felt = [edit for edit in deltas.configuration.edits if not is_identity_at_start(edit)]
    if felt and all(may_be_silent(edit.form) for edit in felt):
        return
    with torch.no_grad():
        if not felt:
            _require(torch.equal(rig.outputs(deltas), rig.frozen), "what starts as nothing must be the frozen model")
            return
        with in_double():
            _require(not torch.equal(rig.outputs(deltas), rig.outputs()), "what starts as something must be felt")


def _check_training(rig: Rig, deltas: DeltaSet) -> Tensor:
    """Check that a step or two of AdamW change the output, and that every parameter has a gradient from then on.

    Returns:
        Outputs before the step.
    """
    inert = _inert_names(rig, deltas)
    names = {name for name, _ in deltas.named_parameters()}
    optimizer = torch.optim.AdamW(deltas.parameters(), lr=_RATE)
    at_start = stepped = _backward(rig, deltas)
    for _ in range(_STEPS):  # behind a closed gate, a form that starts tiny is not felt after one
        optimizer.step()
        stepped = _backward(rig, deltas)
        if (stepped - at_start).abs().max() > _FELT:
            break
    _require(bool(torch.isfinite(stepped).all()), "a trained model must give numbers")
    _require(bool((stepped - at_start).abs().max() > _FELT) == (inert < names), "training must be felt")
    alive = _names_with_gradients(deltas)
    for seed in range(_PLACES):  # a unit of ReLU may be off for all tokens at one place
        if alive | inert == names:
            break
        _open_units(moved(deltas, seed=10 + seed))
        _backward(rig, deltas)
        alive |= _names_with_gradients(deltas)
    _require(not alive & inert, f"V12 must hold; it does not for {alive & inert}")
    _require(alive | inert == names, f"every parameter must have a gradient; none for {names - alive - inert}")
    return at_start


def _open_units(deltas: DeltaSet) -> None:
    with torch.no_grad():
        for name, parameter in deltas.named_parameters():
            if name.endswith("down_bias"):
                parameter.abs_()


def _inert_names(rig: Rig, deltas: DeltaSet) -> set[str]:
    shape = rig.backbone.shape
    return {name for name, _ in deltas.named_parameters() if is_inert(deltas.configuration, name, shape)}


def _backward(rig: Rig, deltas: DeltaSet) -> Tensor:
    """Compute gradients in a random direction: the sum of a normalised output would have none."""
    deltas.zero_grad()
    outputs = rig.outputs(deltas)
    direction = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(2), dtype=outputs.dtype)
    loss = (outputs * direction).sum()
    penalty = None if deltas.whole is None else deltas.whole.penalty()
    torch.autograd.backward(loss if penalty is None else loss + penalty)
    return outputs.detach()


def _names_with_gradients(deltas: DeltaSet) -> set[str]:
    return {
        name
        for name, parameter in deltas.named_parameters()
        if parameter.grad is not None and parameter.grad.abs().max() > _NO_GRADIENT
    }


def _check_reload(rig: Rig, deltas: DeltaSet, there: Tensor, at_start: Tensor) -> None:
    """Check that saved deltas give the same outputs in a set that is built anew."""
    is_felt = _inert_names(rig, deltas) < {name for name, _ in deltas.named_parameters()}
    outputs = rig.outputs_of(there, rig.inputs)
    _require(bool((outputs - at_start).abs().max() > _FELT) == is_felt, "moved parameters must be felt")
    again = build(rig, deltas.configuration)
    again.load_state_dict(load(save(deltas.state_dict())))
    _require(torch.equal(rig.hidden(again, rig.inputs), there), "what was saved must compute the same")


def _check_padding(rig: Rig, deltas: DeltaSet, there: Tensor) -> None:
    """Check that a row gives the same outputs alone and in a batch, with padding on either side."""
    alone = rig.outputs(deltas, rig.second_row())
    _close(rig.outputs_of(there, rig.inputs)[-len(alone) :], alone, "a padded row must be what it is alone")
    # a prompt stands before the padding, and windows count the padding: `FrozenModel.check_prompt`
    if rig.is_decoder and not (rig.has_windows and deltas.prompt is not None):
        left = rig.outputs(deltas, rig.padded_left())
        _close(left[-len(alone) :], alone, "a row that is padded on the left must be what it is alone")


def _check_order(rig: Rig, deltas: DeltaSet, there: Tensor) -> None:
    """Check that tokens of a decoder do not depend on later ones, and that the last token has an effect at the end."""
    if not rig.backbone.shape.decoder_layers:
        return
    other = rig.hidden(deltas, rig.with_another_end())
    _close(there[0, :-1], other[0, :-1], "a decoder must see no token that comes later")
    _require(not torch.allclose(there[0, -1], other[0, -1], rtol=0, atol=_FELT), "what comes last must be felt")
