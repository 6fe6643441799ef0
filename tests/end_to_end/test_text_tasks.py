"""The shipped example studies, launched on tiny random backbones and a few rows in the shape of their data."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import sklearn.metrics
from rouge_score.rouge_scorer import RougeScorer
from support import rotation
from support.export_commands import write_rows

from deltaspace.commands.main import main
from studies.ledger.ledger import Ledger
from studies.records import Reading, StudyRecord, TrialRecord, TrialState
from studies.study_file.parser import example_names
from trial_runner.tasks import PROXY_LOSS

Row = dict[str, Any]

CITIES = ("Rome", "Oslo", "Bern", "Lima")


@dataclass(frozen=True, kw_only=True)
class Example:
    """Trial run of an example.

    Attributes:
        family: Family of the tiny backbone.
        row: Function from split and number to a row.
        settings: Keys of the study file that would not fit a backbone of two layers.
    """

    family: str
    row: Callable[[str, int], Row]
    settings: Mapping[str, object]


def _sentence(number: int) -> str:
    return f"a red fox sees {CITIES[number % 4]} no {number}"


def _review(_: str, number: int) -> Row:
    return {"sentence": _sentence(number), "label": number % 2, "idx": number}


def _pair(_: str, number: int) -> Row:
    return {"premise": _sentence(number), "hypothesis": f"it is {CITIES[number % 3]}", "label": number % 3}


def _request(_: str, number: int) -> Row:
    return {"text": _sentence(number), "label_text": ("card", "fee", "pin")[number % 3], "label": number % 3}


def _translation(_: str, number: int) -> Row:
    return {"translation": {"en": _sentence(number), "de": f"ein roter fuchs in {CITIES[number % 4]}"}}


def _facts(_: str, number: int) -> Row:
    city = CITIES[number % 4]
    return {
        "category": "City",
        "modified_triple_sets": [f"{city}_{number} | is_in | land", f"{city} | size | {number}"],
        "references": [f"{city} {number} is in the land", f"in the land is {city} {number}"],
        "seen_category": number % 2 == 0,
    }


def _restaurant(split: str, number: int) -> Row:
    row: Row = {"meaning_representation": f"name : {CITIES[number % 4]} {number} | food : red"}
    written = [f"{CITIES[number % 4]} {number} has red food", f"red food is at {CITIES[number % 4]} {number}"]
    return row | ({"human_reference": written[0]} if split == "train" else {"references": written})


def _news(_: str, number: int) -> Row:
    return {
        "id": str(number),
        "document": f"{_sentence(number)} and goes on",
        "summary": f"fox sees {number} red foxes",
    }


_SHORT = {"task.max_tokens": 40, "task.max_target_tokens": 24}

EXAMPLES: Mapping[str, Example] = {
    "sst2": Example(family="roberta", row=_review, settings={}),
    "snli": Example(family="bart", row=_pair, settings={}),
    "banking77": Example(family="gpt2", row=_request, settings={}),
    "multi30k_en_de": Example(family="t5", row=_translation, settings={"task.max_tokens": 80}),
    "webnlg": Example(family="gpt2", row=_facts, settings=_SHORT),
    "e2e_nlg": Example(family="t5_gated", row=_restaurant, settings={}),
    "reuters_headlines": Example(family="bart", row=_news, settings=_SHORT),
}
LABEL_OF: Mapping[str, Callable[[Row], str]] = {
    "sst2": lambda row: str(row["label"]),
    "snli": lambda row: ("entailment", "neutral", "contradiction")[row["label"]],
    "banking77": lambda row: str(row["label_text"]),
}
REFERENCES_OF: Mapping[str, Callable[[Row], list[str]]] = {
    "multi30k_en_de": lambda row: [row["translation"]["de"]],
    "webnlg": lambda row: row["references"],
    "e2e_nlg": lambda row: row["references"],
    "reuters_headlines": lambda row: [row["summary"]],
}
OWN = ("perplexity", "same_prediction")
"""Measured beside the losses by no library."""

TEXTS = ("multi30k_en_de", "webnlg", "e2e_nlg", "reuters_headlines")


@dataclass(frozen=True, kw_only=True)
class Launched:
    """Finished study.

    Attributes:
        place: Folder of its storage and its data.
        study: Record of the study.
        trials: All trials.
        readings: Readings of all trials.
    """

    place: Path
    study: StudyRecord
    trials: list[TrialRecord]
    readings: list[Reading]


Launch = Callable[..., Launched]


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory, tiny_backbone: Callable[..., Path]) -> Launch:
    """Launch an example study with three trials of four steps in this process, once per example."""

    @cache
    def launch(name: str, **more: object) -> Launched:
        example, place = EXAMPLES[name], tmp_path_factory.mktemp(name)
        for split, first, size in (("train", 0, 24), ("validation", 100, 10), ("test", 200, 6)):
            rows = [example.row(split, number) for number in range(first, first + size)]
            write_rows(place / name / f"{split}.jsonl", rows)
        settings: dict[str, object] = {
            "backbone": tiny_backbone(example.family),
            "task.folder": place / name,
            "budget": "10%",
            "trials": 3,
            "training.steps": 4,
            "training.batch_size": 4,
            "training.precision": "fp32",
            "pruning.first_rung_steps": 2,
            "search.published": "[lora_qv, mam_adapter]",
            "fleet.backend": "inline",
            "fleet.pack": 2,
            "fleet.artefacts": place / "artefacts",
        }
        chosen = settings | dict(example.settings) | {key.replace("__", "."): value for key, value in more.items()}
        url = f"sqlite:///{place / 'ledger.db'}"
        given = [part for key, value in chosen.items() for part in ("--set", f"{key}={value}")]
        assert main(["launch", name, "--storage", url, "--quiet", *given]) == 0, (place / "ledger.db").exists()
        with Ledger.open(url, read_only=True) as ledger:
            (study,) = ledger.studies()
            trials, readings = ledger.trials(study.id), ledger.readings(study.id)
        return Launched(place=place, study=study, trials=trials, readings=readings)

    return launch


def of_the_libraries(texts: list[str], references: list[list[str]]) -> dict[str, float]:
    """Compute the metrics with sacrebleu and rouge-score."""
    streams = [list(stream) for stream in zip(*references, strict=True)]
    found = {
        "bleu": sacrebleu.corpus_bleu(texts, streams).score,
        "chrf": sacrebleu.corpus_chrf(texts, streams).score,
        "ter": sacrebleu.corpus_ter(texts, streams).score,
    }
    for name in ("rouge1", "rouge2", "rougeL", "rougeLsum"):
        scorer = RougeScorer([name], use_stemmer=True)
        pairs = zip(references, texts, strict=True)
        found[name] = sum(scorer.score_multi(each, text)[name].fmeasure for each, text in pairs) / len(texts)
    return found


def of_scikit_learn(predictions: list[str], labels: list[str], name: str) -> dict[str, float]:
    """Compute the metrics of a classification; F1 is that of the second of two labels, else the mean over labels."""
    how = {"average": "binary", "pos_label": "1"} if name == "sst2" else {"average": "macro"}
    return {
        "accuracy": sklearn.metrics.accuracy_score(labels, predictions),
        "f1": sklearn.metrics.f1_score(labels, predictions, zero_division=0, **how),
        "matthews": sklearn.metrics.matthews_corrcoef(labels, predictions),
    }


def test_every_example_of_a_folder_is_here():
    # the last two are in test_instruction.py and test_intrinsic_dimension.py
    tested_separately = {"docstrings", "qwen3_instruct", "intrinsic_dimension"}
    assert set(EXAMPLES) == set(example_names()) - tested_separately


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_shipped_example_runs_a_search(launched, name):
    done = launched(name)
    assert [trial.method for trial in done.trials] == ["lora_qv", "mam_adapter", None]
    assert all(trial.state in (TrialState.COMPLETE, TrialState.PRUNED) for trial in done.trials), done.trials
    assert sum(trial.state is TrialState.COMPLETE for trial in done.trials) >= 2
    is_text = name in TEXTS
    assert all((trial.head_parameters == 0) == is_text for trial in done.trials)
    assert {reading.step for reading in done.readings} == {2, 4}
    for reading in done.readings:
        is_final = reading.step == 4
        assert (done.study.metric in reading.metrics) == (is_final or not is_text)
        assert (PROXY_LOSS in reading.metrics) == (is_text and not is_final)
        expected = reading.metrics[done.study.metric] if is_final or not is_text else -reading.metrics[PROXY_LOSS]
        assert reading.score == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", rotation.third(list(EXAMPLES)))
def test_metrics_equal_those_of_the_libraries_on_predictions(launched, tmp_path, name):
    done = launched(name)
    place, export, output = done.place, str(tmp_path / "export"), tmp_path / "predicted.jsonl"
    assert main(["export", done.study.name, "best", export, "--storage", f"sqlite:///{place / 'ledger.db'}"]) == 0
    lines = str(place / name / "validation.jsonl")
    assert main(["predict", export, "--input", lines, "--output", str(output), "--batch-size", "3"]) == 0
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    predictions = [row["prediction"] for row in rows]
    best = max((one for one in done.trials if one.score is not None), key=lambda one: (one.score, -one.number))
    if name in TEXTS:
        references = [REFERENCES_OF[name](row) for row in rows]
        expected = of_the_libraries(predictions, references)
        for group, is_seen in (("seen", True), ("unseen", False)) if name == "webnlg" else ():
            some = [place for place, row in enumerate(rows) if row["seen_category"] == is_seen]
            found = of_the_libraries([predictions[place] for place in some], [references[place] for place in some])
            expected |= {f"{key}_{group}": value for key, value in found.items()}
    else:
        expected = of_scikit_learn(predictions, [LABEL_OF[name](row) for row in rows], name)
    (final,) = [one for one in done.readings if one.trial == best.number and one.step == 4]
    measured = {key: value for key, value in final.metrics.items() if key not in OWN and "loss" not in key}
    assert measured == pytest.approx({key: expected[key] for key in measured}, abs=1e-9)
    assert best.score == measured[done.study.metric]
    if name == "webnlg":
        assert {"bleu_seen", "bleu_unseen", "chrf_seen", "ter"} <= measured.keys()
    if "chrf" in measured:  # of random weights hardly a word is right
        assert any(measured.values())
    if name not in TEXTS:  # tells lines apart that get the same label
        losses = [-math.log(row["scores"][LABEL_OF[name](row)]) for row in rows]
        assert final.metrics["validation_loss"] == pytest.approx(sum(losses) / len(losses), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("multi30k_en_de", "deltaspace: a translation task needs a backbone that generates"),
        ("webnlg", "max_tokens and max_target_tokens together must be at most 66"),
    ],
    ids=["encoder", "too many tokens"],
)
def test_impossible_generation_is_refused_before_storing(launched, tiny_backbone, capsys, name, reason):
    options = {"task__max_tokens": 60} if name == "webnlg" else {"backbone": tiny_backbone("roberta")}
    with pytest.raises(AssertionError, match="False"):
        launched(name, **options)
    assert reason in capsys.readouterr().err.strip().splitlines()[-1]  # warnings of libraries come before
