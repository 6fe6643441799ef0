"""Language-model objective and heads of trials that generate texts."""

import math
import shutil

import numpy as np
import pytest
import torch
from support.packing_cases import request_for
from support.text_cases import (
    WRITERS,
    admitted,
    language_model,
    objective_of,
    plain_pass,
    requests,
    text_runner,
    write_task,
)
from support.tiny_backbones import in_turn
from torch import Tensor

from search_space.published import published_method
from trial_runner.attachment.attention import ATTENTION
from trial_runner.attachment.frozen_model import FrozenModel, Pass
from trial_runner.attachment.inputs import start_token
from trial_runner.backbones import load_backbone, load_language_model
from trial_runner.errors import AttachError, BackboneError, TrialRequestError
from trial_runner.objectives.language_model import LanguageModelObjective, token_losses
from trial_runner.requests import Reading
from trial_runner.runner import TorchRunner
from trial_runner.tasks import IGNORED, Decoding
from trial_runner.tasks.splits import some_rows

EXACT = 1e-9
HALF = 2.0**-10
"""Twice the rounding of a number to a half float."""


def reference_loss(runner: TorchRunner, rows: list[int]) -> Tensor:
    """Compute transformers' loss of some training examples, padded, with labels of the targets alone."""
    model, split = language_model(runner), objective_of(runner).task.splits["train"]
    pad = runner.backbone.pad_token_id
    sources, mask = (torch.from_numpy(part) for part in split.sources.padded(np.array(rows), pad))
    targets, is_target = (torch.from_numpy(part) for part in split.targets.padded(np.array(rows), pad))
    if runner.backbone.shape.encoder_layers:
        labels = targets.masked_fill(~is_target, IGNORED)
        first = torch.full((len(rows), 1), start_token(runner.backbone.model.config))
        before = torch.cat([first, targets[:, :-1]], dim=1)
        loss: Tensor = model(input_ids=sources, attention_mask=mask, decoder_input_ids=before, labels=labels).loss
        return loss
    losses, tokens = 0.0, 0
    for source, visible, target, counts in zip(sources, mask, targets, is_target, strict=True):
        words = torch.cat([source[visible], target[counts]]).unsqueeze(0)
        logits = model(input_ids=words).logits[0, int(visible.sum()) - 1 : -1]
        losses += torch.nn.functional.cross_entropy(logits, target[counts], reduction="sum")
        tokens += int(counts.sum())
    return torch.as_tensor(losses / tokens)


def alone(runner: TorchRunner) -> tuple[LanguageModelObjective, Pass]:
    """Return the objective of the runner's trials, and a pass of one that starts at zero."""
    pack, trials = admitted(runner)
    return objective_of(runner), plain_pass(runner, pack, trials)


def assert_loss_is_the_models_own(runner: TorchRunner, rows: list[int]) -> None:
    objective, together = alone(runner)
    (loss,) = objective.losses(together, objective.batch("train", np.array(rows)))
    assert torch.allclose(loss, reference_loss(runner, rows), rtol=EXACT, atol=0)


# ---- backbones


@pytest.mark.parametrize("family", in_turn(*WRITERS))
def test_the_base_of_a_language_model_is_the_backbone(tiny_backbone, family):
    folder = str(tiny_backbone(family))
    loaded, alone = load_language_model(folder), load_backbone(folder)
    assert loaded.weights_sha256 == alone.weights_sha256
    names = [name for name, _ in loaded.model.named_parameters()]
    assert names == [name for name, _ in alone.model.named_parameters()]
    parts = set(loaded.whole.modules())
    assert all(module in parts for module in loaded.model.children())
    assert not any(parameter.requires_grad for parameter in loaded.whole.parameters())
    assert not any(module.training for module in (*loaded.whole.modules(), loaded.model))


def test_an_encoder_has_no_language_model(tiny_backbone):
    with pytest.raises(BackboneError, match=r"must be an encoder-decoder or a decoder to write texts; got an encoder"):
        load_language_model(str(tiny_backbone("roberta")))


def test_a_text_task_needs_the_head_of_the_backbone(new_text_runner, tiny_backbone):
    task = objective_of(new_text_runner("bart")).task
    with pytest.raises(TrialRequestError, match=r"of a data_to_text task must have its language-model head; got none"):
        TorchRunner(load_backbone(str(tiny_backbone("bart")), attn_implementation=ATTENTION), task)


