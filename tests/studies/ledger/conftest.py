"""A ledger on each kind of database, and small values to put into it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
from sqlalchemy import text

from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port, Site
from search_space.edit import Edit
from search_space.forms import SoftmaxMemory
from search_space.gates import ConvexGate
from search_space.words.dimensions import SideDimensions
from studies.ledger.ledger import Ledger
from studies.records import (
    ArtefactRecord,
    NewStudy,
    Reading,
    TrialRecord,
    TrialState,
)

FORM = SoftmaxMemory(width=12, heads=Heads.KEY_VALUE)
PREFIX = Configuration(edits=(Edit(site=Site.ATTENTION, write=Port.HEAD, read=Port.Q, form=FORM, gate=ConvexGate()),))


@dataclass(frozen=True)
class Values:
    """Records with everything filled in; keyword arguments change fields."""

    complete = MappingProxyType({"state": TrialState.COMPLETE, "score": 0.75})
    pruned = MappingProxyType({"state": TrialState.PRUNED, "reason": "rung 0: below the cut"})
    failed = MappingProxyType({"state": TrialState.FAILED, "reason": "loss is NaN at step 3"})

    def study(self, **changes: object) -> NewStudy:
        values = {
            "name": "sst2",
            "specification": {"task": {"name": "docstrings"}, "trials": 8},
            "backbone": "embedded",
            "backbone_parameters": 4_000_000,
            "budget_parameters": 20_000,
            "metric": "accuracy",
            "seed": 7,
        }
        return NewStudy(**values | changes)

    def trial(self, number: int, **changes: object) -> TrialRecord:
        prefix = SideDimensions(
            form="softmax_memory",
            write="head",
            insertion="parallel",
            gate="convex_lse",
            heads="query_heads",
            bottleneck=12,
            activation=None,
            scale=None,
            learning_rate=1e-3,
        )
        values = {
            "number": number,
            "origin": "proposed",
            "method": None,
            "fingerprint": f"fingerprint-{number}",
            "description": "prefix of 12 at the heads",
            "configuration": PREFIX,
            "proposal": {"structure": "a", "learning_rate": 0.1 + 0.2},
            "seed": 2**62 + number,
            "attention": prefix,
            "ffn": None,
            "attention_share": 1.0,
            "stored_parameters": 19_000,
            "trained_parameters": 21_000,
            "head_parameters": 500,
            "replicate_of": None,
            "extra_flops": None,
        }
        return TrialRecord(**values | changes)

    def reading(self, trial: int, step: int, **changes: object) -> Reading:
        values = {"attempt": 1, "score": 0.5, "metrics": {"accuracy": 0.5}, "train_loss": 1.5, "seconds": 2.0}
        return Reading(**{"trial": trial, "step": step, "rung": None, **values, **changes})

    def artefact(self, trial: int, step: int, **changes: object) -> ArtefactRecord:
        values = {"kind": "snapshot", "path": f"/snapshots/{trial}-{step}", "sha256": "00" * 32, "size_bytes": 10}
        return ArtefactRecord(**{"trial": trial, "step": step, **values, **changes})


@pytest.fixture
def values() -> Values:
    return Values()


@pytest.fixture
def ledger(storage_url: str) -> Iterator[Ledger]:
    """Yield an empty ledger; the test runs on both databases."""
    with Ledger.open(storage_url) as opened:
        yield opened


@dataclass(frozen=True)
class Kept:
    """A study and the epoch of its keeper."""

    ledger: Ledger
    id: int
    epoch: int

    def everything(self) -> list[list[object]]:
        """Return every record of the study."""
        ledger = self.ledger
        parts = (ledger.trials, ledger.attempts, ledger.readings, ledger.artefacts, ledger.events)
        return [part(self.id) for part in parts]


@pytest.fixture
def kept(ledger: Ledger, values: Values) -> Kept:
    """Create a study without trials and take it over."""
    study = ledger.create_study(values.study())
    return Kept(ledger=ledger, id=study.id, epoch=ledger.take_over(study.id, "keeper"))


@pytest.fixture
def tamper(ledger: Ledger) -> Callable[..., None]:
    """Run SQL on the database directly, in one transaction."""

    def run(*statements: str) -> None:
        with ledger.database.once(writes=True) as connection:
            for statement in statements:
                connection.execute(text(statement))

    return run


@pytest.fixture
def two_trials(kept: Kept, values: Values) -> Kept:
    """Trial 0 runs, trial 1 is complete; each kind of row is there."""
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0), values.trial(1)], worker="w")
    given = {"readings": [values.reading(1, 10, score=0.75)], "artefact": values.artefact(1, 10, kind="delta")}
    kept.ledger.settle(kept.id, kept.epoch, 1, 1, **values.complete, **given)
    return kept


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a database that does not exist yet."""
    return tmp_path / "x.db"
