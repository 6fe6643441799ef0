"""Prompts on a frozen backbone: trained rows before the embedded input, as tokens of every layer.

Encoders and encoder-decoders give prompts no position and no token type, and the real tokens keep theirs (released code
of He et al. 2022); in decoders, and where positions are rotations, they take the first positions and the real tokens
follow. The output of encoders and decoders has the rows of the real tokens only. A decoder that attends to an encoder
attends to the prompts' rows, too.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from search_space.backbones import PortTable
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Positions, StackKind
from trial_runner.packed.dropout import active_dropout
from trial_runner.packed.packed_prompt import PackedPrompt
from trial_runner.packed.stacks import for_examples

Arguments = dict[str, Any]


class PromptHooks:
    """Hooks that prepend a prompt to the input of a base model, and remove its rows from the output.

    Args:
        table: Ports, with the path of the embeddings.
        prompt: Function that returns the active prompts; None leaves the model as it is.
    """

    def __init__(
        self, model: nn.Module, table: PortTable, shape: BackboneShape, prompt: Callable[[], PackedPrompt | None]
    ) -> None:
        """Register the hooks."""
        self._prompt = prompt
        self._has_places = shape.kind is StackKind.DECODER or shape.positions is Positions.ROTARY
        self._embeddings = model.get_submodule(table.embeddings)
        self._rows_before = self._tokens = 0  # of the forward pass that is running
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        stack = model.get_submodule("encoder") if shape.kind is StackKind.ENCODER_DECODER else model
        self._scale = float(getattr(stack, "embed_scale", 1.0))
        self._on_arguments(stack, self._insert)
        self._is_read = shape.kind is StackKind.ENCODER_DECODER  # by the decoder, the prompts' rows among it
        if self._is_read:
            self._on_arguments(model.get_submodule("decoder"), self._widen_cross_mask)
        self._handles.append(stack.register_forward_hook(self._take_away))
        if table.positions is not None:
            positions = model.get_submodule(table.positions)
            self._handles.append(positions.register_forward_pre_hook(self._of_the_tokens))
            self._handles.append(positions.register_forward_hook(self._pad))
        self._has_token_types = table.token_types is not None
        if table.token_types is not None:
            self._handles.append(model.get_submodule(table.token_types).register_forward_hook(self._blank))

    def remove(self) -> None:
        """Remove every hook."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _on_arguments(self, module: nn.Module, change: Callable[[PackedPrompt, Arguments], Arguments]) -> None:
        """Pass the active prompts and all arguments of a module's calls, by name, to ``change``."""
        signature = inspect.signature(module.forward)
        rest = next((one.name for one in signature.parameters.values() if one.kind is one.VAR_KEYWORD), None)

        def before(_: nn.Module, positional: tuple[Any, ...], named: Arguments) -> tuple[tuple[Any, ...], Arguments]:
            prompt = self._prompt()
            if prompt is None:
                return positional, named
            arguments = dict(signature.bind(*positional, **named).arguments)
            arguments |= arguments.pop(rest, {}) if rest is not None else {}
            return (), change(prompt, arguments)

        self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))

    def _insert(self, prompt: PackedPrompt, arguments: Arguments) -> Arguments:
        rows, length = prompt.rows(), prompt.length  # (K, L, D)
        cache = arguments.get("past_key_values")
        past = 0 if cache is None else int(cache.get_seq_length())
        is_first = past == 0
        tokens = arguments.get("input_ids")
        tokens = arguments["inputs_embeds"] if tokens is None else tokens
        if arguments.get("attention_mask") is None and not prompt.is_even:
            # transformers leaves a mask away that hides nothing, also while it generates
            seen = tokens.shape[1] if is_first else past - length + tokens.shape[1]
            arguments["attention_mask"] = torch.ones((tokens.shape[0], seen), dtype=torch.long, device=rows.device)
        if arguments.get("attention_mask") is not None:
            arguments["attention_mask"] = _masked(prompt, arguments["attention_mask"])
        if arguments.get("position_ids") is None and self._has_places and not prompt.is_even:
            first = past - length if past else 0
            arguments["position_ids"] = torch.arange(first, first + tokens.shape[1], device=rows.device).unsqueeze(0)
        if arguments.get("position_ids") is not None:
            positions = arguments["position_ids"].expand(tokens.shape[0], -1)
            arguments["position_ids"] = _shifted(positions, prompt, with_rows=is_first)
        if not is_first:
            return arguments
        embedded = arguments.pop("inputs_embeds", None)
        arguments.pop("input_ids", None)
        if embedded is None:
            embedded = self._embeddings(tokens) * self._scale if self._scale != 1 else self._embeddings(tokens)
        head = for_examples(rows.to(embedded.dtype), embedded.shape[0])
        arguments["inputs_embeds"] = torch.cat([head, embedded], dim=1)  # (K B, L+T, D)
        if self._has_token_types:
            # given even where nobody asked for them: an encoder's own default ends at its last position
            types = arguments.get("token_type_ids")
            types = torch.zeros(embedded.shape[:2], dtype=torch.long, device=rows.device) if types is None else types
            arguments["token_type_ids"] = _before(types, length, 0)
        self._rows_before, self._tokens = length, embedded.shape[1]
        _count_from(length)
        return arguments

    def _widen_cross_mask(self, prompt: PackedPrompt, arguments: Arguments) -> Arguments:
        read = arguments.get("encoder_hidden_states")
        if arguments.get("encoder_attention_mask") is None and not prompt.is_even and read is not None:
            mask = torch.ones(read.shape[:2], dtype=torch.long, device=read.device)
            arguments["encoder_attention_mask"] = mask[:, prompt.length :]
        if arguments.get("encoder_attention_mask") is not None:
            arguments["encoder_attention_mask"] = _masked(prompt, arguments["encoder_attention_mask"])
        return arguments

    def _of_the_tokens(self, _: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Look positions up for the real tokens alone, by indices or by a shape."""
        if not self._rows_before:
            return arguments
        first = arguments[0]
        if isinstance(first, torch.Size):
            return (torch.Size([*first[:-1], self._tokens]), *arguments[1:])
        return (first[..., : self._tokens], *arguments[1:])

    def _pad(self, _: nn.Module, __: tuple[Any, ...], output: Tensor) -> Tensor:
        """Prepend zeros in place of positions of the prompts."""
        length = self._rows_before
        if not length:
            return output
        return torch.cat([output.new_zeros(*output.shape[:-2], length, output.shape[-1]), output], dim=-2)

    def _blank(self, _: nn.Module, __: tuple[Any, ...], output: Tensor) -> Tensor:
        """Zero the token types of the prompts."""
        length = self._rows_before
        if not length:
            return output
        return torch.cat([torch.zeros_like(output[..., :length, :]), output[..., length:, :]], dim=-2)

    def _take_away(self, _: nn.Module, __: tuple[Any, ...], output: Any) -> Any:
        length, self._rows_before = self._rows_before, 0
        _count_from(0)
        if length and not self._is_read:
            output.last_hidden_state = output.last_hidden_state[:, length:]  # (B, T, D)
        return output


def _count_from(rows: int) -> None:
    """Set the number of rows before the tokens for dropout."""
    own = active_dropout()
    if own is not None:
        own.rows_before = rows


def _before(tensor: Tensor, length: int, value: int) -> Tensor:
    """Prepend ``length`` columns of a value to ``(B, T)``."""
    return torch.cat([tensor.new_full((tensor.shape[0], length), value), tensor], dim=1)


def _masked(prompt: PackedPrompt, mask: Tensor) -> Tensor:
    """Return a mask ``(K B, T)`` with the prompts' rows prepended."""
    if prompt.is_even:
        return _before(mask, prompt.length, 1)
    return torch.cat([for_examples(prompt.visible, mask.shape[0]).to(mask.dtype), mask], dim=1)


def _shifted(positions: Tensor, prompt: PackedPrompt, *, with_rows: bool) -> Tensor:
    """Return the position ids ``(K B, T)`` of tokens after prompts; those of the prompts too if they are inserted."""
    behind = for_examples(prompt.shifts, positions.shape[0]).unsqueeze(1)  # (K B, 1)
    moved = positions + prompt.length - behind
    if not with_rows:
        return moved
    own = torch.arange(prompt.length, device=positions.device, dtype=positions.dtype) - behind
    return torch.cat([own.clamp(min=0), moved], dim=1)
