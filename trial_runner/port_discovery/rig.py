"""Small frozen backbone with hooks on its ports, and the inputs with which the contract is checked.

Shapes: `B` examples, `T` tokens, `D` width.
"""

import inspect
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from search_space.dimensions import Site, StackKind
from trial_runner.attachment.attach import Attachment
from trial_runner.backbones import Backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.linear_layers import QuantizedLinear, frozen_weights
from trial_runner.packed.packed_deltas import PackedDeltas

_BATCH, _TOKENS, _ANSWER = 2, 5, 4
_LENGTHS = (5, 3)
_FIRST_WORD, _VOCABULARY = 6, 60

Inputs = dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Rig:
    """Frozen backbone in float64 with hooks, and its outputs without deltas.

    Attributes:
        backbone: Backbone.
        attachment: Hooks.
        inputs: Two rows, the second one padded on the right; encoder-decoders have two rows for the decoder as well.
        plain: Outputs of the backbone for ``inputs`` before it has hooks, in the form of `outputs`.
        frozen: Outputs with the hooks, without deltas; if attention calls no function, as in DeBERTa, they are
            computed in another order.
    """

    backbone: Backbone
    attachment: Attachment
    inputs: Inputs
    plain: Tensor
    frozen: Tensor

    @property
    def has_windows(self) -> bool:
        """Whether its attention is limited to a window."""
        return getattr(self.backbone.model.config, "sliding_window", None) is not None

    @property
    def is_decoder(self) -> bool:
        """Whether the backbone is a decoder alone."""
        return self.backbone.shape.kind is StackKind.DECODER

    def weights(self) -> dict[str, Tensor | QuantizedLinear]:
        """Return the weights from which whole-model changes start."""
        return frozen_weights(self.backbone.model)

    def outputs(self, deltas: DeltaSet | None = None, inputs: Inputs | None = None) -> Tensor:
        """Return the last hidden states of the real tokens, ``(tokens, D)``, row after row."""
        given = self.inputs if inputs is None else inputs
        return self.outputs_of(self.hidden(deltas, given), given)

    @staticmethod
    def outputs_of(hidden: Tensor, inputs: Inputs) -> Tensor:
        """Select the real tokens of the last hidden states ``(B, T, D)``."""
        return hidden.flatten(0, 1) if "decoder_input_ids" in inputs else hidden[inputs["attention_mask"].bool()]

    def hidden(self, deltas: DeltaSet | PackedDeltas | None, inputs: Inputs) -> Tensor:
        """Compute the last hidden states ``(B, T, D)``."""
        with nullcontext() if deltas is None else self.attachment.using(deltas):
            return _hidden(self.backbone.model, inputs)

    def second_row(self) -> Inputs:
        """Return the padded row without its padding."""
        real = self.inputs["attention_mask"][1].bool()
        alone = {name: self.inputs[name][1:, real] for name in ("input_ids", "attention_mask")}
        if "decoder_input_ids" in self.inputs:
            alone["decoder_input_ids"] = self.inputs["decoder_input_ids"][1:]
        return alone

    def padded_left(self) -> Inputs:
        """Return the rows of a decoder with the padding on the left, as in batches of a generation."""
        shifts = [_TOKENS - length for length in _LENGTHS]
        turned = {
            name: torch.stack([row.roll(shift) for row, shift in zip(self.inputs[name], shifts, strict=True)])
            for name in ("input_ids", "attention_mask")
        }
        if "position_ids" not in inspect.signature(self.backbone.model.forward).parameters:
            return turned  # they are told by the mask
        return turned | {"position_ids": (turned["attention_mask"].cumsum(dim=-1) - 1).clamp(min=0)}

    def with_another_end(self) -> Inputs:
        """Return the inputs with another token at the end of the decoder's text."""
        name = "decoder_input_ids" if "decoder_input_ids" in self.inputs else "input_ids"
        other = self.inputs[name].clone()
        other[0, -1] += 1
        return self.inputs | {name: other}


def _hidden(model: torch.nn.Module, inputs: Inputs) -> Tensor:
    hidden: Tensor = model(**inputs).last_hidden_state
    return hidden


def rig_on(backbone: Backbone) -> Rig:
    """Attach hooks to a backbone of at least sixty words that is loaded with our attention, in evaluation mode."""
    inputs = _inputs(backbone)
    with torch.no_grad():
        plain = Rig.outputs_of(_hidden(backbone.model, inputs), inputs)
        attachment = Attachment(backbone.model, backbone.family, backbone.shape)
        frozen = Rig.outputs_of(_hidden(backbone.model, inputs), inputs)
    return Rig(backbone=backbone, attachment=attachment, inputs=inputs, plain=plain, frozen=frozen)


def _inputs(backbone: Backbone) -> Inputs:
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(_FIRST_WORD, _VOCABULARY, (_BATCH, _TOKENS), generator=generator)
    real = torch.arange(_TOKENS) < torch.tensor(_LENGTHS)[:, None]
    inputs = {"input_ids": words.masked_fill(~real, backbone.pad_token_id), "attention_mask": real.long()}
    if backbone.shape.kind is StackKind.ENCODER_DECODER:
        inputs["decoder_input_ids"] = torch.randint(_FIRST_WORD, _VOCABULARY, (_BATCH, _ANSWER), generator=generator)
    return inputs


def sites_of(backbone: Backbone) -> tuple[Site, ...]:
    """Return every site at which a backbone can be edited."""
    inside = (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS, Site.FFN)
    found = [site for site in inside if backbone.shape.sublayers(site)]
    if backbone.shape.stack_norms:
        found.append(Site.STACK)
    return (*found, Site.EMBEDDING, Site.GLOBAL)
