"""LoRA+ as a value of the scale: what Adam makes of a scale is what it makes of another rate of B."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from search_space.backbones import shape_of
from search_space.published.point import PublishedPoint
from trial_runner.deltas.delta_set import DeltaSet

CONFIG = Path(__file__).parents[2] / "data" / "backbones" / "qwen3_0_6b" / "config.json"
SMALL = {"hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "intermediate_size": 8}
SCALE, RATIO, RATE, STEPS = 2.0, 16.0, 1e-2, 12
EPS = 1e-60
"""Adam's, so that a step is a sign where it is the first."""


def trained(scale: float, rate_of_b: float, decay: float, decay_of_b: float) -> Tensor:
    """Return LoRA at q of some rows after some steps of AdamW towards a matrix."""
    shape = shape_of({**json.loads(CONFIG.read_text()), **SMALL, "num_hidden_layers": 1})
    structure = PublishedPoint("lora_qv").configuration(shape, parameters=80, scale=scale)
    deltas = DeltaSet(structure, shape, seed=0, dtype=torch.float64)
    ((delta, *_),) = deltas.sublayers.values()
    draw = torch.Generator().manual_seed(7)
    rows, goal = (torch.randn(1, 6, 8, generator=draw, dtype=torch.float64) for _ in range(2))
    a, b = delta.form.a, delta.form.b
    groups = [
        {"params": [a], "lr": RATE, "weight_decay": decay},
        {"params": [b], "lr": rate_of_b, "weight_decay": decay_of_b},
    ]
    optimizer = torch.optim.AdamW(groups, eps=EPS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (delta.delta(rows) - goal).square().sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return delta.delta(rows).detach()


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lora_plus_is_lora_with_its_ratio_times_the_scale(decay):
    plus = trained(SCALE, RATIO * RATE, decay, decay / RATIO)
    scaled = trained(SCALE * RATIO, RATE, decay, decay)
    torch.testing.assert_close(scaled, plus, rtol=1e-9, atol=1e-9)
    assert (trained(SCALE, RATE, decay, decay) - plus).abs().max() > 0.1, "it is another point"
