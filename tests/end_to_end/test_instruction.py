"""The shipped study of dialogues on a tiny decoder: launched, confirmed, exported, and answered by stock models.

What it is on its own backbone is counted, and a trial's memory is planned.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.chat_cases import chat_backbone
from support.export_commands import card_lines, confirm, predictions, write_splits

from deltaspace import predict
from deltaspace.commands.main import main
from search_space.backbones import shape_of
from search_space.parameter_counts.counts import count
from search_space.published.point import PublishedPoint
from studies.study_file import read_specification
from studies.study_file.parser import study_file

BACKBONES = Path(__file__).parents[1] / "data" / "backbones"
QWEN3_4B = {"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32}
"""What of its configuration is not as in Qwen3-0.6B."""
NEW_TOKENS = 6
SYSTEM = "add"


def rows_of(size: int, seed: int) -> list[dict[str, Any]]:
    """Return sums, some of them in dialogues of two questions."""
    draw, rows = random.Random(seed), []
    for number in range(size):
        messages: list[dict[str, str]] = []
        for _ in range(1 + number % 2):
            one, other = draw.randrange(40), draw.randrange(40)
            messages.append({"role": "user", "content": f"{one}+{other}"})
            messages.append({"role": "assistant", "content": f"Answer: {one + other}"})
        rows.append({"messages": messages, "answer": messages[-1]["content"].partition(": ")[2]})
    return rows


@pytest.fixture
def study(
    tmp_path: Path,
    tiny_backbone: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Launch a study to its end and return its name."""
    monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{tmp_path / 'ledger.db'}")
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))
    write_splits(tmp_path / "data", rows_of, 24, 10, 8)
    backbone = chat_backbone(tiny_backbone("qwen3"), tmp_path / "backbone")
    config = json.loads((backbone / "config.json").read_text())
    (backbone / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 300}))
    settings = {
        "backbone": backbone,
        "task.folder": tmp_path / "data",
        "task.dialogue.system": SYSTEM,
        "task.max_tokens": 250,
        "task.decoding.max_new_tokens": NEW_TOKENS,
        "budget": 600,
        "trials": 3,
        "training.steps": 4,
        "training.batch_tokens": 500,
        "training.precision": "fp32",
        "pruning.first_rung_steps": 2,
        "search.published": "[lora_qv]",
        "fleet.backend": "inline",
        "fleet.pack": 2,
        "fleet.artefacts": tmp_path / "artefacts",
    }
    given = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    assert main(["check", "qwen3_instruct", *given]) == 0
    assert " a trial beside " in capsys.readouterr().out, "its memory is planned"
    assert main(["launch", "qwen3_instruct", "--quiet", *given]) == 0
    return "qwen3-instruct"


def written_by_transformers(folder: Path, rows: list[dict[str, Any]]) -> list[str]:
    """Generate the answers of stock transformers with merged weights, one dialogue after another."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    end, answers = tokenizer.convert_tokens_to_ids("<|im_end|>"), []
    for row in rows:
        chat = [{"role": "system", "content": SYSTEM}, *row["messages"][:-1]]
        given = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True, return_tensors="pt")
        options = {"max_new_tokens": NEW_TOKENS, "do_sample": False, "eos_token_id": end, "pad_token_id": 0}
        (tokens,) = model.generate(**given, suppress_tokens=[0], **options)
        answer = tokenizer.decode(tokens[given["input_ids"].shape[1] :], skip_special_tokens=True)
        answers.append(answer.strip())
    return answers


def executed(export: Path) -> dict[str, Any]:
    """Execute the code of a model card and return its variables."""
    variables: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(export)
        exec(card_lines(export), variables)
    return variables


def test_the_study_of_its_own_backbone_is_counted():
    study = read_specification(study_file("qwen3_instruct"), {"task.folder": "."})
    config = json.loads((BACKBONES / "qwen3_0_6b" / "config.json").read_text())
    shape = shape_of({**config, **QWEN3_4B})
    assert shape.parameters == 4_022_468_096
    budget = study.budget_parameters(shape)
    assert budget == int(0.002 * shape.parameters)
    for name in ("lora_qv", "mam_adapter", "houlsby_adapter"):
        stored = count(PublishedPoint(name).configuration(shape, parameters=budget, scale=2.0), shape).stored
        assert 0.97 * budget <= stored <= budget
    plan = study.training_plan()
    assert [plan.examples_of(tokens) for tokens in (100, 256, 512)] == [32, 32, 16]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_dialogues_go_all_the_way(study, tmp_path, capsys):
    confirm(study, "exact_match", capsys)
    rows = rows_of(5, 9)
    answers = predictions(study, [{"messages": row["messages"]} for row in rows], tmp_path)
    for form in answers:
        card = (tmp_path / form / "README.md").read_text()
        assert 'chats = [[{"role": "system", "content": "add"}, {"role": "user", "content": text}]' in card
        variables = executed(tmp_path / form)
        assert variables["answers"] == list(predict(tmp_path / form, variables["texts"])["prediction"])
    assert answers["merged"] == answers["deltaspace"] == answers["peft"]
    assert written_by_transformers(tmp_path / "merged", rows) == answers["merged"]
    assert len(set(answers["merged"])) > 1
