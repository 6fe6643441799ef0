"""Prompts on a frozen backbone: trained rows before the embedded input, as tokens of every layer.

Encoders and encoder-decoders give prompts no position and no token type, and the real tokens keep theirs (released code
of He et al. 2022); in decoders they take the first positions and the real tokens follow. The output of encoders and
decoders has the rows of the real tokens only; a decoder that attends to an encoder sees the prompts' rows, too.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from search_space.backbone_shape import BackboneShape
from search_space.dimensions import StackKind
from search_space.families import PortTable
from trial_runner.prompts import PromptDelta

__all__ = ["PromptHooks"]

Arguments = dict[str, Any]


class PromptHooks:
    """The hooks that put a prompt before the input of a base model, and take its rows away again.

    Args:
        model: The base model.
        table: Where its embeddings are.
        shape: Its sizes.
        prompt: The prompt of the moment; None leaves the model as it is.
    """

    def __init__(
        self, model: nn.Module, table: PortTable, shape: BackboneShape, prompt: Callable[[], PromptDelta | None]
    ) -> None:
        """Put the hooks on."""
        self._prompt = prompt
        self._embeddings = model.get_submodule(table.embeddings)
        self._rows_before = self._tokens = 0  # of the forward pass that is running
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        stack = model.get_submodule("encoder") if shape.kind is StackKind.ENCODER_DECODER else model
        self._scale = float(getattr(stack, "embed_scale", 1.0))
        self._on_arguments(stack, self._insert)
        if shape.kind is StackKind.ENCODER_DECODER:
            self._on_arguments(model.get_submodule("decoder"), self._widen_cross_mask)
            self._handles.append(stack.register_forward_hook(self._forget))
        else:
            self._handles.append(stack.register_forward_hook(self._take_away))
        if table.positions is not None:
            positions = model.get_submodule(table.positions)
            self._handles.append(positions.register_forward_pre_hook(self._of_the_tokens))
            self._handles.append(positions.register_forward_hook(self._pad))
        self._has_token_types = table.token_types is not None
        if table.token_types is not None:
            self._handles.append(model.get_submodule(table.token_types).register_forward_hook(self._blank))

    def remove(self) -> None:
        """Take every hook off."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _on_arguments(self, module: nn.Module, change: Callable[[Arguments], Arguments]) -> None:
        """Let ``change`` see all arguments of a module's calls by name."""
        signature = inspect.signature(module.forward)
        rest = next((one.name for one in signature.parameters.values() if one.kind is one.VAR_KEYWORD), None)

        def before(_: nn.Module, positional: tuple[Any, ...], named: Arguments) -> tuple[tuple[Any, ...], Arguments]:
            if self._prompt() is None:
                return positional, named
            arguments = dict(signature.bind(*positional, **named).arguments)
            arguments |= arguments.pop(rest, {}) if rest is not None else {}
            return (), change(arguments)

        self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))

    def _insert(self, arguments: Arguments) -> Arguments:
        prompt = self._prompt()
        if prompt is None:
            return arguments
        rows = prompt.rows()  # (l, D)
        length = rows.shape[0]
        cache = arguments.get("past_key_values")
        is_first = cache is None or cache.get_seq_length() == 0
        if arguments.get("attention_mask") is not None:
            arguments["attention_mask"] = _before(arguments["attention_mask"], length, 1)
        if arguments.get("position_ids") is not None:
            arguments["position_ids"] = _shifted(arguments["position_ids"], length, with_rows=is_first)
        if not is_first:
            return arguments
        embedded = arguments.pop("inputs_embeds", None)
        tokens = arguments.pop("input_ids", None)
        if embedded is None:
            embedded = self._embeddings(tokens) * self._scale if self._scale != 1 else self._embeddings(tokens)
        head = rows.to(embedded.dtype).expand(embedded.shape[0], -1, -1)
        arguments["inputs_embeds"] = torch.cat([head, embedded], dim=1)  # (B, l+T, D)
        if self._has_token_types:
            # given even where nobody asked for them: an encoder's own default ends at its last position
            types = arguments.get("token_type_ids")
            types = torch.zeros(embedded.shape[:2], dtype=torch.long, device=rows.device) if types is None else types
            arguments["token_type_ids"] = _before(types, length, 0)
        self._rows_before, self._tokens = length, embedded.shape[1]
        return arguments

    def _widen_cross_mask(self, arguments: Arguments) -> Arguments:
        prompt = self._prompt()
        if prompt is not None and arguments.get("encoder_attention_mask") is not None:
            mask = arguments["encoder_attention_mask"]
            arguments["encoder_attention_mask"] = _before(mask, prompt.length, 1)
        return arguments

    def _of_the_tokens(self, _: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Positions are looked up for the real tokens alone, by indices or by a shape."""
        if not self._rows_before:
            return arguments
        first = arguments[0]
        if isinstance(first, torch.Size):
            return (torch.Size([*first[:-1], self._tokens]), *arguments[1:])
        return (first[..., : self._tokens], *arguments[1:])

    def _pad(self, _: nn.Module, __: tuple[Any, ...], output: Tensor) -> Tensor:
        """No position for the prompts."""
        length = self._rows_before
        if not length:
            return output
        return torch.cat([output.new_zeros(*output.shape[:-2], length, output.shape[-1]), output], dim=-2)

    def _blank(self, _: nn.Module, __: tuple[Any, ...], output: Tensor) -> Tensor:
        """No token type for the prompts."""
        length = self._rows_before
        if not length:
            return output
        return torch.cat([torch.zeros_like(output[..., :length, :]), output[..., length:, :]], dim=-2)

    def _forget(self, _: nn.Module, __: tuple[Any, ...], ___: Any) -> None:
        self._rows_before = 0

    def _take_away(self, _: nn.Module, __: tuple[Any, ...], output: Any) -> Any:
        length, self._rows_before = self._rows_before, 0
        if length:
            output.last_hidden_state = output.last_hidden_state[:, length:]  # (B, T, D)
        return output


def _before(tensor: Tensor, length: int, value: int) -> Tensor:
    """``(B, T)`` with ``length`` columns of a value before it."""
    return torch.cat([tensor.new_full((tensor.shape[0], length), value), tensor], dim=1)


def _shifted(positions: Tensor, length: int, *, with_rows: bool) -> Tensor:
    """Position ids ``(B, T)`` of tokens that follow a prompt, with those of the prompt itself if it is inserted."""
    moved = positions + length
    if not with_rows:
        return moved
    own = torch.arange(length, device=positions.device, dtype=positions.dtype).expand(positions.shape[0], -1)
    return torch.cat([own, moved], dim=1)
