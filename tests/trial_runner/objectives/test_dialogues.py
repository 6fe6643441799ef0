"""The loss of dialogues: the mean over the tokens of answers, in a pack as alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.chat_cases import chat_backbone
from support.packing_cases import request_for
from support.text_cases import language_model, moved_pass, objective_of, text_runner
from torch.nn.functional import cross_entropy

from search_space.published import published_method
from trial_runner.runner import TorchRunner
from trial_runner.tasks import Decoding
from trial_runner.tasks.instruction.template import ChatSplit


def chat(number: int) -> list[dict[str, str]]:
    turns = [f"is {number} odd", "no yes"[3 * (number % 2) :][:3], "why", f"as {number % 3}"]
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(turns[: 2 + number % 3])]


@pytest.fixture
def runner(tiny_backbone: Callable[..., Path], tmp_path: Path) -> TorchRunner:
    (tmp_path / "chats").mkdir()
    for split, size in {"train": 9, "validation": 5, "test": 4}.items():
        rows = [{"messages": chat(number + size * 10)} for number in range(size)]
        (tmp_path / "chats" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task: dict[str, Any] = {"kind": "instruction", "metric": "rougeL", "max_tokens": 150}
    unused = {"source": None, "target": None, "references": None, "max_target_tokens": 64}
    backbone = chat_backbone(tiny_backbone("qwen3"), tmp_path / "backbone")
    return text_runner(backbone, tmp_path / "chats", **task, **unused, decoding=Decoding(max_new_tokens=4))


def test_dialogue_loss_is_mean_over_answers_in_packs_too(runner):
    shape = runner.backbone.shape
    methods = [published_method(name).structure(shape) for name in ("lora_qv", "prefix_tuning", "houlsby_adapter")]
    pack = runner.open_pack(len(methods))
    for trial, configuration in enumerate(methods):
        pack.admit(request_for(configuration, trial, steps=2))
    passed = moved_pass(runner, pack)
    objective = objective_of(runner)
    rows = np.array([[0, 3, 4], [7, 1, 2], [8, 8, 5]])
    losses = objective.losses(passed([0, 1, 2]), objective.batch("train", rows.ravel())).tolist()
    split = objective.task.splits["train"]
    assert isinstance(split, ChatSplit)
    for slot, chosen in enumerate(rows):
        alone = passed([slot])
        (loss,) = objective.losses(alone, objective.batch("train", chosen)).tolist()
        assert losses[slot] == pytest.approx(loss, rel=1e-12)
        terms: list[float] = []
        for row in chosen:
            ids = torch.from_numpy(split.rows.ids[split.rows.offsets[row] : split.rows.offsets[row + 1]]).long()
            learned = split.learned[split.rows.offsets[row] : split.rows.offsets[row + 1]]
            with alone.applied(), torch.no_grad():
                logits = language_model(runner)(input_ids=ids[None]).logits[0]
            each = cross_entropy(logits[:-1], ids[1:], reduction="none")
            terms += each[torch.from_numpy(learned[1:])].tolist()
        assert loss == pytest.approx(np.mean(terms), rel=1e-12)
    runner.close()
