"""The benchmark of a sweep: peft gets the study's configurations, ratios follow from the costs, and it runs."""

from typing import Any

import pytest
from support.processes import ROOT, printed_by

from search_space.parameter_counts.counts import count
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace
from studies.study_file import specification_of
from trial_runner.backbones import load_backbone

SWEEP = ROOT / "benchmarks" / "sweep.py"


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")
def test_peft_trains_as_many_parameters_as_the_study(load, tmp_path, tiny_backbone):
    from peft import LoraConfig, TaskType, get_peft_model
    from transformers import AutoModelForSequenceClassification

    sweep = load("sweep")
    folder = tiny_backbone("roberta")
    backbone = load_backbone(str(folder))
    options = sweep.arguments_of(["--budget", "4%"])
    specification = specification_of(sweep.study_of(options, str(folder), tmp_path))
    space = SearchSpace(
        shape=backbone.shape,
        budget=specification.budget_parameters(backbone.shape),
        options=specification.space_options,
    )
    seen = set()
    for seed in range(6):
        configuration = space.suggest(RandomTrial(seed)).configuration
        base = AutoModelForSequenceClassification.from_pretrained(folder)
        arguments = sweep.lora_of(configuration, backbone, tmp_path)
        model = get_peft_model(base, LoraConfig(task_type=TaskType.SEQ_CLS, **arguments))
        trained = sum(one.numel() for name, one in model.named_parameters() if ".lora_" in name)
        assert trained == count(configuration, backbone.shape).stored
        assert all(one.requires_grad for name, one in model.named_parameters() if ".lora_" in name)
        seen.add((trained, len({*arguments["rank_pattern"].values()})))
    assert len(seen) > 1, "configurations of one size would show nothing"
    assert max(ranks for _, ranks in seen) > 1, "ranks that differ by layer are needed"


def test_a_ratio_is_the_median_of_pairs(load):
    sweep = load("sweep")

    def costs(*seconds: float) -> list[Any]:
        return [sweep.Cost(wall_seconds=one, processor_seconds=one / 2, output="") for one in seconds]

    printed = sweep.line("launch", costs(10, 20, 10), costs(40, 60, 50))
    assert "10.0 s" in printed
    assert printed.count("4.00x (3.00 to 5.00)") == 2
    own = costs(1, 2)
    assert "x (" not in sweep.line("script", own, own)


@pytest.mark.slow
def test_both_arms_of_the_sweep_run(tiny_backbone, tmp_path):
    for split, rows in (("train", 24), ("validation", 12), ("test", 12)):
        lines = [f'{{"text": "a text of {row}", "label": "{row % 2}"}}\n' for row in range(rows)]
        (tmp_path / f"{split}.jsonl").write_text("".join(lines))
    options = "--trials 2 --steps 2 --batch 2 --tokens 8 --pairs 1 --budget 2%"
    printed = printed_by(SWEEP, *options.split(), "--backbone", tiny_backbone("roberta"), "--data", tmp_path)
    assert "2 trials of 2 steps of 2 texts" in printed
    for words in ("Optuna + Trainer + peft", "deltaspace launch", "x (", "mean score"):
        assert words in printed
