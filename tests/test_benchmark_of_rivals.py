"""The benchmark of rivals: what its arms propose fits the budget, and a trial is trained once."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from search_space.parameter_counts.counts import count
from search_space.published.point import PublishedPoint
from search_space.validity import check_on
from studies.launch.execution import LaunchResult
from trial_runner.requests import Reading, TrialRequest

ROOT = Path(__file__).parents[1]
BACKBONE = ROOT / "tests" / "data" / "backbones" / "roberta_base"


def cell_of(load: Any, folder: Path, budget: str) -> Any:
    given = {"task": "sick", "seed": 0, "backbone": str(BACKBONE), "data": folder, "trials": 3, "steps": 8}
    return load("rival_arms.setting").Cell(
        **given, budget=budget, batch=128, validation=10, folder=folder, until=math.inf
    )


@pytest.mark.parametrize("targets", ["q,v", "q,k,v,o", "all linear"])
def test_a_lora_of_the_sweep_has_the_largest_rank_that_fits(load, tmp_path, targets):
    cell, sweeps = cell_of(load, tmp_path, "0.5%"), load("rival_arms.sweeps")
    found = sweeps.lora(cell, targets, 2.0)
    ranks = {edit.form.width for edit in found.edits}
    (rank,) = ranks
    larger = sweeps._lora_of(cell, targets, rank + 1, 2.0, found.edits[0].layers)
    assert count(found, cell.shape).stored <= cell.parameters < count(larger, cell.shape).stored


@pytest.mark.parametrize(("targets", "rank"), [("q,k,v,o", 192), ("FFN", 576)])
def test_no_rank_is_above_the_width_of_a_projection(load, tmp_path, targets, rank):
    cell = replace(cell_of(load, tmp_path, "90%"), backbone=str(BACKBONE.parent / "smollm2_135m"))
    found = load("rival_arms.sweeps").lora(cell, targets, 2.0)
    assert {edit.form.width for edit in found.edits} == {rank}
    check_on(found.edits, cell.shape)


@pytest.mark.parametrize("backbone", ["roberta_base", "smollm2_135m", "flan_t5_small"])
def test_all_linear_layers_are_those_of_the_published_method(load, tmp_path, backbone):
    cell = replace(cell_of(load, tmp_path, "1%"), backbone=str(BACKBONE.parent / backbone))
    found = load("rival_arms.sweeps").lora(cell, "all linear", 2.0)
    published = PublishedPoint("lora_all").configuration(cell.shape, parameters=cell.parameters, scale=2.0)
    places = [{(edit.site, edit.write, edit.read) for edit in one.edits} for one in (found, published)]
    assert places[0] == places[1]


def test_an_embedded_task_needs_no_folder(load, tmp_path):
    cell = replace(cell_of(load, tmp_path, "0.5%"), task="docstrings")
    assert "folder" not in cell.task_keys
    assert cell.specification.task.name == "docstrings"
    with pytest.raises(SystemExit):
        load("rivals").arguments_of(["--backbone", "embedded", "--tasks", "docstrings", "sick"])
    assert load("rivals").arguments_of(["--backbone", "embedded", "--tasks", "docstrings"]).data is None


def test_where_rank_1_is_too_large_lora_is_at_the_last_layers(load, tmp_path):
    cell, sweeps = cell_of(load, tmp_path, "10000"), load("rival_arms.sweeps")
    layers = sweeps.lora(cell, "q,v", 2.0).edits[0].layers
    assert (layers.first, layers.last) == (9, 11)  # 4 * 768 a layer
    assert sweeps.lora(cell_of(load, tmp_path, "3000"), "q,v", 2.0) is None


def test_adapters_and_prefixes_fill_the_budget_in_their_proportion(load, tmp_path):
    cell, sweeps = cell_of(load, tmp_path, "0.5%"), load("rival_arms.sweeps")
    found = sweeps._largest_modules(cell, {"serial": 1, "parallel": 3, "prefix": 0}, [2, 5])
    serial, parallel = (edit.form.width for edit in found.edits)
    assert parallel == 4 * serial
    assert 0.9 * cell.parameters < count(found, cell.shape).stored <= cell.parameters
    assert sweeps._largest_modules(cell, {"serial": 0, "parallel": 0, "prefix": 0}, [2, 5]).edits == ()


class Trained:
    """A pack, and a runner, whose readings are the steps done; counts the trials that were begun."""

    begun = 0

    def open_pack(self, slots: int) -> "Trained":
        return self

    def admit(self, request: TrialRequest) -> None:
        self.request, self.step = request, 0
        self.begun += 1

    def advance(self, steps: int) -> Sequence[Reading]:
        before, self.step = self.step, self.step + steps
        at = [step for step in self.request.plan.evaluate_at_steps if before < step <= self.step]
        return [Reading(trial=0, step=one, score=one, train_loss=0.0, seconds=0.0) for one in at]


def test_a_trial_is_trained_once_and_again_only_where_more_of_it_is_needed(load, tmp_path):
    cell, inner = cell_of(load, tmp_path, "0.5%"), Trained()
    task = cell.specification.task
    runner = load("rival_arms.training").CachedRunner(backbone="a", task=task, folder=tmp_path, until=math.inf)
    runner.__dict__["inner"] = inner
    request = cell.request(0, load("rival_arms.sweeps").lora(cell, "q,v", 2.0), 1e-3, None)
    steps = request.plan.evaluate_at_steps
    assert next(runner.readings(request)).step == steps[0]
    assert inner.begun == 1
    assert [next(runner.readings(request)).step for _ in range(2)] == [steps[0]] * 2
    assert inner.begun == 1
    for _ in range(2):
        assert [one.step for one in runner.readings(request)] == list(steps)
        assert inner.begun == 2
    list(runner.readings(replace(request, seed=request.seed + 1)))
    assert inner.begun == 3
    runner.until = -math.inf
    assert [one.step for one in runner.readings(request)] == list(steps)
    with pytest.raises(load("rival_arms.training").OutOfTime):
        next(runner.readings(replace(request, seed=request.seed + 2)))


def test_a_signal_to_a_study_ends_the_comparison(load, tmp_path, monkeypatch):
    own, cell = load("rival_arms.own"), cell_of(load, tmp_path, "0.5%")
    cell.runner.until = time.monotonic() + 60
    ended = LaunchResult(study=None, finished=False, reason="stopped", is_interrupted=True)
    monkeypatch.setattr(own, "launch", lambda *_, **__: ended)
    with pytest.raises(SystemExit, match="The same command continues it"):
        own.factored(cell)
    monkeypatch.setattr(own, "launch", lambda *_, **__: replace(ended, is_interrupted=False))
    with pytest.raises(load("rival_arms.training").OutOfTime):
        own.factored(cell)