# ---- the loss


@pytest.mark.parametrize("family", [*in_turn(*WRITERS), "gemma2", "granite"])  # whose logits are bent, or scaled
def test_the_loss_is_the_models_own_of_the_targets_tokens(new_text_runner, family):
    assert_loss_is_the_models_own(new_text_runner(family), [3, 8, 0, 11])


def test_an_untied_head_is_of_the_size_of_its_own_weights(tmp_path, tiny_backbone):
    """T5 v1.1: no scaling in front of a head with weights of its own, which no trial trains."""
    import transformers

    folder = tmp_path / "t5_v1_1"
    shutil.copytree(tiny_backbone("t5_gated"), folder)
    config = transformers.AutoConfig.from_pretrained(folder, tie_word_embeddings=False)
    torch.manual_seed(0)
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    runner = text_runner(folder, write_task(tmp_path / "task"))
    model = language_model(runner)
    assert model.lm_head.weight is not model.shared.weight
    assert_loss_is_the_models_own(runner, [4, 1])
    runner.close()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_label_smoothing_is_a_mixture_with_the_uniform_distribution(smoothing):
    torch.manual_seed(0)
    hidden, weight, bias = (torch.randn(*size, dtype=torch.float64) for size in ((5, 4), (9, 4), (9,)))
    labels = torch.tensor([0, 8, 3, 3, 5])
    found = token_losses(hidden, weight, bias, labels, label_smoothing=smoothing)
    log_probabilities = torch.log_softmax(hidden @ weight.T + bias, dim=1)
    of_tokens = -log_probabilities[torch.arange(5), labels]
    expected = (1 - smoothing) * of_tokens - smoothing * log_probabilities.mean(dim=1)
    assert torch.allclose(found, expected, rtol=EXACT, atol=0)


def test_training_smooths_and_validation_does_not(new_text_runner):
    losses, validation = [], []
    for smoothing in (0.0, 0.3):
        objective, together = alone(new_text_runner("bart", label_smoothing=smoothing))
        losses.append(float(objective.losses(together, objective.batch("train", np.arange(4)))[0].detach()))
        validation.append(objective.measure(together, "validation", is_final=False)[0].metrics["validation_loss"])
    assert abs(losses[0] - losses[1]) > 1e-3
    assert validation[0] == validation[1]


