"""Current models from a study file to answers in an environment with transformers and peft, but without this project.

Each is launched, confirmed and exported in the forms that stock libraries load. There the code of the cards generates
the answers of `deltaspace predict`, and the stock classes give the logits of the trial.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from support import rotation
from support.chat_studies import chat_study, short_training
from support.export_commands import FIRST, FORMS, card_lines, write_rows, write_splits
from support.fresh_python import run_afresh
from support.int8_products import need_exact_int8
from support.whole_blocks import in_whole_blocks
from torch import Tensor

from deltaspace import load_delta
from deltaspace.commands.main import main
from trial_runner.backbones import BackboneSource
from trial_runner.backbones.backbone import loading_options

DECODERS = ("qwen3", "mistral", "gemma", "gemma3")
ENCODERS = ("modernbert", "deberta-v2")
STOCK = {"peft": "AutoPeftModelForCausalLM", "merged": "AutoModelForCausalLM"}
ASKED = [[5, 9, 14, 7, 21], [11, 6, 30, 8, 17]]
WITHIN = 1e-4
"""Of logits and probabilities below 10, in float32: a hundred times its rounding."""
LOGITS = f"""
import torch
from torchao.quantization import IntxWeightOnlyConfig, PerGroup
from transformers import BitsAndBytesConfig, TorchAoConfig
from {{library}} import {{name}}

model = {{name}}.from_pretrained(".", dtype=torch.float32{{held}}).eval()
with torch.no_grad():
    logits = model(input_ids=torch.tensor({ASKED})).logits
