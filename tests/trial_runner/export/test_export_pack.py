"""A trial that a pack really trained, taken away: the loss that it measured last is the loss of its export."""

import pytest
import torch
from support.export_cases import facts_of
from support.halves_task import halves_task

from search_space.parameter_counts.budget import solve
from search_space.published import published_method
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import load_backbone
from trial_runner.export import load_delta, new_folder, trained_delta, write_delta
from trial_runner.requests import Reading, TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner

STEPS = 4
WIDTHS = {"fp64": "float64", "fp32": "float32", "bf16": "float32"}


TASK = halves_task(first=6, end=60)


@pytest.mark.parametrize("family", ["roberta", "bart", "gpt2"])
@pytest.mark.parametrize("precision", WIDTHS)
def test_an_export_has_the_loss_that_the_pack_measured(tiny_backbone, tmp_path, family, precision):
    torch.set_num_threads(1)
    register_attention()
    folder = str(tiny_backbone(family))
    backbone = load_backbone(folder, precision=WIDTHS[precision], attn_implementation=ATTENTION)
    runner = TorchRunner(backbone, TASK, precision=precision)
    # products in bf16 are rounded otherwise in a batch of other rows, so those trials are packed one by one
    readings: dict[int, Reading] = {}
    for numbers in ((0,), (1,)) if precision == "bf16" else ((0, 1),):
        pack = runner.open_pack(len(numbers))
        for number in numbers:
            pack.admit(_request(runner, number))
        readings |= {result.trial: result for result in pack.advance(STEPS) if isinstance(result, Reading)}
        for number in numbers:
            with new_folder(tmp_path / str(number)) as place:
                write_delta(place, trained_delta(pack.snapshot(number), backbone.shape), backbone=facts_of(backbone))
    runner.close()
    fresh = load_backbone(folder, precision=WIDTHS[precision])
    for number, reading in readings.items():
        loaded = load_delta(fresh, tmp_path / str(number))
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            batch = TASK.splits["validation"].batch(range(25), backbone.pad_token_id)
            loss = torch.nn.functional.cross_entropy(loaded.logits(batch).double(), torch.from_numpy(batch.labels))
        assert float(loss) == pytest.approx(reading.metrics["validation_loss"], rel=1e-6)
        loaded.detach()
    assert readings[0].metrics["validation_loss"] != readings[1].metrics["validation_loss"]


def _request(runner: TorchRunner, number: int) -> TrialRequest:
    shape, method = runner.backbone.shape, published_method(("mam_adapter", "lora_qv")[number])
    structure = method.configuration(shape)
    return TrialRequest(
        trial=number,
        attempt=1,
        configuration=solve(structure, shape, attention_share=method.attention_share, parameters=1200),
        learning_rates=(0.01, 0.02, 0.05),
        plan=TrainingPlan(steps=STEPS, batch_size=4, evaluate_at_steps=(STEPS,)),
        seed=100 + number,
    )