def test_logits_are_computed_in_parts_where_they_are_many(monkeypatch):
    torch.manual_seed(0)
    weight = torch.randn(9, 4, dtype=torch.float64)
    labels = torch.randint(9, (7,))
    found = []
    made, linear = [], torch.nn.functional.linear

    def watched(given: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        made[-1] = max(made[-1], len(given) * len(weight) * weight.element_size())
        return linear(given, weight)

    monkeypatch.setattr(torch.nn.functional, "linear", watched)
    for most_bytes in (2**28, 2 * 9 * 8, 1):
        monkeypatch.setattr("trial_runner.objectives.language_model.LOGITS_BYTES", most_bytes)
        made.append(0)
        torch.manual_seed(1)
        hidden, changed = torch.randn(7, 4, dtype=torch.float64, requires_grad=True), weight.clone().requires_grad_()
        losses = token_losses(hidden, changed, None, labels, label_smoothing=0.1)
        losses.square().sum().backward()
        found.append((losses, hidden.grad, changed.grad))
    assert made == [7 * 9 * 8, 2 * 9 * 8, 9 * 8], "a place at least"
    for parts in found[1:]:
        for part, whole in zip(parts, found[0], strict=True):
            assert torch.allclose(part, whole, rtol=EXACT, atol=1e-12)


def test_validation_loss_is_the_mean_over_all_tokens_of_the_split(new_text_runner, monkeypatch):
    objective, together = alone(new_text_runner("gpt2", metrics=("bleu", "loss", "perplexity")))
    split = objective.task.splits["validation"]
    monkeypatch.setattr(FrozenModel, "evaluated_together", lambda self, slots, tokens: 3)
    (found,) = objective.measure(together, "validation", is_final=False)
    measured = found.metrics
    batches = [objective.batch("validation", np.array([row])) for row in range(11)]
    each = [float(objective.losses(together, batch)[0].detach()) for batch in batches]
    expected = float(np.average(each, weights=split.targets.lengths))
    assert measured["validation_loss"] == pytest.approx(expected, rel=EXACT)
    assert measured["loss"] == measured["validation_loss"]
    assert measured["perplexity"] == pytest.approx(math.exp(expected), rel=EXACT)
    shares = np.array(each) * split.targets.lengths * 11 / split.targets.lengths.sum()
    assert -found.examples.scores == pytest.approx(shares, rel=HALF)
    assert float(np.mean(shares)) == pytest.approx(expected, rel=EXACT)
    few = some_rows(11, 4)
    (found,) = objective.measure(together, "validation", is_final=False, most=4)
    expected = float(np.average(np.array(each)[few], weights=split.targets.lengths[few]))
    assert found.metrics["validation_loss"] == pytest.approx(expected, rel=EXACT)
    assert len(found.examples) == 4


# ---- heads


@pytest.mark.parametrize("family", ["bart", "t5_gated", "gpt2", "llama"])
def test_full_fine_tuning_changes_a_tied_head_and_no_other(new_text_runner, family):
    runner = new_text_runner(family)
    pack, trials = admitted(runner, ("full_finetuning",), steps=3)
    before = [parameter.clone() for parameter in language_model(runner).parameters()]
    pack.advance(3)
    objective = objective_of(runner)
    written = objective.predictions(plain_pass(runner, pack, trials), "validation")
    batch = objective.batch("train", np.arange(4))
    with torch.no_grad():
        (loss,) = objective.losses(plain_pass(runner, pack, trials), batch)
        assert all(torch.equal(*each) for each in zip(before, language_model(runner).parameters(), strict=True))
        changed = pack.trial(trials[0]).deltas.whole.weights()  # type: ignore[union-attr]
        for name, parameter in runner.backbone.model.named_parameters():
            parameter.copy_(changed[name])
        assert torch.allclose(loss, reference_loss(runner, [0, 1, 2, 3]), rtol=EXACT, atol=0)
    assert objective.predictions(alone(runner)[1], "validation") == written
    with torch.no_grad():
        for parameter, own in zip(language_model(runner).parameters(), before, strict=True):
            parameter.copy_(own)


def test_a_snapshot_has_no_head_and_can_be_gone_on_from(new_text_runner):
    runner = new_text_runner("t5", label_smoothing=0.1)
    methods = ("prefix_tuning", "lora_qv")
    pack, trials = admitted(runner, methods, steps=4)
    pack.advance(2)
    snapshots = [pack.snapshot(trial) for trial in trials]
    assert all(snapshot.facts["labels"] == [] for snapshot in snapshots)
    assert not any("head." in name for snapshot in snapshots for name in snapshot.tensors)
    expected = [each.metrics for each in pack.advance(2) if isinstance(each, Reading)]
    other = runner.open_pack(2)
    for trial, snapshot in zip(requests(runner, methods, steps=4), snapshots, strict=True):
        other.restore(trial, snapshot)
    found = [each.metrics for each in other.advance(2) if isinstance(each, Reading)]
    assert found == expected
    assert len(found) == 2


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("robust_prefix_tuning", r"robust prefixes must be a classification, .* got a data_to_text task"),
        ("head_only", r"must have deltas, as no task head is trained; got none"),
    ],
)
def test_backbone_that_cannot_generate_is_refused(new_text_runner, method, message):
    runner = new_text_runner("bart")
    with pytest.raises(AttachError, match=message):
        runner.open_pack(1).admit(requests(runner, (method,))[0])


def test_a_prompt_must_leave_positions_for_the_longest_text(new_text_runner):
    runner = new_text_runner("gpt2", decoding=Decoding(max_new_tokens=30))
    longest = int(max(split.sources.lengths.max() for split in objective_of(runner).task.splits.values())) + 30
    method = published_method("prompt_tuning")
    fitting, longer = (method.configuration(runner.backbone.shape, {"l": 66 - longest + more}) for more in (0, 1))
    pack = runner.open_pack(2)
    pack.admit(request_for(fitting, 0, steps=2))
    assert objective_of(runner).predictions(plain_pass(runner, pack, [0]), "test")
    with pytest.raises(AttachError, match=rf"at most 66 tokens together, .* got {67 - longest} and {longest}"):
        pack.admit(request_for(longer, 1, steps=2))
