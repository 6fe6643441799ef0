"""Tiny backbone in two copies: one with our hooks, one for `peft`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from support.built_forms import nudged
from torch import Tensor

from search_space.configuration import Configuration
from search_space.dimensions import StackKind
from search_space.edit import Edit
from trial_runner.attachment.attach import Attachment
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import load_backbone
from trial_runner.deltas.delta_set import DeltaSet

TOKENS = 12
MASK = (torch.arange(TOKENS) < torch.tensor([[12], [9], [4]])).long()
TOLERANCE = 1e-12


class PeftPair:
    """Two copies of a backbone in float64; ``frozen`` is what it computes without anything."""

    def __init__(self, family: str, folder: Path) -> None:
        register_attention()
        self.family, self.folder = family, folder
        self.ours = load_backbone(str(folder), precision="float64", attn_implementation=ATTENTION)
        self.shape = self.ours.shape
        self.attachment = Attachment(self.ours.model, self.ours.family, self.shape)
        self.frozen = self.outputs(self.ours.model)

    @property
    def is_seq2seq(self) -> bool:
        return self.shape.kind is StackKind.ENCODER_DECODER

    @property
    def inputs(self) -> dict[str, Tensor]:
        ids = torch.randint(5, 200, (3, TOKENS), generator=torch.Generator().manual_seed(0))
        later = torch.randint(5, 200, (3, 7), generator=torch.Generator().manual_seed(1))
        inputs = {"input_ids": ids, "attention_mask": MASK}
        return inputs | ({"decoder_input_ids": later} if self.is_seq2seq else {})

    def fresh(self) -> Any:
        """Load a copy for peft; not "eager", which has a softmax in float32 in some families."""
        return load_backbone(str(self.folder), precision="float64", attn_implementation="sdpa").model

    def deltas(self, *edits: Edit) -> DeltaSet:
        """Our deltas, every parameter moved from its start."""
        frozen = dict(self.ours.model.named_parameters())
        return nudged(DeltaSet(Configuration(edits=edits), self.shape, seed=0, dtype=torch.float64, frozen=frozen), 0.3)

    def run(self, deltas: DeltaSet) -> Tensor:
        with self.attachment.using(deltas):
            return self.outputs(self.ours.model)

    def outputs(self, model: Any, **more: Any) -> Tensor:
        """``(N, D)``: last hidden states of all real tokens, those of prompts left out; of both stacks."""
        out = model(**self.inputs, **more)
        if not self.is_seq2seq:
            return out.last_hidden_state[:, -TOKENS:][MASK.bool()]
        decoded = out.last_hidden_state if "last_hidden_state" in out else out.decoder_hidden_states[-1]
        return torch.cat([decoded.flatten(0, 1), out.encoder_last_hidden_state[:, -TOKENS:][MASK.bool()]])

    def assert_same(self, deltas: DeltaSet, theirs: Any, *, within: float = TOLERANCE, **more: Any) -> None:
        one = self.run(deltas)
        torch.testing.assert_close(one, self.outputs(theirs, **more), rtol=0, atol=within)
        assert (one - self.frozen).abs().max() > 0.01, "an edit that does nothing compares nothing"


@contextmanager
def peft_pairs(tiny_backbone: Any, kind: type[PeftPair]) -> Iterator[Any]:
    """Build the two copies of a family, once each."""
    made: list[PeftPair] = []

    @cache
    def make(family: str) -> PeftPair:
        made.append(kind(family, tiny_backbone(family)))
        return made[-1]

    yield make
    for each in made:
        each.attachment.detach()
