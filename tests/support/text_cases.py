"""Text tasks on tiny backbones that write, in float64: runners over them, and packs of trials of other structures."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from support.packing_cases import request_for
from support.tiny_backbones import DECODERS, ENCODER_DECODERS

from search_space.configuration import Configuration
from search_space.published import published_method
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.attachment.frozen_model import Pass
from trial_runner.backbones import load_language_model, tokenizer_id
from trial_runner.objectives import LanguageModelObjective
from trial_runner.packs.lane import pass_of
from trial_runner.packs.pack import TrialPack
from trial_runner.port_discovery.edit_properties import moved
from trial_runner.requests import TrialRequest
from trial_runner.runner import TorchRunner
from trial_runner.tasks import Decoding, Task, prepare_task

WRITERS = (*ENCODER_DECODERS, *DECODERS)
METHODS = ("prefix_tuning", "mam_adapter", "lora_qv", "prompt_tuning", "ia3", "houlsby_adapter", "inducer")
_SIZES = {"train": 20, "validation": 11, "test": 7}


def _text(draw: random.Random, least: int, most: int) -> str:
    words = ["".join(draw.choices("abcdefgh", k=draw.randint(1, 2))) for _ in range(draw.randint(least, most))]
    return " ".join(words)


def write_task(folder: Path) -> Path:
    """Write sources of a few short words, and targets and references of four to six, with a group each."""
    draw = random.Random(3)
    folder.mkdir(parents=True, exist_ok=True)
    for split, size in _SIZES.items():
        rows: list[dict[str, Any]] = []
        for number in range(size):
            source, targets = f"{split[:2]} {number} {_text(draw, 1, 6)}", [_text(draw, 4, 6), _text(draw, 4, 6)]
            group = ("seen", "unseen")[number % 2]
            rows.append({"source": source, "target": targets[0], "references": targets, "group": group})
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def text_runner(
    backbone: Path, folder: Path, *, precision: str = "fp64", mesh: Any = None, **options: Any
) -> TorchRunner:
    """Return a runner over a tiny backbone and the task of `write_task`.

    Args:
        backbone: Folder of the backbone.
        folder: Folder of the task.
        precision: Precision of the runner.
        mesh: Mesh of the ranks that shard the backbone's blocks; None for none.
        options: Options of the task.
    """
    torch.set_num_threads(1)
    register_attention()
    fields: dict[str, Any] = {
        "kind": "data_to_text",
        "metric": "bleu",
        "source": "source",
        "target": "target",
        "references": "references",
        "decoding": Decoding(max_new_tokens=6),
        "max_tokens": 24,
        "max_target_tokens": 16,
    }
    task = Task(folder=str(folder), **(fields | options))
    weights: Any = "float64" if precision == "fp64" else "float32"
    model = load_language_model(str(backbone), precision=weights, attn_implementation=ATTENTION)
    tokenizer = model.load_tokenizer()
    prepared = prepare_task(task, tokenizer, tokenizer_id(tokenizer), stack=model.shape.kind)
    return TorchRunner(model, prepared, precision=precision, mesh=mesh)


def objective_of(runner: TorchRunner) -> LanguageModelObjective:
    """Return the objective of the runner's trials."""
    objective = runner.objective
    assert isinstance(objective, LanguageModelObjective)
    return objective


def configurations(runner: TorchRunner, names: Sequence[str] = METHODS) -> list[Configuration]:
    """Return the methods that the backbone can have."""
    shape = runner.backbone.shape
    methods = [published_method(name) for name in names]
    return [method.structure(shape) for method in methods if method.invalid_reason(shape) is None]


def requests(runner: TorchRunner, names: Sequence[str] = METHODS, *, steps: int = 4) -> list[TrialRequest]:
    """Return a trial of each method."""
    return [request_for(one, trial, steps=steps) for trial, one in enumerate(configurations(runner, names))]


def moved_pass(runner: TorchRunner, pack: TrialPack, *, by: float = 1.5) -> Callable[[Sequence[int]], Pass]:
    """Move the deltas of every trial of a pack, and return a function that builds passes of some of them."""
    for slot in pack.taken:
        moved(pack.trial(slot.request.trial).deltas, seed=slot.request.trial, by=by)
    return lambda trials: pass_of(runner.frozen, [pack.trial(trial) for trial in trials])


def language_model(runner: TorchRunner) -> Any:
    """Return the model with which the runner's trials generate."""
    return runner.backbone.whole


def admitted(
    runner: TorchRunner, names: Sequence[str] = ("lora_qv",), *, steps: int = 4
) -> tuple[TrialPack, list[int]]:
    """Return a pack of a trial of each method, and their numbers."""
    trials = requests(runner, names, steps=steps)
    pack = runner.open_pack(len(trials))
    for request in trials:
        pack.admit(request)
    return pack, [request.trial for request in trials]


def plain_pass(runner: TorchRunner, pack: TrialPack, trials: Sequence[int]) -> Pass:
    """Return a pass of some trials of a pack as they are."""
    return pass_of(runner.frozen, [pack.trial(trial) for trial in trials])
