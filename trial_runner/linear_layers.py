"""Linear layers of a backbone, for any storage of their weights: plain, transposed (GPT-2), or quantised.

Shapes: `D_in` inputs, `D_out` outputs.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from trial_runner.errors import BackboneError

_INT8_MOST = 127
_NF4_BLOCK = 64
"""Number of weights that share a scale; the default of bitsandbytes and transformers."""
INT4_GROUP = 32
"""Number of weights of a row that share a scale."""
_INT4_LEAST = -8


def dense_weight(layer: nn.Module) -> Tensor:
    """Return the matrix ``(D_in, D_out)`` of a linear layer ``z W + b``, detached; dequantised if it is quantised.

    Raises:
        BackboneError: If it is no linear layer.
    """
    if isinstance(layer, QuantizedLinear):
        return layer.dense().T
    weight = layer.weight
    if not isinstance(weight, Tensor) or weight.dim() != 2:
        raise BackboneError(f"a linear layer must have a matrix; {type(layer).__name__} has none. This is a bug.")
    return weight.detach().T if isinstance(layer, nn.Linear) else weight.detach()


class QuantizedLinear(nn.Module):
    """Frozen linear layer whose weights are codes and scales; its products are those of the dense weights.

    Rows are computed independently: only the weights are rounded. Gradients flow to the input, for which the weights
    are dequantised again.

    Args:
        codes: Codes: int8 ``(D_out, D_in)``; for 4 bits two per byte, in any shape for nf4.
        scales: Scales: one per row for int8, one per 64 numbers for nf4, ``(D_out, D_in / 32)`` for int4.
        shape: ``(D_out, D_in)``.
        dtype: Type of the dense weights.
        bias: ``(D_out,)``, or None.
        replaced_class: Class of the layer before it was quantised.
    """

    codes: Tensor
    scales: Tensor

    def __init__(
        self,
        *,
        codes: Tensor,
        scales: Tensor,
        shape: tuple[int, int],
        dtype: torch.dtype,
        bias: nn.Parameter | None,
        replaced_class: type[nn.Module] = nn.Linear,
    ) -> None:
        """Keep references to the tensors, without copies."""
        super().__init__()
        self.out_features, self.in_features = shape
        self.dtype = dtype
        self.replaced_class = replaced_class
        self.register_buffer("codes", codes)
        self.register_buffer("scales", scales)
        self.bias = bias

    @property
    def kind(self) -> str:
        """Kind of the codes, by their dtype and the shape of the scales."""
        if self.codes.dtype == torch.int8:
            return "int8"
        return "int4" if self.scales.dim() == 2 else "nf4"

    @property
    def weight(self) -> Tensor:
        """Dense weights ``(D_out, D_in)``, computed on each access; writes to them have no effect."""
        return self.dense()

    @torch.no_grad()
    def dense(self) -> Tensor:
        """Dequantise the weights, ``(D_out, D_in)``."""
        if self.kind == "int8":
            return (self.codes * (self.scales.float() / _INT8_MOST).unsqueeze(1)).to(self.dtype)
        if self.kind == "int4":
            codes = torch.stack([self.codes & 15, self.codes >> 4], dim=-1).view(*self.scales.shape, INT4_GROUP)
            groups = (codes.to(self.dtype) + _INT4_LEAST).mul_(self.scales.to(self.dtype).unsqueeze(-1))
            return groups.view(self.out_features, self.in_features)
        # in whole blocks: on some processors bitsandbytes gives scales of other blocks to rows that end within one
        numbers, blocks = self.out_features * self.in_features, len(self.scales)
        codes = self.codes.flatten()
        if spare := blocks * _NF4_BLOCK // 2 - len(codes):
            codes = nn.functional.pad(codes, (0, spare))
        dense: Tensor = torch.ops.bitsandbytes.dequantize_4bit(
            codes, self.scales.float(), _NF4_BLOCK, "nf4", [blocks, _NF4_BLOCK], self.dtype
        )
        return dense.flatten()[:numbers].view(self.out_features, self.in_features)

    def forward(self, given: Tensor) -> Tensor:
        """Map ``(..., D_in)`` to ``(..., D_out)``, in the dtype of autocast, else of the input."""
        found = self.product(given)
        return found if self.bias is None else found + self.bias.to(found.dtype)

    def product(self, given: Tensor, outputs: slice = slice(None)) -> Tensor:
        """Return the product without the bias.

        Args:
            given: Input, ``(..., D_in)``.
            outputs: Slice of the outputs to compute.
        """
        kind = given.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else given.dtype
        found: Tensor = _Product.apply(given.to(dtype), self, outputs)  # type: ignore[no-untyped-call]
        return found


class _Product(torch.autograd.Function):
    """Product ``x W'`` that does not keep the dense weights for the gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(given: Tensor, layer: QuantizedLinear, outputs: slice) -> Tensor:
        return nn.functional.linear(given, layer.dense()[outputs].to(given.dtype))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, ctx.layer, ctx.outputs = inputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None]:
        (gradient,) = gradients
        return gradient @ ctx.layer.dense()[ctx.outputs].to(gradient.dtype), None, None


