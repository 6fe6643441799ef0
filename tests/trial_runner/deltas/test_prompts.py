"""The rows of prompts: counts, starts, and the networks that make them against plain formulas, in float64."""

import pytest
import torch
from torch import Tensor

from search_space.backbones import family_of
from search_space.configuration import Configuration
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.forms import EncodedPrompt, Prompt, PromptEncoder
from search_space.gates import Prepend
from search_space.parameter_counts.counts import count
from trial_runner.deltas.prompt import PromptDelta

CONFIG = {
    "model_type": "roberta",
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 50,
    "max_position_embeddings": 40,
    "type_vocab_size": 1,
}
SHAPE = family_of(CONFIG).read_shape(CONFIG)
MLP = EncodedPrompt(width=5, encoder=PromptEncoder.MLP, hidden=7)
LSTM = EncodedPrompt(width=5, encoder=PromptEncoder.LSTM, hidden=7)
FORMS = (Prompt(width=5), MLP, LSTM)


def build(form: Prompt | EncodedPrompt, seed: int = 0, width: int = 16) -> PromptDelta:
    return PromptDelta(form, width, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("form", FORMS)
def test_a_prompt_trains_and_stores_what_the_formula_counts(form: Prompt | EncodedPrompt) -> None:
    edit = Edit(site=Site.EMBEDDING, write=Port.EMBEDDING, read=None, form=form, gate=Prepend())
    counts = count(Configuration(edits=(edit,)), SHAPE)
    prompt = build(form)
    assert sum(parameter.numel() for parameter in prompt.parameters()) == counts.trained
    assert prompt.rows().numel() == counts.stored == 5 * 16
    assert prompt.rows().shape == (prompt.length, 16)


@pytest.mark.parametrize("form", FORMS)
def test_a_prompt_depends_on_its_generator_alone(form: Prompt | EncodedPrompt) -> None:
    torch.manual_seed(1)
    first = build(form)
    torch.manual_seed(2)
    for one, other in zip(first.parameters(), build(form).parameters(), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(first.rows(), build(form, seed=3).rows())


@pytest.mark.parametrize(("form", "deviation"), [(Prompt(width=400), 0.02), (EncodedPrompt(width=400), 1.0)])
def test_the_table_starts_normal(form: Prompt | EncodedPrompt, deviation: float) -> None:
    table = build(form, width=100).table.detach()
    assert float(table.mean()) == pytest.approx(0, abs=4 * deviation / 200)
    assert float(table.std()) == pytest.approx(deviation, rel=0.02)


@pytest.mark.parametrize("encoder", PromptEncoder)
def test_the_network_starts_uniform_in_the_bounds_of_pytorch(encoder: PromptEncoder) -> None:
    network = build(EncodedPrompt(width=5, encoder=encoder, hidden=60), width=90).encoder
    assert network is not None
    for name, layer in network.named_children():
        behind = 120 if encoder is PromptEncoder.LSTM else 60
        bound = {"inner": 90, "lstm": 60}.get(name, behind) ** -0.5
        for parameter in (one.detach() for one in layer.parameters()):
            assert float(parameter.abs().max()) <= bound
            assert float(parameter.std()) == pytest.approx(bound / 3**0.5, rel=0.25)


def test_the_mlp_is_three_linear_layers_with_relu_between() -> None:
    prompt = build(MLP)
    named = dict(prompt.encoder.named_parameters())  # type: ignore[union-attr]
    x: Tensor = prompt.table
    for layer in ("inner", "middle", "outer"):
        x = x @ named[f"{layer}.weight"].T + named[f"{layer}.bias"]
        x = x if layer == "outer" else x.clamp(min=0)
    torch.testing.assert_close(prompt.rows(), x, rtol=0, atol=1e-14)


def lstm(x: Tensor, named: dict[str, Tensor], mark: str) -> Tensor:
    """One direction of one layer, gate by gate."""
    hidden = cell = x.new_zeros(7)
    rows = []
    for row in x:
        gates = named[f"lstm.weight_ih_{mark}"] @ row + named[f"lstm.bias_ih_{mark}"]
        gates = gates + named[f"lstm.weight_hh_{mark}"] @ hidden + named[f"lstm.bias_hh_{mark}"]
        enter, forget, new, leave = gates.split(7)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
        hidden = torch.sigmoid(leave) * torch.tanh(cell)
        rows.append(hidden)
    return torch.stack(rows)


def test_the_lstm_is_two_layers_in_both_directions_then_two_linear_ones() -> None:
    prompt = build(LSTM)
    named = dict(prompt.encoder.named_parameters())  # type: ignore[union-attr]
    x: Tensor = prompt.table
    for layer in range(2):
        backward = lstm(x.flip(0), named, f"l{layer}_reverse").flip(0)
        x = torch.cat([lstm(x, named, f"l{layer}"), backward], dim=1)
    x = (x @ named["middle.weight"].T + named["middle.bias"]).clamp(min=0)
    x = x @ named["outer.weight"].T + named["outer.bias"]
    torch.testing.assert_close(prompt.rows(), x, rtol=0, atol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_every_parameter_of_a_prompt_has_a_gradient(form: Prompt | EncodedPrompt) -> None:
    prompt = build(form)
    prompt.eval()
    prompt.rows().square().sum().backward()
    for name, parameter in prompt.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.any()), name


@pytest.mark.parametrize("form", FORMS)
def test_rows_keep_their_precision_under_mixed_precision(form: Prompt | EncodedPrompt) -> None:
    prompt = build(form).to(torch.float32)
    expected = prompt.rows()
    assert expected.dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(prompt.rows(), expected)
