"""A search for a task whose answer is a text, and its confirmation: the test split is measured by the metric itself."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu
import yaml
from rouge_score.rouge_scorer import RougeScorer
from support import rotation

from deltaspace.commands.main import main
from studies.ledger.ledger import Ledger
from studies.records import TrialState
from trial_runner.tasks import PROXY_LOSS

WORDS = ("fox", "red", "sees")
METHOD = "scaled_parallel_adapter_ffn"
"""Has learning rates of its own, large ones, where those of LoRA change nothing: the two write other texts."""


def write_texts(folder: Path) -> None:
    """One word each, to be written whatever is read; other rows in every split."""
    folder.mkdir()
    for name, first, size in (("train", 0, 24), ("validation", 100, 10), ("test", 200, 7)):
        rows = [
            {"source": f"{WORDS[number % 3]} {number}", "target": f"a a {WORDS[number % 3]}"}
            for number in range(first, first + size)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def of_the_libraries(metric: str, texts: list[str], references: list[str]) -> float:
    """What the library of a metric makes of texts."""
    if metric == "ter":
        return float(sacrebleu.corpus_ter(texts, [references]).score)
    scorer = RougeScorer([metric], use_stemmer=True)
    pairs = zip(references, texts, strict=True)
    return float(sum(scorer.score(reference, text)[metric].fmeasure for reference, text in pairs) / len(texts))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "kind", "metric", "against"),
    rotation.parts([("bart", "summarisation", "rouge1", "lora_qv"), ("gpt2", "translation", "ter", METHOD)]),
)
def test_a_search_for_texts_is_confirmed_by_its_metric(
    family: str,
    kind: str,
    metric: str,
    against: str,
    tiny_backbone: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    monkeypatch.setenv("DELTASPACE_STORAGE", url)
    write_texts(tmp_path / "texts")
    study = {
        "name": "texts",
        "backbone": str(tiny_backbone(family)),
        "task": {
            "kind": kind,
            "folder": "texts",
            "source": "source",
            "target": "target",
            "metric": metric,
            "max_tokens": 16,
            "max_target_tokens": 12,
        },
        "budget": "10%",
        "trials": 3,
        "training": {"steps": 24, "batch_size": 8, "precision": "fp32"},
        "pruning": {"first_rung_steps": 12},
        "space": {
            "attention_forms": ["lowrank"],
            "ffn_forms": [],
            "learning_rates": {"lowrank": [1e-7, 1e-7], "bottleneck": [0.02, 0.02]},
        },
        "search": {"sampler": "random", "published": ["lora_qv", METHOD]},
        "fleet": {"backend": "inline", "pack": 2, "artefacts": str(tmp_path / "artefacts")},
    }
    (tmp_path / "texts.yaml").write_text(yaml.safe_dump(study))
    assert main(["launch", str(tmp_path / "texts.yaml"), "--quiet"]) == 0
    capsys.readouterr()
    asked = ["--top", "1", "--seeds", "2", "--against", against, "--json", "--quiet"]
    assert main(["confirm", "texts", *asked]) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    sentence, *_ = found["sentences"]
    winner, baseline = found["confirmation"]["contenders"]
    assert {winner["label"], baseline["label"]} == {METHOD, "lora_qv"}
    assert baseline["label"] == against
    sign = -1 if metric == "ter" else 1  # more edits are worse
    ours, theirs = (contender["spread"]["mean"] for contender in (winner, baseline))
    measured = f"{metric} (with a minus sign)" if sign < 0 else metric
    (compared,) = found["confirmation"]["comparisons"]
    assert compared["difference"] == pytest.approx(ours - theirs)
    assert ours > theirs  # as on validation
    who = f"The winner of the search, the published {winner['label']},"
    has_zero = compared["low"] <= 0 <= compared["high"]
    said = (
        f"ties with {against} on the test split: " if has_zero else f"and {against} on the test split: a difference is "
    )
    assert sentence.startswith(f"{who} {said}{'' if has_zero else 'not shown with 2 seeds: '}")
    assert f": {measured} {ours - theirs:+.4f} in the mean" in sentence
    with Ledger.open(url, read_only=True) as ledger:
        own = ledger.study("texts-confirm").id
        trials, readings = ledger.trials(own), ledger.readings(own)
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 4
    assert [trial.score for trial in trials] == [*winner["scores"], *baseline["scores"]]
    for trial, reading in zip(trials, readings, strict=True):
        assert PROXY_LOSS not in reading.metrics
        assert trial.score == sign * reading.metrics[metric]

    assert main(["export", "texts-confirm", "0", str(tmp_path / "away")]) == 0
    files = ["--input", str(tmp_path / "texts" / "test.jsonl"), "--output", str(tmp_path / "written.jsonl")]
    assert main(["predict", str(tmp_path / "away"), *files]) == 0
    rows = [json.loads(line) for line in (tmp_path / "written.jsonl").read_text().splitlines()]
    texts, references = [row["prediction"] for row in rows], [row["target"] for row in rows]
    assert sign * winner["scores"][0] == pytest.approx(of_the_libraries(metric, texts, references), abs=1e-9)
