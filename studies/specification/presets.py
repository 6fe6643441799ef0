"""Tasks with the settings of the papers: keys of ``task`` and ``training`` that a study file may leave out.

Lengths, smoothing, decoding, schedules and AdamW's betas are those of He et al. 2022 (tables 7 and 8, appendix A.2,
released scripts) for SST-2, MNLI, XSum and WMT16, and of Chen et al. 2022 for WebNLG and CoQA; neither names settings
for SQuAD. Where a paper reports on the public development set, that set is the test split here, which no search sees,
and validation is carved from train. Steps are the papers' epochs over the whole of train.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trial_runner.tasks import TASK_KINDS

_PLACES = ("name", "folder", "hub")
_OF_THE_HUB = ("hub", "configuration", "revision", "splits")
_PARQUET = "refs/convert/parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """What a preset says.

    Attributes:
        name: As written in a study file.
        task: Keys of the section ``task``.
        training: Keys of the section ``training``.
    """

    name: str
    task: Mapping[str, Any]
    training: Mapping[str, Any] = field(default_factory=dict)


_GLUE_TRAINING = {
    "batch_size": 32,
    "warmup_fraction": 0.06,
    "weight_decay": 0.1,
    "betas": [0.9, 0.98],
    "clip_norm": 1.0,
}

PRESETS: tuple[Preset, ...] = (
    Preset(
        name="sst2",
        task={
            "hub": "nyu-mll/glue",
            "configuration": "sst2",
            "text": ["sentence"],
            "label": "label",
            "splits": {"test": "validation"},
            "max_tokens": 512,
            "validation_examples": 1600,
        },
        training={**_GLUE_TRAINING, "steps": 21_047},
    ),
    Preset(
        name="mnli",
        task={
            "hub": "nyu-mll/glue",
            "configuration": "mnli",
            "text": ["premise", "hypothesis"],
            "label": "label",
            "splits": {"test": {"matched": "validation_matched", "mismatched": "validation_mismatched"}},
            "max_tokens": 512,
            "validation_examples": 1600,
        },
        training={**_GLUE_TRAINING, "steps": 122_720},
    ),
    Preset(
        name="xsum",
        task={
            "kind": "summarisation",
            "hub": "EdinburghNLP/xsum",
            "revision": _PARQUET,
            "source": "document",
            "target": "summary",
            "metric": "rouge2",
            "max_tokens": 512,
            "max_target_tokens": 128,
            "label_smoothing": 0.1,
            "validation_examples": 1600,
            "decoding": {"beams": 6, "min_new_tokens": 10, "max_new_tokens": 60, "no_repeat_ngram": 3},
        },
        training={
            "steps": 100_000,
            "batch_size": 64,
            "warmup_fraction": 0.0,
            "weight_decay": 0.01,
            "clip_norm": 0.1,
        },
    ),
    Preset(
        name="wmt16_en_ro",
        task={
            "kind": "translation",
            "hub": "wmt/wmt16",
            "configuration": "ro-en",
            "source": "en",
            "target": "ro",
            "languages": ["en_XX", "ro_RO"],
            "metric": "bleu",
            "max_tokens": 150,
            "max_target_tokens": 150,
            "label_smoothing": 0.1,
            "decoding": {"beams": 5, "min_new_tokens": 1, "max_new_tokens": 200},
        },
        # the paper's 16,384 tokens a step are about so many sentences
        training={
            "steps": 50_000,
            "batch_size": 448,
            "warmup_fraction": 0.0,
            "weight_decay": 0.01,
            "betas": [0.9, 0.98],
            "clip_norm": 1.0,
        },
    ),
    Preset(
        name="webnlg",
        task={
            "kind": "data_to_text",
            "hub": "webnlg-challenge/web_nlg",
            "configuration": "webnlg_challenge_2017",
            "revision": _PARQUET,
            "source": "modified_triple_sets.mtriple_set",
            "target": "lex.text",
            "group": "test_category",
            "groups": {"seen": ["testdata_with_lex"], "unseen": ["testdata_unseen_with_lex"]},
            "metric": "bleu",
            "metrics": ["bleu", "ter", "chrf"],
            "max_tokens": 256,
            "max_target_tokens": 128,
            "label_smoothing": 0.1,
        },
        training={
            "steps": 11_314,
            "batch_size": 16,
            "warmup_fraction": 0.044,
            "weight_decay": 0.0,
            "clip_norm": 1.0,
        },
    ),
    Preset(
        name="coqa",
        task={
            "kind": "question_answering",
            "hub": "stanfordnlp/coqa",
            "context": "story",
            "question": "questions",
            "answers": "answers",
            "splits": {"test": "validation"},
            "metric": "token_f1",
            "max_tokens": 512,
            "max_target_tokens": 32,
        },
        training={
            "steps": 33_952,
            "batch_size": 16,
            "warmup_fraction": 0.015,
            "weight_decay": 0.0,
            "clip_norm": 1.0,
        },
    ),
    Preset(
        name="squad",
        task={
            "kind": "question_answering",
            "hub": "rajpurkar/squad",
            "splits": {"test": "validation"},
            "metric": "token_f1",
            "max_tokens": 384,
            "max_target_tokens": 32,
        },
    ),
)


def with_task_preset(given: Any) -> Any:
    """The keys of a section ``task``, those left out as its preset and its kind have them.

    Data from elsewhere takes the place of all that the preset says of the hub.
    """
    if not isinstance(given, Mapping):
        return given
    named = _preset(given)
    task = dict(named.task) if named is not None else {}
    if any(given.get(key) is not None for key in _PLACES):
        task = {key: value for key, value in task.items() if key not in _OF_THE_HUB}
    decoding = task.get("decoding")
    task |= given
    if isinstance(decoding, Mapping) and isinstance(given.get("decoding"), Mapping):
        task["decoding"] = {**decoding, **given["decoding"]}
    kind = task.get("kind")
    if task.get("metric") is None and isinstance(kind, str) and kind in TASK_KINDS:
        task["metric"] = TASK_KINDS[kind].metrics[0]
    return task


def with_training_preset(given: Any) -> Any:
    """The keys of a study file, those left out of ``training`` as the preset of its task has them."""
    if not isinstance(given, Mapping):
        return given
    named = _preset(given.get("task"))
    training = given.get("training", {})
    if named is None or not isinstance(training, Mapping):
        return given
    return {**given, "training": {**named.training, **training}}


def _preset(task: Any) -> Preset | None:
    name = task.get("preset") if isinstance(task, Mapping) else None
    return next((preset for preset in PRESETS if preset.name == name), None)
