"""The linear layers of a backbone, however they hold their weights: plain, transposed (GPT-2), or quantised.

Shapes: `D_in` numbers in, `D_out` numbers out.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from trial_runner.errors import BackboneError

_INT8_MOST = 127
_NF4_BLOCK = 64
"""Weights that share a scale; what bitsandbytes and transformers take where nobody says otherwise."""


def dense_weight(layer: nn.Module) -> Tensor:
    """The matrix ``(D_in, D_out)`` of a linear layer ``z W + b``, detached; of a quantised one what it computes with.

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
    """A frozen linear layer whose weights are codes and scales; its products are those of the dense weights.

    Rows do not know of each other: no numbers but the weights are rounded. Gradients go to what it reads, and what they
    need is made dense again.

    Args:
        codes: ``(D_out, D_in)`` in int8, or two of 4 bits a byte in any shape.
        scales: In float32: one of each row, or of each 64 numbers.
        shape: ``(D_out, D_in)``.
        dtype: Of the dense weights.
        bias: ``(D_out,)``, or None.
        stood_for: The class of the layer before it was quantised.
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
        stood_for: type[nn.Module] = nn.Linear,
    ) -> None:
        """Hold what it is given, without a copy."""
        super().__init__()
        self.out_features, self.in_features = shape
        self.dtype = dtype
        self.stood_for = stood_for
        self.register_buffer("codes", codes)
        self.register_buffer("scales", scales)
        self.bias = bias

    @property
    def weight(self) -> Tensor:
        """The dense weights ``(D_out, D_in)``, anew each time; writing to them changes nothing."""
        return self.dense()

    @torch.no_grad()
    def dense(self) -> Tensor:
        """The dense weights, ``(D_out, D_in)``."""
        if self.codes.dtype == torch.int8:
            return (self.codes * (self.scales.float() / _INT8_MOST).unsqueeze(1)).to(self.dtype)
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
        """``(..., D_in)`` to ``(..., D_out)``, in the dtype of autocast, else of what is given."""
        kind = given.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else given.dtype
        found: Tensor = _Product.apply(given.to(dtype), self)  # type: ignore[no-untyped-call]
        return found if self.bias is None else found + self.bias.to(dtype)

    def extra_repr(self) -> str:
        """As of any linear layer."""
        return f"in_features={self.in_features}, out_features={self.out_features}, codes={self.codes.dtype}"


class _Product(torch.autograd.Function):
    """``x W'`` without keeping the dense weights for the gradient."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, layer: QuantizedLinear) -> Tensor:
        ctx.layer = layer
        return nn.functional.linear(given, layer.dense().to(given.dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        (gradient,) = gradients
        return gradient @ ctx.layer.dense().to(gradient.dtype), None


def imagine_quantized(model: nn.Module, quantization: str) -> None:
    """Put quantised layers without weights where transformers would quantise, in a model on the device ``meta``."""
    from transformers.pytorch_utils import Conv1D
    from transformers.quantizers.base import HfQuantizer
    from transformers.quantizers.quantizers_utils import should_convert_module

    some: Any = model
    left = HfQuantizer.get_modules_to_not_convert(some, None, some._keep_in_fp32_modules)
    found = [(name, one) for name, one in model.named_modules() if type(one) in (nn.Linear, Conv1D)]
    for name, layer in found:
        if not should_convert_module(name, left):
            continue
        columns, rows = dense_weight(layer).shape
        of_8_bits, numbers = quantization == "int8", rows * columns
        with torch.device("meta"):
            codes = torch.empty((rows, columns) if of_8_bits else (-(-numbers // 2), 1), dtype=torch.uint8)
            scales = torch.empty(rows if of_8_bits else -(-numbers // _NF4_BLOCK), dtype=torch.float32)
        bias: Any = layer.bias
        quantized = QuantizedLinear(
            codes=codes.to(torch.int8) if of_8_bits else codes,
            scales=scales,
            shape=(rows, columns),
            dtype=torch.float32,
            bias=bias,
        )
        model.set_submodule(name, quantized)


def hold_quantized(model: nn.Module) -> dict[str, nn.Module]:
    """Put a `QuantizedLinear` in the place of every layer of bitsandbytes; codes and scales stay where they are.

    Returns:
        The layers of bitsandbytes, each with its name.
    """
    from bitsandbytes.nn.modules import Linear4bit, Linear8bitLt

    kinds: dict[type[nn.Module], Callable[[Any], QuantizedLinear]] = {
        Linear4bit: _of_4_bits,
        Linear8bitLt: _of_8_bits,
    }
    before = {name: one for name, one in model.named_modules() if type(one) in kinds}
    for name, layer in before.items():
        model.set_submodule(name, kinds[type(layer)](layer))
    return before


def _of_4_bits(layer: Any) -> QuantizedLinear:
    state = layer.weight.quant_state
    if state.nested or state.blocksize != _NF4_BLOCK or state.quant_type != "nf4":
        raise BackboneError(
            f"weights of 4 bits must be nf4 in blocks of {_NF4_BLOCK} with plain scales; got {state.quant_type} in "
            f"blocks of {state.blocksize}. Load the model as it was before it was quantised."
        )
    shape = (layer.out_features, layer.in_features)
    return QuantizedLinear(
        codes=layer.weight.data,
        scales=state.absmax,
        shape=shape,
        dtype=state.dtype,
        bias=layer.bias,
        stood_for=layer.source_cls,
    )


def _of_8_bits(layer: Any) -> QuantizedLinear:
    weight = layer.weight
    scales = layer.state.SCB if weight.SCB is None else weight.SCB  # where they are once it has computed
    shape = (layer.out_features, layer.in_features)
    return QuantizedLinear(
        codes=weight.data,
        scales=scales,
        shape=shape,
        dtype=torch.float32,
        bias=layer.bias,
        stood_for=layer.source_cls,
    )


def hold_dense(model: nn.Module) -> None:
    """Put the layer that it stood for, with its dense weights, in the place of every quantised one."""
    found = [(name, one) for name, one in model.named_modules() if isinstance(one, QuantizedLinear)]
    for name, layer in found:
        weight = layer.dense()
        plain: Any
        with torch.device("meta"):
            if layer.stood_for is nn.Linear:
                plain = nn.Linear(layer.in_features, layer.out_features, bias=False)
            else:  # the Conv1D of transformers
                plain, weight = layer.stood_for(layer.out_features, layer.in_features), weight.T.contiguous()
        plain.weight, plain.bias = nn.Parameter(weight, requires_grad=False), layer.bias
        model.set_submodule(name, plain)
    config: Any = getattr(model, "config", None)
    if found and hasattr(config, "quantization_config"):
        del config.quantization_config


def products_of(model: nn.Module) -> Iterator[nn.Linear]:
    """The linear layers of a model whose weights are nothing else, as that of a head may be the embedding."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    yield from (one for one in model.modules() if isinstance(one, nn.Linear) and id(one.weight) not in tables)


def held_bytes(model: nn.Module) -> int:
    """What the weights of a model take, codes and scales among them."""
    quantized = [one for one in model.modules() if isinstance(one, QuantizedLinear)]
    tensors = dict.fromkeys([*model.parameters(), *(held for one in quantized for held in one.buffers())])
    return sum(one.numel() * one.element_size() for one in tensors)
