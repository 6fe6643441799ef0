"""The Python on a model card, run as it is printed, by a Python without this project.

What it says of texts that must be cut and padded is what the exported trial says.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from support.fresh_python import run_afresh

from deltaspace.commands.main import main
from studies.exports.card_usage import place_of
from studies.ledger.ledger import Ledger
from trial_runner.backbones import BackboneSource

WORDS = ["red", "blue", "hill", "sea", "x", "one", "two", "three"]
CLASSES = {"text": "source", "label": "label", "max_tokens": 24}
PAIRS = CLASSES | {"text": ["source", "target"], "max_tokens": 32}
TEXTS: dict[str, Any] = {
    "kind": "translation",
    "source": "source",
    "target": "target",
    "metric": "ter",
    "metrics": ["ter"],
    "max_tokens": 24,
    "max_target_tokens": 12,
    "instruction": "say {it}",
    "decoding": {"beams": 2, "min_new_tokens": 2, "max_new_tokens": 6, "no_repeat_ngram": 2},
}
QUESTIONS: dict[str, Any] = {
    "kind": "question_answering",
    "questions": {"context": "source", "question": "target", "answers": "label"},
    "max_tokens": 40,
    "max_target_tokens": 12,
}
TASKS = {"classes": CLASSES, "pairs": PAIRS, "texts": TEXTS, "questions": QUESTIONS}
OPTIONS = {"deltaspace": [], "peft": ["--format", "peft"], "merged": ["--merge"]}
ALONE = ("peft", "merged")
ROWS = 60

pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")


def text_of(number: int) -> str:
    """Return a text of 2 to 40 tokens: words of one to five letters are split into letters."""
    return " ".join([*WORDS[number % 3 : number % 3 + number % 11], str(number)])


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A study of one trial that has ended.

    Attributes:
        url: Its storage.
        folder: A place for exports.
    """

    url: str
    folder: Path

    def card(self, form: str) -> str:
        if not (self.folder / form).exists():
            command = ["export", "one", "0", str(self.folder / form), "--storage", self.url, *OPTIONS[form]]
            assert main(command) == 0
        return (self.folder / form / "README.md").read_text()

    def code(self, form: str, *, texts: list[Any] | None = None) -> str:
        """Return the code of the card, with other texts if any are given."""
        (code,) = re.findall(r"```python\n(.*?)```", self.card(form), re.DOTALL)
        if texts is None:
            return code
        (given,) = re.findall(r"^texts = .*$", code, re.MULTILINE)
        return code.replace(given, f"texts = {texts!r}")

    def executed(self, form: str, **others: Any) -> dict[str, Any]:
        """Execute the code of the card in this process and return its variables."""
        variables: dict[str, Any] = {}
        code = self.code(form, **others)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder / form)
            exec(code, variables)
        return variables

    def predicted(self, rows: list[dict[str, str]], form: str = "deltaspace") -> list[dict[str, Any]]:
        """Return the lines that ``deltaspace predict`` writes for these rows."""
        self.card(form)
        given, out = self.folder / "in.jsonl", self.folder / f"{form}.jsonl"
        given.write_text("".join(json.dumps(row) + "\n" for row in rows))
        out.unlink(missing_ok=True)
        assert main(["predict", str(self.folder / form), "--input", str(given), "--output", str(out)]) == 0
        return [json.loads(line) for line in out.read_text().splitlines()]


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny_backbone: Callable[[str], Path]) -> Run:
    """Run a study of one published method on a tiny backbone, once per set of arguments."""
    data = tmp_path_factory.mktemp("task")
    for first, name in enumerate(("train", "validation", "test")):
        texts = [(number, text_of(number)) for number in range(first * 20, first * 20 + 20)]
        labels = {True: "none", False: "some"}
        rows = [{"source": text, "target": text[::-1], "label": labels[of % 11 < 6]} for of, text in texts]
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    @cache
    def launched(family: str, named: str, method: str = "lora_qv") -> Ran:
        task = TASKS[named]
        folder = tmp_path_factory.mktemp("one")
        # enough to tell long texts from short ones; texts are written by whatever it is
        training = {"steps": 4} if "kind" in task else {"steps": 16, "head_learning_rate": 0.3}
        rate = 1.0 if "kind" in task else 0.04  # of the output; that of the weights is half at the scale 2
        study = {
            "name": "one",
            "backbone": str(tiny_backbone(family)),
            "task": {"folder": str(data), **task},
            "budget": 900,
            "trials": 1,
            "training": training | {"batch_size": 8, "precision": "fp32", "warmup_fraction": 0},
            "pruning": {"first_rung_steps": training["steps"] // 2},
            "space": {"learning_rates": {form: [rate, rate] for form in ("lowrank", "prompt", "diag")}},
            "search": {"published": [method]},
            "fleet": {"backend": "inline", "pack": 1, "artefacts": str(folder / "artefacts")},
        }
        (folder / "study.yaml").write_text(yaml.safe_dump(study))
        url = f"sqlite:///{folder / 'ledger.db'}"
        assert main(["launch", str(folder / "study.yaml"), "--storage", url, "--quiet"]) == 0
        return Ran(url=url, folder=folder)

    return launched


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the environment without this project, which is built once."""
    return tmp_path_factory.mktemp("stock")


NEW = [{"source": text_of(number), "target": text_of(number + 1)} for number in range(100, 100 + ROWS)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "task"),
    [("roberta", "classes"), ("gpt2", "classes"), ("bart", "classes"), ("bert", "pairs")],
)
def test_exported_folder_alone_predicts_the_same_labels(run, stock, family, task):
    ran = run(family, task)
    ours = ran.predicted(NEW)
    texts = [(row["source"], row["target"]) for row in NEW] if task == "pairs" else [row["source"] for row in NEW]
    variables = ran.executed("deltaspace", texts=texts)
    variables["delta"].detach()
    assert variables["answers"] == [line["prediction"] for line in ours]
    for form in ALONE:
        for one, line in zip(ran.predicted(NEW, form), ours, strict=True):
            assert one["prediction"] == line["prediction"]
            assert one["scores"] == pytest.approx(line["scores"], abs=1e-5)
    cut = [(ran.folder / form, ran.code(form, texts=texts), ("answers", "logits")) for form in ALONE]
    programs = cut + [(home, code.replace("truncation=True", "truncation=False"), names) for home, code, names in cut]
    *found, without, cut_by_itself = run_afresh(programs, stock)
    for form, each in zip(ALONE, found, strict=True):
        changed = [one for one, line in zip(each["answers"], ours, strict=True) if one != line["prediction"]]
        assert changed == [], form
        scores = torch.tensor(each["logits"], dtype=torch.float64).softmax(dim=-1)
        wanted = torch.tensor([list(line["scores"].values()) for line in ours], dtype=torch.float64)
        torch.testing.assert_close(scores, wanted, rtol=0, atol=1e-5)
    assert {line["prediction"] for line in ours} == {"none", "some"}
    differences = torch.tensor(without["logits"]) - torch.tensor(found[0]["logits"])
    assert differences.abs().max() > 1e-2  # texts that are not cut are others
    assert cut_by_itself["answers"] == found[1]["answers"]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_every_form_of_an_export_generates_the_same_texts(run, stock, family):
    ran = run(family, "texts")
    answers = [line["prediction"] for line in ran.predicted(NEW[:12])]
    texts = [row["source"] for row in NEW[:12]]
    variables = ran.executed("deltaspace", texts=texts)
    variables["delta"].detach()
    assert variables["answers"] == answers
    assert len(set(answers)) > 2
    inputs = {name: variables["inputs"][name] for name in ("input_ids", "attention_mask")}
    assert variables["model"].generate(**inputs).tolist() != variables["tokens"].tolist()  # without the delta
    programs = [(ran.folder / form, ran.code(form, texts=texts), ("answers",)) for form in ALONE]
    for found in run_afresh(programs, stock):
        assert found["answers"] == answers


@pytest.mark.slow
def test_question_prompt_equals_that_of_training(run):
    ran = run("gpt2", "questions")
    texts = [(row["source"], row["target"]) for row in NEW[:6]]
    wanted = [line["prediction"] for line in ran.predicted(NEW[:6])]
    for form in ALONE:
        assert ran.executed(form, texts=texts)["answers"] == wanted
        assert [line["prediction"] for line in ran.predicted(NEW[:6], form)] == wanted


@pytest.mark.filterwarnings("ignore:Position ids are not supported:UserWarning")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "task", "method"),
    [
        *((family, task, "prompt_tuning:l=4") for family in ("gpt2", "t5") for task in ("texts", "classes")),
        ("olmo2", "classes", "ia3"),  # peft has no class for its head, which lies in a file
    ],
)
def test_an_adapter_of_peft_answers_as_the_trial(run, family, task, method):
    ran = run(family, task, method)
    wanted = [line["prediction"] for line in ran.predicted(NEW[:12])]
    assert ran.executed("peft", texts=[row["source"] for row in NEW[:12]])["answers"] == wanted
    assert [line["prediction"] for line in ran.predicted(NEW[:12], "peft")] == wanted


def test_only_a_delta_on_the_embedded_backbone_needs_this_project(tmp_path):
    embedded = BackboneSource(name="embedded")
    places = {kind: place_of(kind, embedded, tmp_path, has_head=True).backbone for kind in ("deltaspace", "peft")}
    assert places == {"deltaspace": "embedded_folder()", "peft": '"backbone"'}


def test_card_has_labels_and_lengths_and_no_local_paths(run):
    ran = run("roberta", "classes")
    for form in OPTIONS:
        card = ran.card(form)
        assert "cut to 24 tokens, as in training, and padded on the right. The labels are `none`, `some`." in card
        assert re.findall(r"""["'(`]/[\w.]""", card.replace("`/", "")) == [], form


def test_curve_shows_the_loss_where_it_is_the_only_metric(run):
    ran = run("bart", "texts")
    with Ledger.open(ran.url, read_only=True) as ledger:
        early, last = ledger.readings(ledger.study("one").id, 0)
    card = ran.card("deltaspace")
    assert "| step | validation ter | training loss |" in card
    assert f"| 2 | loss {early.metrics['validation_loss']:.4f} | {early.train_loss:.4f} |" in card
    assert f"| 4 | {last.metrics['ter']:.4f} | {last.train_loss:.4f} |" in card
    assert f"| validation ter | {last.metrics['ter']:.4f} after 4 steps |" in card
    assert last.score == -last.metrics["ter"] < 0
