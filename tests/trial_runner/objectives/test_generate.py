"""Generation with deltas: the key/value cache changes nothing, greedily and with beams, for every form and gate."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from support.tiny_backbones import BACKBONES, DECODERS, ENCODER_DECODERS, EVERY_BACKBONE, in_turn
from torch import Tensor

from search_space.backbones import FAMILIES, family_of, shape_of
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Site, StackKind
from search_space.edit import Edit
from search_space.forms import FORMS
from search_space.gates import GATES, ConvexInducerGate, InducerGate
from search_space.gates.sample import ConvexSampleGate, SampleGate
from search_space.published import published_method
from trial_runner.attachment.attach import Attachment
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.port_discovery.edit_properties import moved
from trial_runner.port_discovery.examples import FORM_EXAMPLES, GATE_EXAMPLES, examples_at

NEW_TOKENS = 5
SEARCHES = {"greedy": 1, "beam": 3}
SAME = 1e-9
INDUCERS = (InducerGate.name, ConvexInducerGate.name)
ATTEMPTS = 20


@dataclass(frozen=True, kw_only=True)
class Writer:
    """A language model with hooks on its base model, and a batch of two with padding where such models have it."""

    model: Any
    attachment: Attachment
    shape: BackboneShape
    inputs: dict[str, Tensor]

    def write(self, deltas: DeltaSet | None, *, use_cache: bool, beams: int) -> tuple[Tensor, Tensor]:
        """Generate tokens ``(B, T)``; return them with their logits ``(T, B * beams, V)``."""
        with torch.no_grad(), ExitStack() as stack:
            if deltas is not None:
                stack.enter_context(self.attachment.using(deltas))
            written = self.model.generate(
                **self.inputs,
                num_beams=beams,
                use_cache=use_cache,
                do_sample=False,
                min_new_tokens=NEW_TOKENS,
                max_new_tokens=NEW_TOKENS,
                forced_eos_token_id=None,
                output_logits=True,
                return_dict_in_generate=True,
                pad_token_id=self.model.config.pad_token_id or 0,
            )
        return written.sequences[:, -NEW_TOKENS:], torch.stack(written.logits)

    def built(self, edits: tuple[Edit, ...]) -> DeltaSet:
        """Build deltas as at the start of training."""
        base = self.model.base_model  # of T5 it is the language model itself
        frozen = {name: weight for name, weight in base.named_parameters() if not name.startswith("lm_head")}
        return DeltaSet(Configuration(edits=edits), self.shape, seed=0, dtype=torch.float64, frozen=frozen).eval()


@pytest.fixture(scope="module", params=in_turn(*DECODERS, *ENCODER_DECODERS))
def writer(request: pytest.FixtureRequest, tiny_language_model: Callable[..., Any]) -> Iterator[Writer]:
    torch.set_num_threads(1)
    model = tiny_language_model(request.param, dtype="float64")
    family = family_of(model.config.to_dict())
    shape = family.read_shape(model.config.to_dict())
    words = torch.tensor([[9, 17, 33, 41, 28], [52, 11, 23, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    if shape.kind is StackKind.DECODER:
        words, mask = (torch.stack([part[0], part[1].roll(2)]) for part in (words, mask))
    inputs = {"input_ids": words.masked_fill(mask == 0, model.config.pad_token_id or 0), "attention_mask": mask}
    attachment = Attachment(model.base_model, family, shape)
    yield Writer(model=model, attachment=attachment, shape=shape, inputs=inputs)
    attachment.detach()


def kinds(shape: BackboneShape) -> Iterator[tuple[Edit, ...]]:
    """Yield an edit of every form and every gate, at all attentions where it can be; some together; the sum."""
    sites = (Site.ATTENTION, Site.FFN, Site.EMBEDDING, Site.GLOBAL)
    covered: set[object] = set()
    for edit in (edit for site in sites for edit in examples_at(site, shape)):
        keys: set[object] = {edit.form.name, edit.gate.name}
        if edit.gate.name in INDUCERS:
            keys.add((edit.gate.name, edit.write))
        if not keys <= covered:
            yield (edit,)
        covered |= keys
    for name, sizes in (("mam_adapter", {"l": 3, "r": 3}), ("pfeiffer_adapter", {"r": 3})):
        yield published_method(name).configuration(shape, sizes).edits


def test_every_family_that_writes_is_here():
    families = {family for family, names in BACKBONES.items() if {*names} & {*DECODERS, *ENCODER_DECODERS}}
    examples = {name: {**FAMILIES[name].example, "model_type": FAMILIES[name].model_types[0]} for name in BACKBONES}
    writing = {name for name, example in examples.items() if shape_of(example).kind is not StackKind.ENCODER}
    assert families == writing & {name.removesuffix("_gated") for name in EVERY_BACKBONE}


def test_every_form_and_gate_is_here(writer):
    edits = [edit for some in kinds(writer.shape) for edit in some]
    assert set(GATES) == set(GATE_EXAMPLES)
    # gates of a sample are on encoders alone, which do not write
    assert {edit.gate.name for edit in edits} == set(GATES) - {SampleGate.name, ConvexSampleGate.name}
    impossible = set() if writer.shape.biased_ports else {"const"}
    assert {edit.form.name for edit in edits} == set(FORMS) - impossible
    assert set(FORM_EXAMPLES) == set(FORMS)


@pytest.mark.slow
@pytest.mark.parametrize("beams", SEARCHES.values(), ids=SEARCHES)
def test_cache_does_not_change_generated_tokens(writer, beams):
    frozen, _ = writer.write(None, use_cache=True, beams=beams)
    for edits in kinds(writer.shape):
        deltas = writer.built(edits)
        for attempt in range(ATTEMPTS):
            tokens, logits = writer.write(
                moved(deltas, seed=attempt, by=2.0 + 2 * attempt), use_cache=True, beams=beams
            )
            if not torch.equal(tokens, frozen):
                break
        else:
            pytest.fail(f"{edits} must change what is written, or the test shows nothing")
        again, all_logits = writer.write(deltas, use_cache=False, beams=beams)
        assert torch.equal(tokens, again), edits
        assert torch.allclose(logits, all_logits, rtol=SAME, atol=SAME), edits
    assert torch.equal(writer.write(None, use_cache=True, beams=beams)[0], frozen)