"""
QUANTIZED = (("qwen3", "nf4"), ("mistral", "int8"), ("gemma", "nf4"), ("qwen3", "int8"), ("qwen3", "int4"))
HELD = {
    "nf4": 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")',
    "int8": "BitsAndBytesConfig(load_in_8bit=True)",
    "int4": "TorchAoConfig(IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)))",
}
ON_ANY_PROCESSOR = "import bitsandbytes.nn.modules as layers\nlayers.has_avx512bf16 = lambda: False\n"
"""Some have products of nf4 in bf16, which are others."""
PRODUCTS = 2 * 7
"""One after another."""


def labelled_study(folder: Path, encoder: Path, *, name: str) -> Path:
    """Write a study like `chat_study`, of texts of few or many words."""
    draw = random.Random(0)

    def rows_of(size: int, number: int) -> list[dict[str, str]]:
        texts = [" ".join(draw.choices(["red", "sea", "x"], k=draw.randrange(1, 9))) for _ in range(size)]
        return [{"text": f"{text} {number}", "label": "few" if len(text) < 12 else "many"} for text in texts]

    write_splits(folder / "data", rows_of, 24, 10, 8)
    task = {"folder": "data", "text": "text", "label": "label", "max_tokens": 24}
    study = {"name": name, "backbone": str(encoder), "task": task, **short_training(folder, head_learning_rate=0.3)}
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    return folder / "study.yaml"


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Exports of a trial of a family, in every form.

    Attributes:
        place: Folder with a folder for each form.
        texts: Input texts.
        quantization: Quantization of the backbone's weights.
    """

    place: Path
    texts: list[str]
    quantization: str = "none"

    def predicted(self, form: str = "deltaspace") -> list[dict[str, Any]]:
        """Return the predictions of ``deltaspace predict`` for the texts."""
        key = "messages" if (self.place / "backbone").exists() else "text"
        inputs, output = self.place / "asked.jsonl", self.place / f"said-{form}.jsonl"
        write_rows(inputs, [{key: text} for text in self.texts])
        assert main(["predict", str(self.place / form), "--input", str(inputs), "--output", str(output)]) == 0
        return [json.loads(line) for line in output.read_text().splitlines()]

    def programs(self) -> list[tuple[Path, str, tuple[str, ...]]]:
        """Return, for each form, the code of its card and that of its stock class."""
        found: list[tuple[Path, str, tuple[str, ...]]] = []
        for form, name in STOCK.items():
            library, is_held = ("peft" if form == "peft" else "transformers"), form == "peft"
            options = HELD.get(self.quantization, "") if is_held else ""
            held = f", quantization_config={options}" if options else ""
            before = ON_ANY_PROCESSOR if options else ""
            logits = LOGITS.format(library=library, name=name, held=held)
            found.append((self.place / form, before + card_lines(self.place / form, self.texts), ("answers",)))
            found.append((self.place / form, before + logits, ("logits",)))
        return found

    def logits(self) -> tuple[Tensor, Tensor]:
        """Return the logits of the language model with the trial, and without it."""
        from transformers import AutoModelForCausalLM

        held = loading_options(BackboneSource(name="backbone", quantization=self.quantization))
        model = AutoModelForCausalLM.from_pretrained(self.place / "backbone", **held).eval()
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
    """Launch a study of a family, confirm it, and export its LoRA."""

    def take(family: str, quantization: str = "none") -> Taken:
        place = tmp_path / family
        monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{place / 'ledger.db'}")
        monkeypatch.setenv("DELTASPACE_CACHE", str(place / "cache"))
        is_decoder = family in DECODERS
        if quantization != "none":
            monkeypatch.setattr("bitsandbytes.nn.modules.has_avx512bf16", lambda: False)
            file = chat_study(place, in_whole_blocks(tiny_backbone(family), tmp_path / "wide"), name=family)
            study = yaml.safe_load(file.read_text())
            file.write_text(
                yaml.safe_dump({**study, "backbone": {"name": study["backbone"], "quantization": quantization}})
            )
        else:
            file = (chat_study if is_decoder else labelled_study)(place, tiny_backbone(family), name=family)
        assert main(["launch", str(file), "--quiet"]) == 0
        confirmed = ["confirm", family, "--top", "1", "--seeds", "2", "--against", "lora_qv", "--quiet", "--json"]
        capsys.readouterr()
        assert main(confirmed) == 0
        assert json.loads(capsys.readouterr().out)["finished"]
        for form, how in FORMS.items():
            assert main(["export", family, FIRST, str(place / form), *how]) == 0
        texts = (
            ["7+8", "a long question of many words: 12+30, please!", "2", "xyz xyz", "0 0 0 0 0 0"]
            if is_decoder
            else ["red sea x", "x x x x x x x sea", "sea", "red red"]
        )
        return Taken(place=place, texts=texts, quantization=quantization)

    return take


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.parametrize(("family", "kind"), rotation.parts([*((name, "none") for name in DECODERS), *QUANTIZED]))
def test_a_decoder_answers_in_stock_libraries_as_here(taken, family, kind, tmp_path):
    need_exact_int8(kind)
    trial = taken(family, kind)
    answered, computed, answered_merged, computed_merged = run_afresh(trial.programs(), tmp_path)
    ours, plain = trial.logits()
    answers = {form: [line["prediction"] for line in trial.predicted(form)] for form in FORMS}
    assert any(answers["deltaspace"])
    assert answered_merged["answers"] == answers["merged"] == answers["deltaspace"]  # merged weights are dense
    torch.testing.assert_close(torch.tensor(computed_merged["logits"]), ours, rtol=0, atol=WITHIN)
    gap, moved = (torch.tensor(computed["logits"]) - ours).abs().max(), (ours - plain).abs().max()
    # layers of int8 read numbers in 8 bits, off by half a code of the largest at most, product after product
    assert gap <= (PRODUCTS * 0.5 / 127 * ours.abs().max() if kind == "int8" else WITHIN)
    assert moved > max(0.05, 4 * gap)
    assert (ours[0] - ours[1]).abs().max() > 0.05
    # what is rounded to codes is another where it lies between two of them and a thread sums in another order
    assert kind == "int8" or answered["answers"] == answers["peft"] == answers["deltaspace"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.parametrize("family", rotation.parts(ENCODERS))
def test_an_encoder_labels_in_stock_libraries_as_here(taken, family, tmp_path):
    trial = taken(family)
    scores = "\nscores = logits.softmax(dim=-1)"
    programs = [
        (trial.place / form, card_lines(trial.place / form, trial.texts) + scores, ("answers", "scores"))
        for form in STOCK
    ]
    lines = trial.predicted()
    ours = torch.tensor([list(line["scores"].values()) for line in lines])
    assert ours.std(dim=0).min() > 0.01
    for found in run_afresh(programs, tmp_path):
        assert found["answers"] == [line["prediction"] for line in lines]
        torch.testing.assert_close(torch.tensor(found["scores"]), ours, rtol=0, atol=WITHIN)
