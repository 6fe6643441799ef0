"""Default precision of a runner, and facts that all workers must share."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.packing_cases import runner_of

from search_space.backbones.declared import DECLARED, table_sha256
from trial_runner import runner
from trial_runner.attachment.frozen_model import default_device
from trial_runner.errors import TrialRequestError
from trial_runner.linear_layers import held_bytes
from trial_runner.runner import AUTO_PRECISION, chosen_precision

CPU = torch.device("cpu")
OF_A_JOB = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}


def test_runner_joins_no_process_group_of_a_surrounding_job(
    tiny_backbone: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OF_A_JOB.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda *_, **__: pytest.fail("a group was opened"))
    made = runner_of(tiny_backbone("bert"))
    assert made.frozen.device.device == default_device()
    made.close()


@pytest.mark.parametrize("has_bf16", [True, False])
def test_auto_precision_follows_hardware_and_environment(has_bf16: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "has_fast_bf16", lambda place: has_bf16)
    monkeypatch.delenv(AUTO_PRECISION, raising=False)
    assert chosen_precision("auto", CPU) == ("bf16" if has_bf16 else "fp32")
    for wanted in ("fp32", "bf16"):
        monkeypatch.setenv(AUTO_PRECISION, wanted)
        assert chosen_precision("auto", CPU) == wanted
        assert [chosen_precision(precision, CPU) for precision in ("fp32", "bf16", "fp64")] == ["fp32", "bf16", "fp64"]


def test_an_unknown_word_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AUTO_PRECISION, "fp64")
    with pytest.raises(TrialRequestError, match="DELTASPACE_AUTO_PRECISION must be fp32 or bf16; got 'fp64'"):
        chosen_precision("auto", CPU)


def test_nodes_must_agree_on_a_table_that_was_made(
    tiny_backbone: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runner_of(tiny_backbone("bert"))
    shape = made.backbone.shape
    assert made.identity.keys() == {"backbone", "data"}
    table = made.backbone.family.ports(shape)
    monkeypatch.setitem(DECLARED, shape, made.backbone.family)
    assert made.identity["table of ports"] == table_sha256(shape, table)[:12]
    again = replace(table, ports=dict(reversed(table.ports.items())))
    ports = {key: replace(place, module=f"{place.module}.inner") for key, place in table.ports.items()}
    assert table_sha256(shape, again) == table_sha256(shape, table) != table_sha256(shape, replace(table, ports=ports))
    made.close()


def test_mapped_file_counts_unused_tensors_on_a_cpu(tiny_backbone: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_backbone("bert"), tmp_path / "bert")
    file = folder / "model.safetensors"
    spare = {"spare": torch.zeros(1_000_000), **load_file(file)}
    for dtype in (torch.float32, torch.bfloat16):
        save_file({name: one.to(dtype) for name, one in spare.items()}, file, {"format": "pt"})
        made = runner_of(folder)
        is_mapped = dtype is torch.float32
        assert made.weights_bytes == (file.stat().st_size if is_mapped else held_bytes(made.backbone.model))
        made.close()
