"""Damaged exports, snapshots and databases."""

import contextlib
import hashlib
import io
import json
import random
import shutil
from pathlib import Path

from support.export_cases import exported, fresh_model, rig_in_training, trial_of
from support.tiny_backbones import Rig
from support.tiny_models import TINY_FAMILIES, save_model, save_tokenizer

from deltaspace.commands.main import main
from fuzz_arms.ledgers import earlier_ledger
from fuzz_arms.mutations import damaged_bytes
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.errors import SearchSpaceError
from search_space.forms import Bottleneck, LowRank
from search_space.gates import Add, FixedScale
from trial_runner.errors import RunnerError
from trial_runner.export import load_delta, trained_delta
from trial_runner.packs.snapshots import load_snapshot, save_snapshot

_EDITS = (
    Edit(site=Site.FFN, write=Port.F, read=Port.X_FFN, form=Bottleneck(width=5), gate=FixedScale(value=4)),
    Edit(site=Site.ATTENTION, write=Port.Q, read=Port.X_ATTN, form=LowRank(width=3, widened=1), gate=Add()),
)

_QUESTIONS = (("show", "finished"), ("verify", "finished"), ("studies",), ("query", "select * from leaderboard"))


def _rig(folder: Path) -> Rig:
    save_model(TINY_FAMILIES["roberta"], 0.0, folder)
    save_tokenizer(TINY_FAMILIES["roberta"].tokens, folder)
    return rig_in_training(folder)


class Exports:
    """Loads one damaged export at a time; often its hash is mended, so that more than the hash is tried."""

    def __init__(self, folder: Path) -> None:
        backbone = folder / "backbone"
        backbone.mkdir()
        rig = _rig(backbone)
        self.model = fresh_model(rig)
        self.whole = exported(rig, trial_of(rig, *_EDITS), folder / "whole")
        rig.attachment.detach()
        self.place = folder / "damaged"

    def __call__(self, draw: random.Random) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.whole, self.place)
        facts, weights = self.place / "delta.json", self.place / "delta.safetensors"
        if draw.random() < 0.5:
            facts.write_bytes(damaged_bytes(facts.read_bytes(), draw))
        else:
            weights.write_bytes(damaged_bytes(weights.read_bytes(), draw, within=draw.choice((None, 600))))
            said = json.loads(facts.read_text())
            said["weights"]["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
            facts.write_text(json.dumps(said))
        with contextlib.suppress(RunnerError, SearchSpaceError):
            load_delta(self.model, self.place).detach()


class Snapshots:
    """Reads one damaged snapshot at a time, and takes the trained weights out of it."""

    def __init__(self, folder: Path) -> None:
        backbone = folder / "backbone"
        backbone.mkdir()
        self.rig = _rig(backbone)
        self.content = save_snapshot(trial_of(self.rig, *_EDITS).snapshot, folder).read_bytes()
        self.file = folder / "damaged.safetensors"

    def __call__(self, draw: random.Random) -> None:
        self.file.unlink(missing_ok=True)  # to write over a file waits for the disk
        self.file.write_bytes(damaged_bytes(self.content, draw, within=draw.choice((None, 8, 4000, 4000))))
        with contextlib.suppress(RunnerError, SearchSpaceError):
            trained_delta(load_snapshot(self.file), self.rig.backbone.shape, frozen=self.rig.weights())


class Databases:
    """Asks one damaged database at a time what the commands ask."""

    def __init__(self, folder: Path) -> None:
        self.content = earlier_ledger(folder).read_bytes()
        self.file = folder / "damaged.db"

    def __call__(self, draw: random.Random) -> None:
        self.file.unlink(missing_ok=True)
        self.file.write_bytes(damaged_bytes(self.content, draw))
        words = draw.choice(_QUESTIONS)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            code = main([*words, "--storage", f"sqlite:///{self.file}"])
        assert code in (0, 1, 2), said.getvalue()
