"""Models of today from a study file to answers in an environment that has transformers and peft, and not this project.

Each is launched, confirmed and exported in the forms that stock libraries load; there the lines of the cards answer as
`deltaspace predict` does, and the classes that people load give the logits of the trial.
"""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from support import rotation
from support.chat_studies import chat_study, short_training
from support.fresh_python import run_afresh
from torch import Tensor

from deltaspace import load_delta
from deltaspace.commands.main import main

DECODERS = ("qwen3", "mistral", "gemma", "gemma3")
ENCODERS = ("modernbert", "deberta-v2")
FORMS = {"deltaspace": [], "peft": ["--format", "peft"], "merged": ["--merge"]}
STOCK = {"peft": "AutoPeftModelForCausalLM", "merged": "AutoModelForCausalLM"}
LORA = "0"
"""The published method comes first."""
ASKED = [[5, 9, 14, 7, 21], [11, 6, 30, 8, 17]]
WITHIN = 1e-4
"""Of logits and probabilities below 10, in float32: a hundred times its rounding."""
LOGITS = f"""
import torch
from {{library}} import {{name}}

model = {{name}}.from_pretrained(".", dtype=torch.float32).eval()
with torch.no_grad():
    logits = model(input_ids=torch.tensor({ASKED})).logits
"""


def labelled_study(folder: Path, encoder: Path, *, name: str) -> Path:
    """As `chat_study`: texts of few or of many words."""
    (folder / "data").mkdir(parents=True)
    draw = random.Random(0)
    for split, size in {"train": 24, "validation": 10, "test": 8}.items():
        texts = [" ".join(draw.choices(["red", "sea", "x"], k=draw.randrange(1, 9))) for _ in range(size)]
        rows = [{"text": f"{text} {split}", "label": "few" if len(text) < 12 else "many"} for text in texts]
        (folder / "data" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = {"folder": "data", "text": "text", "label": "label", "max_tokens": 24}
    study = {"name": name, "backbone": str(encoder), "task": task, **short_training(folder, head_learning_rate=0.3)}
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    return folder / "study.yaml"


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A trial of a family that was taken away, in every form.

    Attributes:
        place: Of a folder for each form.
        texts: What is asked.
        lines: What ``deltaspace predict`` makes of them.
    """

    place: Path
    texts: list[str]
    lines: list[dict[str, Any]]

    def card(self, form: str) -> str:
        """The lines of Python on a card, asked our texts."""
        (code,) = re.findall(r"```python\n(.*?)```", (self.place / form / "README.md").read_text(), re.DOTALL)
        found: str = re.sub(r"^texts = .*$", lambda _: f"texts = {self.texts!r}", code, flags=re.MULTILINE)
        return found

    def logits(self) -> tuple[Tensor, Tensor]:
        """Those of the language model with the trial, and without it."""
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(self.place / "backbone", dtype=torch.float32).eval()
        delta = load_delta(model, self.place / "deltaspace")
        with torch.no_grad():
            ours = model(input_ids=torch.tensor(ASKED)).logits
            delta.detach()
            return ours, model(input_ids=torch.tensor(ASKED)).logits


@pytest.fixture
def taken(
    tmp_path: Path,
    tiny_backbone: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[str], Taken]:
    """Launches a study of a family, confirms it, and takes its LoRA away."""

    def take(family: str) -> Taken:
        place = tmp_path / family
        monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{place / 'ledger.db'}")
        monkeypatch.setenv("DELTASPACE_CACHE", str(place / "cache"))
        is_decoder = family in DECODERS
        make = chat_study if is_decoder else labelled_study
        file = make(place, tiny_backbone(family), name=family)
        assert main(["launch", str(file), "--quiet"]) == 0
        confirmed = ["confirm", family, "--top", "1", "--seeds", "2", "--against", "lora_qv", "--quiet", "--json"]
        capsys.readouterr()
        assert main(confirmed) == 0
        assert json.loads(capsys.readouterr().out)["finished"]
        for form, how in FORMS.items():
            assert main(["export", family, LORA, str(place / form), *how]) == 0
        texts = (
            ["7+8", "a long question of many words: 12+30, please!", "2", "xyz xyz", "0 0 0 0 0 0"]
            if is_decoder
            else ["red sea x", "x x x x x x x sea", "sea", "red red"]
        )
        asked, said = place / "asked.jsonl", place / "said.jsonl"
        asked.write_text("".join(json.dumps({"messages" if is_decoder else "text": text}) + "\n" for text in texts))
        assert main(["predict", str(place / "deltaspace"), "--input", str(asked), "--output", str(said)]) == 0
        lines = [json.loads(line) for line in said.read_text().splitlines()]
        return Taken(place=place, texts=texts, lines=lines)

    return take


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.parametrize("family", rotation.parts(DECODERS))
def test_a_decoder_answers_in_stock_libraries_as_here(
    taken: Callable[[str], Taken], family: str, tmp_path: Path
) -> None:
    trial = taken(family)
    programs: list[tuple[Path, str, tuple[str, ...]]] = []
    for form, name in STOCK.items():
        library = "peft" if form == "peft" else "transformers"
        programs.append((trial.place / form, trial.card(form), ("answers",)))
        programs.append((trial.place / form, LOGITS.format(library=library, name=name), ("logits",)))
    found = run_afresh(programs, tmp_path)
    ours, plain = trial.logits()
    answers = [line["prediction"] for line in trial.lines]
    assert any(answers)
    assert (ours - plain).abs().max() > 0.05
    assert (ours[0] - ours[1]).abs().max() > 0.05
    for said, computed in (found[:2], found[2:]):
        assert said["answers"] == answers
        torch.testing.assert_close(torch.tensor(computed["logits"]), ours, rtol=0, atol=WITHIN)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.parametrize("family", rotation.parts(ENCODERS))
def test_an_encoder_labels_in_stock_libraries_as_here(
    taken: Callable[[str], Taken], family: str, tmp_path: Path
) -> None:
    trial = taken(family)
    scores = "\nscores = logits.softmax(dim=-1)"
    programs = [(trial.place / form, trial.card(form) + scores, ("answers", "scores")) for form in STOCK]
    ours = torch.tensor([list(line["scores"].values()) for line in trial.lines])
    assert ours.std(dim=0).min() > 0.01
    for found in run_afresh(programs, tmp_path):
        assert found["answers"] == [line["prediction"] for line in trial.lines]
        torch.testing.assert_close(torch.tensor(found["scores"]), ours, rtol=0, atol=WITHIN)
