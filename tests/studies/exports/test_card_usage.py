"""The Python on a model card, run as it is printed: it makes of a text what the exported trial does."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from deltaspace.commands.main import main
from studies.store.ledger import Ledger

WORDS = ["red", "blue", "hill", "sea", "x", "one", "two", "three"]
CLASSES = {"text": "source", "label": "label", "max_tokens": 24}
TEXTS: dict[str, Any] = {
    "kind": "translation",
    "source": "source",
    "target": "target",
    "metric": "ter",
    "metrics": ["ter"],
    "max_tokens": 24,
    "max_target_tokens": 12,
    "instruction": "say",
    "decoding": {"beams": 2, "min_new_tokens": 2, "max_new_tokens": 6, "no_repeat_ngram": 2},
}
QUESTIONS: dict[str, Any] = {
    "kind": "question_answering",
    "context": "source",
    "question": "target",
    "answers": "label",
    "max_tokens": 40,
    "max_target_tokens": 12,
}
OPTIONS = {"deltaspace": [], "peft": ["--format", "peft"], "merged": ["--merge"]}

pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")


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
        assert main(["export", "one", "0", str(self.folder / form), *OPTIONS[form]]) == 0
        return (self.folder / form / "README.md").read_text()

    def executed(self, form: str) -> dict[str, Any]:
        """What the lines of the card define."""
        (code,) = re.findall(r"```python\n(.*?)```", self.card(form), re.DOTALL)
        known: dict[str, Any] = {}
        exec(code, known)
        return known

    def predicted(self, row: dict[str, str]) -> dict[str, Any]:
        """What ``deltaspace predict`` adds to a line."""
        (self.folder / "in.jsonl").write_text(json.dumps(row) + "\n")
        given, out = str(self.folder / "in.jsonl"), self.folder / "out.jsonl"
        assert main(["predict", str(self.folder / "deltaspace"), "--input", given, "--output", str(out)]) == 0
        line: dict[str, Any] = json.loads(out.read_text())
        return line


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, tiny_backbone: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a study of one published method on a tiny backbone."""
    (tmp_path / "task").mkdir()
    for first, name in enumerate(("train", "validation", "test")):
        texts = [
            " ".join([*WORDS[: 1 + (number * 5) % 7], str(number)]) for number in range(first * 20, first * 20 + 20)
        ]
        rows = [
            {"source": text, "target": text[::-1], "label": ["none", "some"][place % 2]}
            for place, text in enumerate(texts)
        ]
        (tmp_path / "task" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    monkeypatch.setenv("DELTASPACE_STORAGE", url)
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))

    def ran(family: str, task: dict[str, Any], method: str = "lora_qv") -> Ran:
        study = {
            "name": "one",
            "backbone": str(tiny_backbone(family)),
            "task": {"folder": str(tmp_path / "task"), **task},
            "budget": 900,
            "trials": 1,
            "training": {"steps": 4, "batch_size": 8, "precision": "fp32", "warmup_fraction": 0},
            "pruning": {"first_rung_steps": 2},
            "search": {
                "published": [method],
                "learning_rates": {"lowrank": [0.5, 0.5], "prompt": [0.5, 0.5]},
                "learning_rates_of": "weights",
            },
            "fleet": {"backend": "inline", "pack": 1, "artefacts": str(tmp_path / "artefacts")},
        }
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
        assert main(["launch", str(tmp_path / "study.yaml"), "--quiet"]) == 0
        return Ran(url=url, folder=tmp_path)

    return ran


@pytest.mark.parametrize("family", ["bart", "t5", "gpt2"])
def test_every_form_of_an_export_writes_what_the_trial_writes(run: Run, family: str) -> None:
    ran = run(family, TEXTS)
    known = ran.executed("deltaspace")
    known["delta"].detach()
    answer = ran.predicted({"source": "a text"})["prediction"]
    assert known["answer"] == answer != ""
    inputs = {name: known["inputs"][name] for name in ("input_ids", "attention_mask")}
    without = known["model"].generate(**inputs)
    assert without.tolist() != known["tokens"].tolist()
    for form in ("peft", "merged"):
        assert ran.executed(form)["answer"] == answer, form


def test_a_question_is_asked_as_in_training(run: Run) -> None:
    ran = run("gpt2", QUESTIONS)
    known = ran.executed("deltaspace")
    known["delta"].detach()
    assert known["answer"] == ran.predicted({"source": "a text", "target": "a question"})["prediction"] != ""


def test_a_prompt_of_peft_is_before_the_base_model_and_the_head_reads_what_comes_out(run: Run) -> None:
    ran = run("gpt2", TEXTS, "prompt_tuning:l=4")
    with torch.no_grad():
        ours = ran.executed("deltaspace")
        wanted = ours["delta"].logits(ours["inputs"])[:, -1]
        ours["delta"].detach()
        peft = ran.executed("peft")
        hidden = peft["adapted"](**ours["inputs"]).last_hidden_state
    torch.testing.assert_close(peft["model"].get_output_embeddings()(hidden)[:, -1], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", ["roberta", "bert", "bart", "t5", "gpt2"])
def test_a_classification_has_the_logits_of_the_trial(run: Run, family: str) -> None:
    ran = run(family, CLASSES)
    known = ran.executed("deltaspace")
    with torch.no_grad():
        (probabilities,) = known["logits"].double().softmax(dim=-1).tolist()
    known["delta"].detach()
    scores = ran.predicted({"source": "a text"})["scores"]
    assert dict(zip(known["delta"].labels, probabilities, strict=True)) == pytest.approx(scores, abs=1e-6)
    assert type(known["model"]).__name__.endswith("Model")


def test_the_curve_names_the_loss_where_nothing_else_was_measured(run: Run) -> None:
    ran = run("bart", TEXTS)
    with Ledger.open(ran.url, read_only=True) as ledger:
        early, last = ledger.readings(ledger.study("one").id, 0)
    card = ran.card("deltaspace")
    assert "| step | validation ter | training loss |" in card
    assert f"| 2 | loss {early.metrics['validation_loss']:.4f} | {early.train_loss:.4f} |" in card
    assert f"| 4 | {last.metrics['ter']:.4f} | {last.train_loss:.4f} |" in card
    assert f"| validation ter | {last.metrics['ter']:.4f} after 4 steps |" in card
    assert last.score == -last.metrics["ter"] < 0