def quantize_on_meta(model: nn.Module, kind: str, dtype: torch.dtype) -> None:
    """Replace the layers that transformers would quantise by quantised layers on the ``meta`` device.

    Args:
        model: Model on the device ``meta``.
        kind: ``nf4``, ``int8`` or ``int4``.
        dtype: Type of weights that are not quantised.

    Raises:
        BackboneError: If a layer cannot be quantised so, or none can.
    """
    from transformers.pytorch_utils import Conv1D
    from transformers.quantizers.base import HfQuantizer
    from transformers.quantizers.quantizers_utils import should_convert_module

    some: Any = model
    left = HfQuantizer.get_modules_to_not_convert(some, None, some._keep_in_fp32_modules)
    classes = (nn.Linear,) if kind == "int4" else (nn.Linear, Conv1D)
    found = [(name, one) for name, one in model.named_modules() if type(one) in classes]
    found = [(name, one) for name, one in found if should_convert_module(name, left)]
    for name, layer in found:
        columns, rows = dense_weight(layer).shape
        if kind == "int4" and columns % INT4_GROUP:
            raise BackboneError(
                f"layers must read whole groups of {INT4_GROUP} numbers to be held in int4; {name} reads "
                f"{columns}. Take backbone.quantization: nf4."
            )
        bias: Any = layer.bias
        with torch.device("meta"):
            codes, scales = _empty_codes(kind, rows, columns, dtype)
        shape = (rows, columns)
        held = QuantizedLinear(codes=codes, scales=scales, shape=shape, dtype=torch.float32, bias=bias)
        model.set_submodule(name, held)
    if not found:
        raise no_layers(kind)


