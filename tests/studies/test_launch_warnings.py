"""Warnings of a launch before any work begins."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from search_space.space.options import SpaceOptions
from search_space.space.space import SearchSpace
from studies.errors import LaunchError, UnknownStudyError
from studies.launch import launch
from studies.launch_warnings import launch_warnings
from studies.ledger.ledger import Ledger
from studies.search.initial_design import InitialDesign
from studies.search.warm_start import ExpectedRate, WarmStart, WarmStartTrial
from studies.study_file import specification_from_mapping

BACKBONE = Path(__file__).parents[1] / "data" / "backbones" / "roberta_base"
METHODS = ("lora_qv", "mam_adapter", "bitfit")


def test_ordinary_study_has_no_warnings(space):
    assert launch_warnings(space, InitialDesign(published=METHODS), trials=6) == ()


def test_warning_counts_published_trials_and_names_left_out(space):
    assert launch_warnings(space, InitialDesign(published=METHODS), trials=2) == (
        "this study searches nothing: all of its 2 trials go to the first of 3 published methods. bitfit will not be "
        "tried. Set --trials above 3, or search.published=[lora_qv].",
    )
    (exactly,) = launch_warnings(space, InitialDesign(published=METHODS), trials=3)
    assert "will not be tried" not in exactly
    start = WarmStartTrial(study="earlier", trial=3, proposal={})
    learned = InitialDesign(published=METHODS, warm_start=WarmStart(starts=(start, start)))
    (line,) = launch_warnings(space, learned, trials=4)
    assert "the first of 5 published methods and warm-start trials." in line
    assert "bitfit will not be tried" in line
    # what does not fit takes no trial
    assert launch_warnings(space, InitialDesign(published=("lora_qv", "full_finetuning")), trials=2) == ()


def test_few_searched_trials_are_counted(space):
    assert launch_warnings(space, InitialDesign(published=METHODS), trials=5) == (
        "3 of 5 trials are published methods; 2 are searched.",
    )


def test_published_only_study_has_no_discovery_warning(space):
    options = SpaceOptions(attention_forms=(), ffn_forms=(), published=("lora_qv:r=2",))
    alone = SearchSpace(shape=space.shape, budget=space.budget, options=options)
    assert launch_warnings(alone, InitialDesign(published=("lora_qv:r=2",)), trials=1) == ()


def test_warnings_of_searched_methods_name_their_key(space):
    options = SpaceOptions(methods=METHODS[:2], size=(0.125, 1.0))
    methods = SearchSpace(shape=space.shape, budget=space.budget, options=options)
    first = InitialDesign(published=METHODS[:2])
    assert launch_warnings(methods, first, trials=4) == ()
    assert launch_warnings(methods, first, trials=3) == (
        "2 of 3 trials are published methods as they are tried first; 1 are searched.",
    )
    (line,) = launch_warnings(methods, first, trials=1)
    assert line.endswith("mam_adapter will not be tried. Set --trials above 2, or space.methods=[lora_qv].")
    # a bounded rank is meant to leave budget unused
    ranked = SpaceOptions(attention_forms=("lowrank",), ffn_forms=(), rank=2)
    bounded = SearchSpace(shape=space.shape, budget=10**7, options=ranked)
    assert launch_warnings(bounded, InitialDesign(), trials=9) == ()


def test_unusable_budget_warning_gives_equivalent_budget(space):
    only_constants = SpaceOptions(attention_forms=("const",), ffn_forms=("const",))
    small = SearchSpace(shape=space.shape, budget=space.budget, options=only_constants)
    (line,) = launch_warnings(small, InitialDesign(), trials=9)
    # biases of q, k, v and o, or of u and f, at 12 layers of RoBERTa-base
    most = 12 * (2 * 768) + 12 * (3072 + 768)
    assert f"they store at most {most:,} of 600,000 parameters. Set budget={most} for the same study." in line


def test_warm_start_is_described_in_one_line(space):
    start = WarmStartTrial(study="one", trial=3, proposal={})
    warm_start = WarmStart(
        sources=("one", "two"),
        starts=(start,),
        replaced=("bitfit",),
        rates={"lowrank": ExpectedRate(rate=3e-3, deviation=0.4)},
    )
    (line,) = launch_warnings(space, InitialDesign(warm_start=warm_start), trials=9)
    assert line == (
        "warm start from one, two: 1 of their configurations comes first in place of bitfit; learning rates of lowrank "
        "are drawn near their best ones."
    )
    (line,) = launch_warnings(
        space, InitialDesign(warm_start=replace(warm_start, starts=(start, start), replaced=(), rates={})), trials=9
    )
    assert line == "warm start from one, two: 2 of their configurations come first."
    (line,) = launch_warnings(space, InitialDesign(warm_start=WarmStart(sources=("one",))), trials=9)
    assert line == "warm start from one: nothing applies to this space."


@pytest.mark.parametrize(("labels", "published", "has_head"), [((), "all", False), (("a", "b"), "all", True)])
def test_generation_study_skips_head_only(tmp_path, monkeypatch, labels, published, has_head):
    plans: list[Any] = []
    facts = {"metric": "accuracy", "guessing_loss": None, "constant_score": None, "digests": {}, "tokenizer": ""}
    task = SimpleNamespace(labels=labels, splits={"validation": range(9)}, dropped=(), cuts=(), **facts)
    monkeypatch.setattr(launch, "prepared", lambda specification: task)

    def run_fleet(
        specification: object, study: Any, plan: Any, ledger: object, **options: object
    ) -> launch.LaunchResult:
        plans.append(plan)
        return launch.LaunchResult(study=study, finished=True, reason="nothing was run")

    monkeypatch.setattr(launch, "run_fleet", run_fleet)

    def initial_design(published: object, name: str) -> tuple[str, ...]:
        study = {
            "name": name,
            "backbone": str(BACKBONE),
            "task": {"name": "docstrings"},
            "budget": "0.5%",
            "search": {"published": published},
            "fleet": {"artefacts": str(tmp_path)},
        }
        launch.launch(specification_from_mapping(study), storage_url=f"sqlite:///{tmp_path / 'ledger.db'}")
        found: tuple[str, ...] = plans[-1].initial_design.published
        return found

    assert ("head_only" in initial_design(published, "word")) is has_head
    assert len(initial_design(published, "word")) > 10
    if has_head:
        assert initial_design(["head_only", "bitfit"], "list") == ("head_only", "bitfit")
        return
    with pytest.raises(LaunchError, match=r"^search\.published must .* head_only has no task head .* out\.$"):
        initial_design(["head_only", "bitfit"], "list")
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger, pytest.raises(UnknownStudyError):
        ledger.study("list")
