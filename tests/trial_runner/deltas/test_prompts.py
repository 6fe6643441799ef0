"""The rows of prompts: counts, starts, and the networks that make them against plain formulas, in float64."""

import pytest
import torch

from search_space.forms import EncodedPrompt, Prompt, PromptEncoder
from trial_runner.deltas.prompt import PromptDelta

MLP = EncodedPrompt(width=5, encoder=PromptEncoder.MLP, hidden=7)
LSTM = EncodedPrompt(width=5, encoder=PromptEncoder.LSTM, hidden=7)
FORMS = (Prompt(width=5), MLP, LSTM)


def build(form: Prompt | EncodedPrompt, seed: int = 0, width: int = 16) -> PromptDelta:
    return PromptDelta(form, width, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("form", "deviation"), [(Prompt(width=400), 0.02), (EncodedPrompt(width=400), 1.0)])
def test_the_table_starts_normal(form, deviation):
    table = build(form, width=100).table.detach()
    assert float(table.mean()) == pytest.approx(0, abs=4 * deviation / 200)
    assert float(table.std()) == pytest.approx(deviation, rel=0.02)


@pytest.mark.parametrize("encoder", PromptEncoder)
def test_the_network_starts_uniform_in_the_bounds_of_pytorch(encoder):
    network = build(EncodedPrompt(width=5, encoder=encoder, hidden=60), width=90).encoder
    assert network is not None
    for name, layer in network.named_children():
        behind = 120 if encoder is PromptEncoder.LSTM else 60
        bound = {"inner": 90, "lstm": 60}.get(name, behind) ** -0.5
        for parameter in (one.detach() for one in layer.parameters()):
            assert float(parameter.abs().max()) <= bound
            assert float(parameter.std()) == pytest.approx(bound / 3**0.5, rel=0.25)


@pytest.mark.parametrize("form", FORMS)
def test_rows_keep_their_precision_under_mixed_precision(form):
    prompt = build(form).to(torch.float32)
    expected = prompt.rows()
    assert expected.dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(prompt.rows(), expected)
