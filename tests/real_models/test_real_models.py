"""Real pretrained models, from their weights to answers in stock libraries; every folder in a folder of models.

Their weights are not of this project, so the tests are left out unless ``DELTASPACE_TEST_MODELS`` names such a folder.
What they learn is made here, and far too little to learn anything: what is tested is that everything agrees.
"""

import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file
from support.export_commands import card_lines, write_rows
from support.missing_programs import WORDS
from support.tiny_backbones import rig_of
from torch import Tensor
from transformers import AutoModel

import deltaspace
from deltaspace.commands.main import main
from search_space.dimensions import StackKind
from trial_runner.backbones import load_tokenizer

pytestmark = pytest.mark.slow

MODELS = "DELTASPACE_TEST_MODELS"
CITIES, FOODS = ("Rome", "Oslo", "Bern", "Lima"), ("soup", "fish", "rice")
ROWS = {"train": 6, "validation": 2, "test": 2}
METHODS = ["lora_qv", "scaled_parallel_adapter_ffn"]
LORA, ADAPTER, TRIALS = 0, 1, 3
"""Trials: the two published methods come first, then a discovery."""
FORMS: dict[str, dict[str, Any]] = {"own": {}, "merged": {"kind": "merged"}, "peft": {"kind": "peft"}}
TEXTS = ["name : Rome | food : soup", "name : Lima | food : rice and a little fish, which is said to be good"]


def folders() -> list[Path]:
    """Return the folders of the available models."""
    place = os.environ.get(MODELS)
    return [] if place is None else sorted(config.parent for config in Path(place).glob("*/config.json"))


@pytest.fixture(
    scope="module", params=folders() or [None], ids=lambda folder: "none" if folder is None else folder.name
)
def model(request: pytest.FixtureRequest) -> Path:
    if request.param is None:
        pytest.skip(f"{WORDS}real models ({MODELS}=/folder of folders)")
    torch.set_num_threads(1)
    return Path(request.param)


def row(kind: str, number: int) -> dict[str, Any]:
    draw = random.Random(number)
    city, food = draw.choice(CITIES), draw.choice(FOODS)
    read, written = f"name : {city} | food : {food}", f"In {city} there is {food} number {number}."
    if kind == "classification":
        return {"text": read, "label": food}
    if kind == "instruction":
        turns = (("user", read), ("assistant", written))
        return {"messages": [{"role": role, "content": content} for role, content in turns]}
    return {"read": read, "written": written}


def kind_of(model: Path) -> str:
    """Return the kind of task that fits the model."""
    if deltaspace.shape_of(str(model)).kind is StackKind.ENCODER:
        return "classification"
    return "data_to_text" if load_tokenizer(str(model)).chat_template is None else "instruction"


@dataclass(frozen=True, kw_only=True)
class Studied:
    """Finished study.

    Attributes:
        kind: Kind of its task.
        place: Folder of the exports.
        study: Launched study.
    """

    kind: str
    place: Path
    study: deltaspace.Study

    def exported(self, trial: int, form: str) -> Path:
        """Export a trial in a form, once, and return the folder."""
        folder = self.place / f"{trial}-{form}"
        if not folder.exists():
            self.study.trial(trial).export(folder, **FORMS[form])
        return folder

    @cached_property
    def predicted(self) -> list[str]:
        """Return the predictions of ``predict`` for our texts with LoRA."""
        return list(deltaspace.predict(self.exported(LORA, "own"), TEXTS)["prediction"])


