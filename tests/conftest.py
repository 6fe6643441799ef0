"""Fixtures of several packages: storages (SQLite, and a PostgreSQL of their own) and tiny backbones."""

import importlib
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest
from support import rotation
from support.missing_programs import WORDS
from support.postgres import PostgresServer
from support.tiny_models import TINY_FAMILIES, save_model, save_tokenizer

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.ledger.ledger import Ledger
from studies.records import ArtefactRecord, NewStudy, Reading, TrialRecord, TrialState
from studies.search.candidates import new_trial

BACKBONES = Path(__file__).parent / "data" / "backbones"

_WAITING = ("test_kills.py", "test_hangs.py", "test_clusters.py", "test_tune.py")
"""Modules that mostly wait for other processes; one worker begins with them, so that the others compute meanwhile."""
_WAITING_SECONDS = 600
_SECONDS = {"test_confirm.py": 60, "test_blocks.py": 30, "test_benchmarks.py": 40, "test_tutorial.py": 60}
"""What a slow test of some modules takes, about; others take ten."""


_CACHES: list[Path] = []
"""Of prepared tasks, made by this run: nothing of the user's is read, and nothing is left behind."""


def pytest_configure(config: pytest.Config) -> None:
    rotation.begin()
    if "DELTASPACE_CACHE" not in os.environ:  # processes that the run starts inherit it
        _CACHES.append(Path(tempfile.mkdtemp(prefix="tests-of-deltaspace-")))
        os.environ["DELTASPACE_CACHE"] = str(_CACHES[-1])


def pytest_unconfigure(config: pytest.Config) -> None:
    while _CACHES:
        shutil.rmtree(_CACHES.pop(), ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not any(".py" in argument for argument in config.args):  # whole folders: of a file that is named all tests run
        left = [item for item in items if _is_of_another_run(item)]
        items[:] = [item for item in items if not _is_of_another_run(item)]
        config.hook.pytest_deselected(items=left)
    items[:] = _longest_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _is_of_another_run(item: pytest.Item) -> bool:
    """Return whether it is one of the slow tests that a run with another seed takes."""
    return item.get_closest_marker("slow") is not None and not rotation.has_turn(item.nodeid)


def _longest_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Whole modules of slow tests at the beginning of each worker's part, the longest first, and quick ones after them.

    A worker's first part is as many tests in a row as another's; what is quick moves to whoever is idle.
    """
    slow: dict[str, list[pytest.Item]] = {}
    quick: list[pytest.Item] = []
    for item in items:
        is_waiting = item.path.name in _WAITING
        if is_waiting or item.get_closest_marker("slow"):
            slow.setdefault("" if is_waiting else str(item.path), []).append(item)
        else:
            quick.append(item)
    seconds = {name: len(some) * _SECONDS.get(some[0].path.name, 10) for name, some in slow.items()}
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    loads = [0] * workers
    for name in sorted(slow, key=lambda name: (name != "", -seconds[name])):
        first = loads.index(min(loads))
        parts[first] += slow[name]
        loads[first] += seconds[name] if name else _WAITING_SECONDS
    for place, part in enumerate(parts):
        size = (len(items) - sum(map(len, parts[:place]))) // (workers - place)
        count = max(0, size - len(part))
        part += quick[:count]
        del quick[:count]
    return [item for part in parts for item in part]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    taken = "every part" if rotation.is_everything() else f"parts of {rotation.SEED}={rotation.seed()}"
    terminalreporter.write_line(f"what is shared out over runs: {taken}")
    skipped = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ()) if report.longrepr]
    for reason, count in Counter(words.partition(WORDS)[2] for words in skipped if WORDS in words).items():
        terminalreporter.write_line(f"{count} tests were left out: the machine lacks {reason}")


BUDGET = 600_000

PUBLISHED = ("mam_adapter", "lora_qv", "bitfit")


class FixedTrial:
    """Proposes one of the choices by index and a fixed place in every range."""

    def __init__(self, index: int) -> None:
        self.index = index

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        return choices[self.index % len(choices)]

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return low + (high - low) * (1 + self.index) / 10


@pytest.fixture(scope="session")
def sample_trials() -> tuple[TrialRecord, ...]:
    """Three published methods and three proposals, on RoBERTa-base."""
    shape = shape_of(json.loads((BACKBONES / "roberta_base" / "config.json").read_text()))
    space = SearchSpace(shape=shape, budget=BUDGET)
    candidates = [space.suggest_published(name, FixedTrial(0)) for name in PUBLISHED]
    candidates += [space.suggest(FixedTrial(index)) for index in range(3)]
    return tuple(
        new_trial(candidate, shape, number=number, head_parameters=1538) for number, candidate in enumerate(candidates)
    )


@pytest.fixture(scope="session")
def sample_storage(sample_trials: tuple[TrialRecord, ...], tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a storage with the study ``sample``. Trials 0 to 5: complete .80, pruned, failed, complete .85,
    running, queued.
    """
    url = f"sqlite:///{tmp_path_factory.mktemp('storage') / 'sample.db'}"
    study = NewStudy(
        name="sample",
        specification={"name": "sample", "task": {"name": "docstrings", "folder": None}, "trials": 8},
        backbone=str(BACKBONES / "roberta_base"),
        backbone_parameters=124_645_632,
        budget_parameters=BUDGET,
        metric="accuracy",
        seed=0,
    )
    complete, pruned, failed = TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED
    with Ledger.open(url) as ledger:
        key = ledger.create_study(study).id
        epoch = ledger.take_over(key, "keeper")
        ledger.add_trials(key, epoch, sample_trials[:5], worker="worker-0")
        ledger.add_trials(key, epoch, sample_trials[5:])
        first = [reading(0, 25, 0.60, rung=0), reading(0, 200, 0.80)]
        delta = ArtefactRecord(trial=0, kind="delta", step=200, path="/snapshots/0", sha256="00" * 32, size_bytes=1234)
        ledger.settle(key, epoch, 0, 1, readings=first, artefact=delta, state=complete, score=0.80)
        why = "rung 0 (25 steps): 0.55 below the cut 0.6"
        ledger.settle(key, epoch, 1, 1, readings=[reading(1, 25, 0.55, rung=0)], state=pruned, reason=why)
        ledger.settle(key, epoch, 2, 1, state=failed, reason="loss is NaN at step 3")
        third = [reading(3, 25, 0.65, rung=0), reading(3, 200, 0.85)]
        ledger.settle(key, epoch, 3, 1, readings=third, state=complete, score=0.85)
        ledger.settle(key, epoch, 4, 1, readings=[reading(4, 25, 0.70, rung=0)])
        ledger.record_event(key, "worker", "worker-0 was lost", trial=4)
    return url


def reading(trial: int, step: int, score: float, *, rung: int | None = None) -> Reading:
    return Reading(
        trial=trial,
        step=step,
        attempt=1,
        score=score,
        metrics={"accuracy": score, "validation_loss": 1 - score},
        train_loss=0.5,
        seconds=2.5,
        rung=rung,
    )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server for the whole session."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """URL of an empty PostgreSQL database of the test's own."""
    name = postgres_server.new_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def storage_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a storage that does not exist yet (SQLite) or is empty (PostgreSQL): the test runs on both."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a benchmark, or a module beside one."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "benchmarks"), *sys.path])
    return importlib.import_module