def _empty_codes(kind: str, rows: int, columns: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return codes and scales of a layer."""
    numbers = rows * columns
    if kind == "int8":
        return torch.empty((rows, columns), dtype=torch.int8), torch.empty(rows)
    if kind == "nf4":
        return torch.empty((-(-numbers // 2), 1), dtype=torch.uint8), torch.empty(-(-numbers // _NF4_BLOCK))
    codes = torch.empty((rows, columns // 2), dtype=torch.uint8)
    return codes, torch.empty((rows, columns // INT4_GROUP), dtype=dtype)


def no_layers(kind: str) -> BackboneError:
    """Return the error of a model in which no layer can be quantised."""
    return BackboneError(
        f"a backbone must have linear layers of torch to be held in {kind}; it has none. "
        "Take backbone.quantization: nf4."
    )


def hold_quantized(model: nn.Module, *, keeps: bool = True) -> dict[str, nn.Module]:
    """Replace every layer of bitsandbytes or torchao by a `QuantizedLinear`.

    Codes and scales are shared, except those of int4, of which torchao stores one per byte.

    Args:
        model: Model, changed in place.
        keeps: Whether the replaced layers are returned; else each is released before the next is replaced.

    Returns:
        The replaced layers by name.
    """
    before: dict[str, nn.Module] = {}
    for name in [name for name, one in model.named_modules() if _kind_of(one) is not None]:
        layer = model.get_submodule(name)
        kind = _kind_of(layer)
        if keeps:
            before[name] = layer
        if kind is not None:
            model.set_submodule(name, _TAKEN_OVER[kind](layer))
    return before


def _kind_of(layer: nn.Module) -> str | None:
    """Return the class or library of a quantised layer, without importing any library; None for other layers."""
    if type(layer) is nn.Linear:
        return "torchao" if type(layer.weight).__module__.startswith("torchao.") else None
    is_of_4_or_8 = type(layer).__module__ == "bitsandbytes.nn.modules" and type(layer).__name__ in _TAKEN_OVER
    return type(layer).__name__ if is_of_4_or_8 else None


def _of_integers(layer: Any) -> QuantizedLinear:
    weight = layer.weight
    wanted = (torch.int4, (1, INT4_GROUP), None)  # type: ignore[attr-defined]
    names = ("target_dtype", "block_size", "activation_quantization")
    got = tuple(getattr(weight, name, None) for name in names)
    if got != wanted or weight.zero_point.any():
        raise BackboneError(
            f"weights of torchao must be int4 in groups of {INT4_GROUP} without zero points; got "
            f"{type(weight).__name__} of {got[0]}, {got[1]}. Load the model as it was before it was quantised."
        )
    codes = (weight.qdata - _INT4_LEAST).to(torch.uint8)
    return QuantizedLinear(
        codes=codes[:, ::2] | codes[:, 1::2] << 4,
        scales=weight.scale,
        shape=(layer.out_features, layer.in_features),
        dtype=weight.dtype,
        bias=layer.bias,
    )


def _of_4_bits(layer: Any) -> QuantizedLinear:
    state = layer.weight.quant_state
    if state.nested or state.blocksize != _NF4_BLOCK or state.quant_type != "nf4":
        raise BackboneError(
            f"weights of 4 bits must be nf4 in blocks of {_NF4_BLOCK} with plain scales; got {state.quant_type} in "
            f"blocks of {state.blocksize}. Load the model as it was before it was quantised."
        )
    return _of_bitsandbytes(layer, state.absmax, state.dtype)


def _of_8_bits(layer: Any) -> QuantizedLinear:
    # the scales are elsewhere once it has computed
    return _of_bitsandbytes(layer, layer.state.SCB if layer.weight.SCB is None else layer.weight.SCB, torch.float32)


def _of_bitsandbytes(layer: Any, scales: Tensor, dtype: torch.dtype) -> QuantizedLinear:
    shape, codes = (layer.out_features, layer.in_features), layer.weight.data
    return QuantizedLinear(
        codes=codes, scales=scales, shape=shape, dtype=dtype, bias=layer.bias, replaced_class=layer.source_cls
    )


_TAKEN_OVER: dict[str, Callable[[Any], QuantizedLinear]] = {
    "Linear4bit": _of_4_bits,
    "Linear8bitLt": _of_8_bits,
    "torchao": _of_integers,
}


def hold_dense(model: nn.Module) -> None:
    """Replace every quantised layer by the layer it stood for, with its dense weights."""
    found = [(name, one) for name, one in model.named_modules() if isinstance(one, QuantizedLinear)]
    for name, layer in found:
        weight = layer.dense()
        plain: Any
        with torch.device("meta"):
            if layer.replaced_class is nn.Linear:
                plain = nn.Linear(layer.in_features, layer.out_features, bias=False)
            else:  # the Conv1D of transformers
                plain, weight = layer.replaced_class(layer.out_features, layer.in_features), weight.T.contiguous()
        plain.weight, plain.bias = nn.Parameter(weight, requires_grad=False), layer.bias
        model.set_submodule(name, plain)
    config: Any = getattr(model, "config", None)
    if found and hasattr(config, "quantization_config"):
        del config.quantization_config


def frozen_weights(model: nn.Module) -> dict[str, Tensor | QuantizedLinear]:
    """Return the parameters of a model by name; for quantised ones, the layers that hold them."""
    layers = {f"{name}.weight": one for name, one in model.named_modules() if isinstance(one, QuantizedLinear)}
    return {**dict(model.named_parameters()), **layers}


def products_of(model: nn.Module) -> Iterator[nn.Linear]:
    """Yield the linear layers of a model that share no weights with an embedding."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    yield from (one for one in model.modules() if isinstance(one, nn.Linear) and id(one.weight) not in tables)


def held_bytes(model: nn.Module) -> int:
    """Return the bytes of the weights of a model, codes and scales included."""
    quantized = [one for one in model.modules() if isinstance(one, QuantizedLinear)]
    tensors = dict.fromkeys([*model.parameters(), *(held for one in quantized for held in one.buffers())])
    return sum(one.numel() * one.element_size() for one in tensors)