@pytest.fixture(scope="module")
def studied(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Studied:
    """Three trials of two steps, measured to the end."""
    place, kind = tmp_path_factory.mktemp(model.name), kind_of(model)
    for split, size in ROWS.items():
        write_rows(place / f"{split}.jsonl", [row(kind, number) for number in range(size)])
    columns = {
        "classification": {"text": "text", "label": "label"},
        "instruction": {"messages": "messages", "metric": "rougeL", "max_tokens": 96},
        "data_to_text": {"source": "read", "target": "written", "metric": "rougeL"},
    }[kind]
    written = {} if kind == "classification" else {"decoding": {"max_new_tokens": 8, "min_new_tokens": 4}}
    study = {
        "name": model.name,
        "backbone": str(model),
        "task": {"kind": kind, "folder": str(place), **columns, **written},
        "budget": "0.5%",
        "trials": TRIALS,
        "training": {"steps": 2, "batch_size": 2, "precision": "fp32", "warmup_fraction": 0},
        "pruning": {"first_rung_steps": None},
        "space": {"learning_rates": {"lowrank": [0.01, 0.01], "bottleneck": [0.001, 0.001]}},
        "search": {"published": METHODS},
        "fleet": {"backend": "inline", "artefacts": str(place / "artefacts")},
    }
    (place / "study.yaml").write_text(yaml.safe_dump(study))
    launched = deltaspace.launch(place / "study.yaml", storage=f"sqlite:///{place / 'ledger.db'}", progress=False)
    return Studied(kind=kind, place=place, study=launched)


def hidden_states(model: Any) -> Tensor:
    """Return the last hidden states of two texts of random words."""
    ids = torch.randint(20, 900, (2, 9), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = ids.flip(1)
    with torch.no_grad():
        found: Tensor = model(**inputs).last_hidden_state
    return found


@pytest.fixture
def card_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], list[str]]:
    """Execute the Python code on the card of an export, and return its answers to our texts."""

    def answers(folder: Path) -> list[str]:
        monkeypatch.chdir(folder)
        variables: dict[str, Any] = {"__name__": "card"}
        exec(card_lines(folder, TEXTS), variables)
        return list(variables["answers"])

    return answers


def test_every_edit_keeps_the_contract(model, capsys):
    assert main(["check", "--backbone", str(model), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["usable"], printed["table"], printed["broken"]) == (True, "family", {})
    assert printed["kept"] > 90


def test_counts_equal_weights_and_no_edit_changes_no_output(model):
    stock = AutoModel.from_pretrained(model, dtype=torch.float32, attn_implementation="eager").eval()
    parameters = sum(parameter.numel() for parameter in stock.parameters())
    assert parameters == deltaspace.shape_of(str(model)).parameters
    expected, found = hidden_states(stock), hidden_states(rig_of(model, precision="float32").backbone.model)
    torch.testing.assert_close(found, expected, rtol=0, atol=float(2e-6 * expected.abs().max()))


def test_all_trials_are_complete_and_stored_as_counted(model, studied):
    board, shape = studied.study.leaderboard(), deltaspace.shape_of(str(model))
    assert len(board) == TRIALS
    assert set(board["state"]) == {"complete"}
    for number in (LORA, ADAPTER):
        trial = studied.study.trial(number)
        tensors = load_file(studied.exported(number, "own") / "delta.safetensors").items()
        stored = sum(tensor.numel() for name, tensor in tensors if not name.startswith("head."))
        assert stored == deltaspace.count(trial).stored
        assert 0 < stored <= 0.005 * shape.parameters


def test_export_changes_hidden_states_until_it_is_detached(model, studied):
    stock = AutoModel.from_pretrained(model, dtype=torch.float32).eval()
    without = hidden_states(stock)
    delta = deltaspace.load_delta(stock, studied.exported(ADAPTER, "own"))
    moved = (hidden_states(stock) - without).abs().max()
    delta.detach()
    assert moved > 1e-4 * without.abs().max()
    assert torch.equal(hidden_states(stock), without)


def test_the_best_is_confirmed_on_test_data(studied):
    confirmed = studied.study.confirm(top=1, seeds=2, against=(), progress=False)
    assert confirmed.is_finished


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
def test_stock_libraries_answer_as_we_predict(studied, card_of, form):
    ours = studied.predicted
    assert len(ours) == len(TEXTS)
    assert all(ours)
    assert card_of(studied.exported(LORA, form)) == ours
