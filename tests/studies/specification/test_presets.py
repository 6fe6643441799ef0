"""Tasks with the settings of the papers."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Translation, Value

import trial_runner.huggingface
from search_space.dimensions import StackKind
from studies.errors import SpecificationError
from studies.specification import Specification, specification_from_mapping
from studies.specification.presets import PRESETS
from trial_runner.backbones import load_tokenizer, tokenizer_id
from trial_runner.tasks import Prepared, prepare_task

NAMES = tuple(preset.name for preset in PRESETS)
STRING = Value("string")
STRINGS = List(Value("string"))

# Table 8 and appendix A.2 of He et al. 2022; section 4.1 of Chen et al. 2022 and their released scripts.
GLUE = {
    "max_tokens": 512,
    "batch_size": 32,
    "weight_decay": 0.1,
    "betas": (0.9, 0.98),
    "clip_norm": 1.0,
    "warmup_fraction": 0.06,
}
PAPERS: dict[str, dict[str, Any]] = {
    "sst2": GLUE,
    "mnli": GLUE,
    "xsum": {
        "max_tokens": 512,
        "max_target_tokens": 128,
        "label_smoothing": 0.1,
        "beams": 6,
        "min_new_tokens": 10,
        "max_new_tokens": 60,
        "no_repeat_ngram": 3,
        "steps": 100_000,
        "batch_size": 64,
        "weight_decay": 0.01,
        "betas": (0.9, 0.999),
        "clip_norm": 0.1,
        "warmup_fraction": 0.0,
        "metric": "rouge2",
    },
    "wmt16_en_ro": {
        "max_tokens": 150,
        "max_target_tokens": 150,
        "label_smoothing": 0.1,
        "beams": 5,
        "min_new_tokens": 1,
        "max_new_tokens": 200,
        "steps": 50_000,
        "weight_decay": 0.01,
        "betas": (0.9, 0.98),
        "clip_norm": 1.0,
        "metric": "bleu",
    },
    "webnlg": {"label_smoothing": 0.1, "beams": 1, "metric": "bleu"},
    "coqa": {"beams": 1, "metric": "token_f1"},
    "squad": {"metric": "token_f1"},
}


def study(task: dict[str, Any], **others: Any) -> Specification:
    return specification_from_mapping({"name": "s", "backbone": "embedded", "budget": "0.5%", "task": task, **others})


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_has_the_settings_of_the_papers(name: str) -> None:
    made = study({"preset": name})
    said = {**asdict(made.task), **asdict(made.task.decoding), **asdict(made.training)}
    assert {key: said[key] for key in PAPERS[name]} == PAPERS[name]


def test_the_steps_of_a_preset_are_its_epochs() -> None:
    # training examples and epochs of the papers; references for WebNLG, questions for CoQA
    for name, examples, epochs in (
        ("sst2", 67_349, 10),
        ("mnli", 392_702, 10),
        ("webnlg", 18_102, 10),
        ("coqa", 108_647, 5),
    ):
        training = study({"preset": name}).training
        assert abs(training.steps - examples * epochs / training.batch_size) <= 1


def test_every_key_of_a_preset_can_be_given_another_value() -> None:
    made = study(
        {"preset": "xsum", "max_tokens": 99, "metric": "rouge1", "decoding": {"beams": 2}}, training={"steps": 7}
    )
    assert (made.task.max_tokens, made.task.metric, made.training.steps) == (99, "rouge1", 7)
    assert (made.task.decoding.beams, made.task.decoding.max_new_tokens, made.training.batch_size) == (2, 60, 64)


def test_a_preset_for_a_folder_takes_nothing_of_the_hub(tmp_path: Path) -> None:
    source = study({"preset": "webnlg", "folder": str(tmp_path), "source": "input"}).task
    assert (source.folder, source.configuration, source.revision, source.source) == (
        str(tmp_path),
        None,
        None,
        "input",
    )
    mine = study({"preset": "sst2", "hub": "me/mine"}).task
    assert (mine.hub, mine.configuration, dict(mine.splits)) == ("me/mine", None, {})


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_study_is_read_back_as_it_was(name: str) -> None:
    made = study({"preset": name})
    assert Specification.from_json(json.loads(json.dumps(made.as_json()))) == made


def test_a_study_of_a_preset_that_was_stored_before_a_key_existed_gets_the_default_and_not_the_preset() -> None:
    stored: dict[str, Any] = study({"preset": "sst2"}).as_json()
    del stored["training"]["betas"]
    read = Specification.from_json(stored)
    assert (read.training.betas, read.training.weight_decay) == ((0.9, 0.999), 0.1)
    kept = study({"preset": "sst2"}, training={"betas": [0.9, 0.999]})
    assert read.search_identity() == kept.search_identity()


def test_an_unknown_preset_comes_with_the_nearest_known_one() -> None:
    with pytest.raises(SpecificationError, match=r"task\.preset: must be among .*; got 'xsm'; did you mean 'xsum'\?"):
        study({"preset": "xsm"})


def held(name: str) -> DatasetDict:
    """What the hub has under a preset's name, in the same columns and types, with few rows."""

    def rows(split: str, features: Features, make: Any, count: int = 60) -> Dataset:
        return Dataset.from_list([make(f"{split} {n}", n) for n in range(count)], features=features)

    pair = ClassLabel(names=["negative", "positive"])
    three = ClassLabel(names=["entailment", "neutral", "contradiction"])
    answer = {"text": STRINGS, "answer_start": List(Value("int32"))}
    turn = {"input_text": STRINGS, "answer_start": List(Value("int32")), "answer_end": List(Value("int32"))}
    lex = {"comment": STRINGS, "lid": STRINGS, "text": STRINGS, "lang": STRINGS}
    shapes: dict[str, tuple[tuple[str, ...], dict[str, Any], Any]] = {
        "sst2": (
            ("train", "validation", "test"),
            {"sentence": STRING, "label": pair, "idx": Value("int32")},
            lambda text, n: {"sentence": text, "label": -1 if text.startswith("test") else n % 2, "idx": n},
        ),
        "mnli": (
            ("train", "validation_matched", "validation_mismatched", "test_matched", "test_mismatched"),
            {"premise": STRING, "hypothesis": STRING, "label": three, "idx": Value("int32")},
            lambda text, n: {"premise": text, "hypothesis": f"h {n}", "label": n % 3, "idx": n},
        ),
        "xsum": (
            ("train", "validation", "test"),
            {"document": STRING, "summary": STRING, "id": STRING},
            lambda text, n: {"document": text, "summary": f"s {n}", "id": str(n)},
        ),
        "wmt16_en_ro": (
            ("train", "validation", "test"),
            {"translation": Translation(["ro", "en"])},
            lambda text, n: {"translation": {"ro": f"r {n}", "en": text}},
        ),
        "webnlg": (
            ("train", "dev", "test"),
            {"modified_triple_sets": {"mtriple_set": List(STRINGS)}, "lex": lex, "test_category": STRING},
            lambda text, n: {
                "modified_triple_sets": {"mtriple_set": [[f"{text} | is | x"]]},
                "lex": {key: ["a", "b"] for key in lex},
                "test_category": ("testdata_with_lex", "testdata_unseen_with_lex")[n % 2] if "test" in text else "",
            },
        ),
        "coqa": (
            ("train", "validation"),
            {"source": STRING, "story": STRING, "questions": STRINGS, "answers": turn},
            lambda text, n: {
                "source": "x",
                "story": text,
                "questions": ["who?", "why?"],
                "answers": {"input_text": ["a", f"b {n}"], "answer_start": [0, 0], "answer_end": [1, 1]},
            },
        ),
        "squad": (
            ("train", "validation"),
            {"id": STRING, "title": STRING, "context": STRING, "question": STRING, "answers": answer},
            lambda text, n: {
                "id": str(n),
                "title": "t",
                "context": text,
                "question": "what?",
                "answers": {"text": ["a", f"b {n}"], "answer_start": [0, 1]},
            },
        ),
    }
    splits, features, make = shapes[name]
    return DatasetDict({split: rows(split, Features(features), make) for split in splits})


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_reads_what_the_hub_has_under_its_name(
    name: str, tiny_backbone: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "load_dataset", lambda *names, **options: held(name))
    monkeypatch.setattr(trial_runner.huggingface, "_is_resolved", lambda endpoint: True)
    tokenizer = load_tokenizer(str(tiny_backbone("bart")))
    task: Prepared = prepare_task(
        study({"preset": name}).task,
        tokenizer,
        tokenizer_id(tokenizer),
        tmp_path,
        stack=StackKind.ENCODER_DECODER,
    )
    sizes = {split: len(examples) for split, examples in task.splits.items()}
    per_row = {"webnlg": 2, "coqa": 2}.get(name, 1)
    if name in ("sst2", "squad", "coqa", "mnli"):  # the public development set is the test split
        in_test = {"coqa": 120, "mnli": 120}.get(name, 60)
        assert sizes["test"] == in_test
        assert sizes["train"] + sizes["validation"] == 60 * per_row
    else:
        assert sizes == {"train": 60 * per_row, "validation": 60, "test": 60}
    groups = {"mnli": {"matched", "mismatched"}, "webnlg": {"seen", "unseen"}}
    if name in groups:
        assert set(task.splits["test"].groups or ()) == groups[name]
