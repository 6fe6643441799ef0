"""A ledger with something on every page of the dashboard, and one whose names and values want to be more than text."""

import json
from dataclasses import replace
from pathlib import Path

from conftest import reading
from support.planted_ledger import Planted

from search_space.backbones import shape_of
from search_space.space.random_draw import RandomTrial
from studies.launch.study_creation import new_study
from studies.ledger.ledger import Ledger
from studies.records import (
    ArtefactRecord,
    ConfirmationRecord,
    Contender,
    NewStudy,
    StudyKind,
    TrialRecord,
    TrialState,
)
from studies.study_file import Specification, specification_from_mapping

HOSTILE = '<img src=x onerror="window.pwned=1">\'"); DROP TABLE trials;--\x1b[31m\u202egnp.exe{{7*7}}<b>${1}'
"""Mark-up, SQL, an escape sequence, text that turns around, and what templates would work out."""

BACKBONE = Path(__file__).parents[1] / "data" / "backbones" / "roberta_base"
_SCORES = {
    "trial 5": (0.53, 0.54, 0.52, 0.55),
    "mam_adapter": (0.50, 0.51, 0.49, 0.52),
    "lora_qv": (0.48, 0.50, 0.47, 0.50),
}


def shown_study(url: str) -> int:
    """Record a study of 36 complete, 8 pruned, 1 failed and 2 running trials, with its confirmation; return its key."""
    study = new_study(study_specification(48), shape_of(json.loads((BACKBONE / "config.json").read_text())))
    planted = Planted(url, 36, noise=0.01, study=study)
    ledger, key = planted.ledger, planted.study.id
    epoch = ledger.take_over(key, "keeper-2")
    for number in range(36, 47):
        candidate = planted.space.suggest(RandomTrial(5000 + number))
        planted.candidates.append(candidate)
        ledger.add_trials(key, epoch, [planted.trial(number, candidate)], worker=f"worker-{number % 2}")
        first = reading(number, 4, planted.truth(number) - 0.08, rung=0)
        if number < 44:
            why = f"rung 0 (4 steps): {first.score:.4f}, and 12 of 30 are better by more than their noise"
            ledger.settle(key, epoch, number, 1, readings=[first], state=TrialState.PRUNED, reason=why)
        elif number == 44:
            ledger.settle(key, epoch, 44, 1, state=TrialState.FAILED, reason="the loss is NaN at step 3")
        else:
            ledger.settle(key, epoch, number, 1, readings=[first])
    ledger.record_event(key, "lost", "worker-1 was silent; its trials are queued again", trial=40)
    confirmation_of(planted)
    ledger.close()
    return key


def study_specification(trials: int) -> Specification:
    """Return the study file of the planted study."""
    return specification_from_mapping(
        {
            "name": "planted",
            "backbone": BACKBONE.name,
            "task": {"name": "docstrings"},
            "budget": 600_000,
            "trials": trials,
            "training": {"steps": 8},
            "pruning": {"first_rung_steps": 4},
            "search": {"published": ["lora_qv", "mam_adapter"]},
        }
    )


def confirmation_of(planted: Planted) -> None:
    """Three contenders with four seeds each, all done."""
    ledger, numbers = planted.ledger, {"trial 5": 5, "mam_adapter": 1, "lora_qv": 0}
    contenders = tuple(
        Contender(
            label=label,
            trial=number,
            validation_score=planted.truth(number) + 0.02,
            is_top=label == "trial 5",
            baselines=() if label == "trial 5" else (label,),
        )
        for label, number in numbers.items()
    )
    record = ConfirmationRecord(
        study="planted",
        top=1,
        against=("mam_adapter", "lora_qv"),
        seeds=(1, 2, 3, 4),
        contenders=contenders,
        left_out={},
    )
    new = replace(
        planted.new_study("planted-confirm", {"trials": 12}), kind=StudyKind.CONFIRMATION, parent_id=planted.study.id
    )
    trials = [
        replace(
            planted.trial(number, planted.candidates[number]),
            number=4 * place + seed,
            fingerprint=f"{place}/{seed}",
            proposal={},
        )
        for place, number in enumerate(numbers.values())
        for seed in range(4)
    ]
    study = ledger.create_study(new, trials, record)
    epoch = ledger.take_over(study.id, "keeper")
    for place, scores in enumerate(_SCORES.values()):
        for seed, score in enumerate(scores):
            number = 4 * place + seed
            ledger.lease_all(study.id, epoch, [number], "worker-0")
            done = {"readings": [reading(number, 8, score)], "state": TrialState.COMPLETE, "score": score}
            ledger.settle(study.id, epoch, number, 1, **done)


def hostile_study(url: str, trials: tuple[TrialRecord, ...]) -> int:
    """Record a study whose every text is `HOSTILE`; return its key."""
    new = NewStudy(
        name=HOSTILE,
        specification={"task": {"name": HOSTILE}, "trials": len(trials)},
        backbone=HOSTILE,
        backbone_parameters=124_645_632,
        budget_parameters=600_000,
        metric=HOSTILE,
        seed=0,
    )
    with Ledger.open(url) as ledger:
        key = ledger.create_study(new).id
        epoch = ledger.take_over(key, HOSTILE)
        for trial in trials:
            sides = {
                name: None if side is None else replace(side, form=HOSTILE, write=HOSTILE, gate=HOSTILE)
                for name, side in (("attention", trial.attention), ("ffn", trial.ffn))
            }
            bad = replace(trial, description=HOSTILE, method=HOSTILE, origin="published", **sides)
            ledger.add_trials(key, epoch, [bad], worker=HOSTILE)
            readings = [reading(trial.number, 4, 0.5), reading(trial.number, 8, 0.6)]
            file = ArtefactRecord(
                trial=trial.number, kind="delta", step=8, path=HOSTILE, sha256="00" * 32, size_bytes=12
            )
            if trial.number == 0:
                ledger.settle(key, epoch, 0, 1, readings=readings)
                continue
            complete = {"state": TrialState.COMPLETE, "score": 0.6}
            ending = complete if trial.number % 2 else {"state": TrialState.PRUNED, "reason": HOSTILE}
            ledger.settle(key, epoch, trial.number, 1, readings=readings, artefact=file, **ending)
        ledger.record_event(key, HOSTILE, HOSTILE, trial=0)
    return key
