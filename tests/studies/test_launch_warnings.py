"""What a launch says before any work begins."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from search_space.space.options import SpaceOptions
from search_space.space.space import SearchSpace
from studies.errors import LaunchError, UnknownStudyError
from studies.launch import launch
from studies.launch_warnings import outlook
from studies.ledger.ledger import Ledger
from studies.search.initial_design import InitialDesign
from studies.search.warm_start import ExpectedRate, WarmStart, WarmStartTrial
from studies.study_file import specification_from_mapping

BACKBONE = Path(__file__).parents[1] / "data" / "backbones" / "roberta_base"
METHODS = ("lora_qv", "mam_adapter", "bitfit")


def test_nothing_is_said_where_there_is_nothing_to_say(space):
    assert outlook(space, InitialDesign(published=METHODS), trials=4) == ()


def test_warning_counts_published_trials_and_names_left_out(space):
    assert outlook(space, InitialDesign(published=METHODS), trials=2) == (
        "nothing will be discovered: 3 trials come first, published methods and what was learned, and the study has 2. "
        "bitfit will not be tried. Raise trials above 3, or list fewer in search.published.",
    )
    (exactly,) = outlook(space, InitialDesign(published=METHODS), trials=3)
    assert "will not be tried" not in exactly
    start = WarmStartTrial(study="earlier", trial=3, proposal={})
    learned = InitialDesign(published=METHODS, lessons=WarmStart(starts=(start, start)))
    (line,) = outlook(space, learned, trials=4)
    assert "5 trials come first" in line
    assert "bitfit will not be tried" in line
    # what does not fit takes no trial
    assert outlook(space, InitialDesign(published=("lora_qv", "full_finetuning")), trials=2) == ()


def test_published_only_study_has_no_discovery_warning(space):
    options = SpaceOptions(attention_forms=(), ffn_forms=(), published=("lora_qv:r=2",))
    alone = SearchSpace(shape=space.shape, budget=space.budget, options=options)
    assert outlook(alone, InitialDesign(published=("lora_qv:r=2",)), trials=1) == ()


def test_unusable_budget_warning_gives_equivalent_budget(space):
    only_constants = SpaceOptions(attention_forms=("const",), ffn_forms=("const",))
    small = SearchSpace(shape=space.shape, budget=space.budget, options=only_constants)
    (line,) = outlook(small, InitialDesign(), trials=9)
    # biases of q, k, v and o, or of u and f, at 12 layers of RoBERTa-base
    most = 12 * (2 * 768) + 12 * (3072 + 768)
    assert f"none stores more than {most:,} of 600,000 parameters. A budget of {most:,} says the same." in line


def test_what_was_learned_is_said_in_a_line(space):
    start = WarmStartTrial(study="one", trial=3, proposal={})
    lessons = WarmStart(
        sources=("one", "two"),
        starts=(start,),
        replaced=("bitfit",),
        rates={"lowrank": ExpectedRate(rate=3e-3, deviation=0.4)},
    )
    (line,) = outlook(space, InitialDesign(lessons=lessons), trials=9)
    assert line == (
        "learned from one, two: 1 configuration of theirs comes first in place of bitfit; rates are drawn where theirs "
        "were best for lowrank."
    )
    (line,) = outlook(
        space, InitialDesign(lessons=replace(lessons, starts=(start, start), replaced=(), rates={})), trials=9
    )
    assert line == "learned from one, two: 2 configurations of theirs come first."
    (line,) = outlook(space, InitialDesign(lessons=WarmStart(sources=("one",))), trials=9)
    assert line == "learned from one: nothing that can be used here."


@pytest.mark.parametrize(("labels", "published", "has_head"), [((), "all", False), (("a", "b"), "all", True)])
def test_generation_study_skips_head_only(tmp_path, monkeypatch, labels, published, has_head):
    plans: list[Any] = []
    facts = {"metric": "accuracy", "guessing_loss": None, "constant_score": None}
    task = SimpleNamespace(labels=labels, splits={"validation": range(9)}, **facts)
    monkeypatch.setattr(launch, "prepared", lambda specification: task)

    def run_fleet(specification: object, study: Any, plan: Any, **wishes: object) -> launch.LaunchResult:
        plans.append(plan)
        return launch.LaunchResult(study=study, finished=True, reason="nothing was run")

    monkeypatch.setattr(launch, "run_fleet", run_fleet)

    def opening(published: object, name: str) -> tuple[str, ...]:
        study = {
            "name": name,
            "backbone": str(BACKBONE),
            "task": {"name": "docstrings"},
            "budget": "0.5%",
            "search": {"published": published},
            "fleet": {"artefacts": str(tmp_path)},
        }
        launch.launch(specification_from_mapping(study), storage_url=f"sqlite:///{tmp_path / 'ledger.db'}")
        found: tuple[str, ...] = plans[-1].opening.published
        return found

    assert ("head_only" in opening(published, "word")) is has_head
    assert len(opening(published, "word")) > 10
    if has_head:
        assert opening(["head_only", "bitfit"], "list") == ("head_only", "bitfit")
        return
    with pytest.raises(LaunchError, match=r"^search\.published must .* head_only has no task head .* out\.$"):
        opening(["head_only", "bitfit"], "list")
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger, pytest.raises(UnknownStudyError):
        ledger.study("list")
