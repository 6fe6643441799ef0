"""A study on a backbone that two processes share is the study on a whole one, also when one of them is killed."""

import os
from pathlib import Path

import pytest
from support import rotation
from support.letters import letters_study, write_letters
from support.sharded import DEATH, Mortal

from studies.backends.backend import RunnerFactory, TorchRunnerFactory
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.records import AttemptRecord, TrialRecord, TrialState
from studies.study_file import specification_from_mapping
from studies.verification import verify

TESTS = Path(__file__).parents[1]
TRIALS, STEPS = 8, 6


@pytest.mark.slow
@pytest.mark.parametrize("backend", rotation.parts(("inline", "ray")))
def test_sharded_study_with_killed_rank_equals_unsharded_study(backend, tiny_backbone, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS.parent), str(TESTS)]))
    write_letters(tmp_path / "letters", train=32, validation=20)
    study = letters_study(
        tmp_path,
        tiny_backbone("roberta", 0.1),
        trials=TRIALS,
        training={"steps": STEPS, "batch_size": 8, "head_learning_rate": 0.05},
        pruning={"first_rung_steps": None},
        search={"sampler": "random", "published": ["lora_qv", "mam_adapter"]},
    )

    def launched(name: str, factory: RunnerFactory, **fleet: object) -> tuple[list[TrialRecord], list[AttemptRecord]]:
        given = {"workers": 1, "artefacts": str(tmp_path / name), **fleet}
        specification = specification_from_mapping({**study, "fleet": given})
        url = f"sqlite:///{tmp_path / name}.db"
        assert launch(specification, storage_url=url, factory=factory, lease_seconds=30).finished
        with Ledger.open(url, read_only=True) as ledger:
            assert verify(ledger, "letters") == []
            key = ledger.study("letters").id
            return ledger.trials(key), ledger.attempts(key)

    specification = specification_from_mapping(study)
    order = {"backbone": specification.backbone, "task": specification.task, "precision": "fp64"}
    (tmp_path / DEATH).touch()
    sharded, attempts = launched(
        "sharded", Mortal(**order, shards=2, trouble=tmp_path), backend=backend, worker={"shards": 2}, pack=2
    )
    assert not (tmp_path / DEATH).exists()
    assert max(one.attempt for one in attempts) == 2
    whole, _ = launched("whole", TorchRunnerFactory(**order), backend="inline", pack=4)
    assert {trial.state for trial in whole} == {TrialState.COMPLETE}
    facts = [[(one.number, one.fingerprint, one.seed, one.state) for one in table] for table in (sharded, whole)]
    assert facts[0] == facts[1]
    assert [one.score for one in sharded] == pytest.approx([one.score for one in whole], abs=1e-12)
