"""Texts that are written are planned as training steps are: keys and values, beams, and trials of a pack."""

import math
from pathlib import Path

import pytest
from support.allocator import peak_of
from support.text_cases import objective_of, plain_pass, requests, text_runner, write_task

from trial_runner.packs.lane import Lane
from trial_runner.packs.memory import USABLE
from trial_runner.runner import TorchRunner
from trial_runner.tasks import Decoding

WITHIN = 0.1
NEW = 24


def task_runner(backbone: Path, folder: Path, *, beams: int) -> TorchRunner:
    """Return a runner whose answers are all of the greatest length."""
    decoding = Decoding(max_new_tokens=NEW, min_new_tokens=NEW, beams=beams)
    return text_runner(backbone, write_task(folder), precision="fp32", decoding=decoding)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "beams"), [("qwen3", 3), ("t5", 3), pytest.param("qwen3", 1, marks=pytest.mark.slow)]
)
def test_planned_memory_of_texts_equals_the_allocators(family, beams, tiny_backbone, tmp_path, monkeypatch):
    runner = task_runner(tiny_backbone(family), tmp_path, beams=beams)
    wanted = requests(runner, ("mam_adapter", "lora_qv"))
    pack, objective = runner.open_pack(2), objective_of(runner)
    with monkeypatch.context() as patched:  # of texts alone
        patched.setattr(type(objective), "losses", lambda *_: None)
        patched.setattr(Lane, "dry_run", lambda *_: None)
        alone, planned = (pack.memory_of(*wanted[:count]).evaluation_bytes for count in (1, 2))
    for request in wanted:
        pack.admit(request)
    together = plain_pass(runner, pack, (0, 1))
    peak = peak_of(lambda: objective.predictions(together, "validation"))
    assert abs(planned / peak - 1) <= WITHIN
    assert 1.5 <= planned / alone <= 2.5
    longest = max(int(split.sources.lengths.max()) for split in objective.task.splits.values())
    assert objective.written_tokens(2) == 2 * beams * 20 * (longest + NEW)
    runner.close()


@pytest.mark.slow
def test_fewer_texts_are_written_at_a_time_where_memory_is_short(tiny_backbone, tmp_path, monkeypatch):
    runner = task_runner(tiny_backbone("qwen3"), tmp_path, beams=3)
    (request,) = requests(runner, ("lora_qv",))
    whole = runner.open_pack(1).memory_of(request)
    free = int(1.02 * whole.of_training.slot_bytes)
    assert free < whole.slot_bytes
    monkeypatch.setattr("trial_runner.runner.available_bytes", lambda _: int(free / USABLE))
    monkeypatch.setattr("trial_runner.runner.LARGEST_SHARE", math.inf)  # memory is always planned
    pack = runner.open_pack(2, fitting=request.plan)
    (admitted,) = requests(runner, ("lora_qv",))
    assert 1 <= runner.frozen.evaluation.examples < 11
    assert pack.memory_of(admitted).slot_bytes <= free
    pack.admit(admitted)
    together = plain_pass(runner, pack, (admitted.trial,))
    assert peak_of(lambda: objective_of(runner).predictions(together, "validation")) <= free
    runner.close()