class TinyBackbone(Protocol):
    """Type of the fixture ``tiny_backbone``."""

    def __call__(self, family: str, dropout: float = 0.0) -> Path: ...


class TinyLanguageModel(Protocol):
    """Type of the fixture ``tiny_language_model``."""

    def __call__(self, family: str, dtype: str = "float32") -> Any: ...


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory: pytest.TempPathFactory) -> TinyBackbone:
    """Create the folder of a backbone (config, weights, tokenizer) of a family: a key of ``TINY_FAMILIES``.

    Encoders are stored without a head, the others with that of their language model; decoders have no padding token.
    The folder is shared by all tests that ask for the same one; copy it to change it.
    """

    @cache
    def make(family: str, dropout: float = 0.0) -> Path:
        folder = tmp_path_factory.mktemp(f"tiny-{family}")
        save_model(TINY_FAMILIES[family], dropout, folder)
        save_tokenizer(TINY_FAMILIES[family].tokens, folder)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_language_model(tiny_backbone: TinyBackbone) -> TinyLanguageModel:
    """Load the language model of a tiny backbone, frozen, with the attention function of edits."""

    def load(family: str, dtype: str = "float32") -> Any:
        import transformers

        from trial_runner.attachment.attention import ATTENTION, register_attention
        from trial_runner.huggingface import quiet_transformers

        register_attention()
        model_class = getattr(transformers, f"AutoModelFor{TINY_FAMILIES[family].language_model}")
        with quiet_transformers():
            model = model_class.from_pretrained(tiny_backbone(family), dtype=dtype, attn_implementation=ATTENTION)
        return model.requires_grad_(False).eval()

    return load
