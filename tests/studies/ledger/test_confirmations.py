"""Confirmations in the ledger: studies of their own that name the study they confirm."""

import json
from dataclasses import replace

import pytest
from pydantic import ValidationError

from studies.errors import ConfirmationError, DamagedError, StudiesError
from studies.records import ConfirmationRecord, Contender, StudyKind, TrialState

CONFIRMATION = ConfirmationRecord(
    study="sst2",
    top=1,
    against=("lora_qv", "bitfit"),
    seeds=(3, 2**31 - 1),
    contenders=(Contender(label="trial 0", trial=0, validation_score=0.75, is_top=True, baselines=("lora_qv",)),),
    left_out={"bitfit": "it does not fit."},
)


@pytest.fixture
def confirmation(kept, values):
    """Create a confirmation with two queued trials, of a study with one complete trial."""
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    kept.ledger.settle(kept.id, kept.epoch, 0, 1, readings=[values.reading(0, 10, score=0.75)], **values.complete)
    new = replace(values.study(name="sst2-confirm"), kind=StudyKind.CONFIRMATION, parent_id=kept.id)
    trials = [values.trial(number, fingerprint=f"fingerprint-0:{number}", proposal={}) for number in range(2)]
    return kept.ledger.create_study(new, trials, CONFIRMATION)


def test_a_confirmation_is_created_with_its_trials_queued(kept, confirmation):
    found = kept.ledger.study("sst2-confirm")
    assert found == confirmation
    assert (found.kind, found.parent_id) == (StudyKind.CONFIRMATION, kept.id)
    trials = kept.ledger.trials(confirmation.id)
    found = [(trial.number, trial.state, trial.attempt) for trial in trials]
    assert found == [(number, TrialState.QUEUED, 0) for number in range(2)]


def test_confirmation_record_survives_the_ledger(kept, confirmation):
    assert kept.ledger.confirmation(confirmation) == CONFIRMATION
    with pytest.raises(ConfirmationError, match="'sst2' must be a confirmation; got a search study"):
        kept.ledger.confirmation(kept.ledger.study("sst2"))


def test_list_of_a_confirmation_is_read_to_its_first_wrong_entry(kept, confirmation, tamper):
    tamper(f"UPDATE confirmations SET contenders = '{json.dumps([1] * 10_000)}'")
    with pytest.raises(DamagedError, match="must hold the request of a confirmation there; it is damaged") as error:
        kept.ledger.confirmation(confirmation)
    assert isinstance(error.value.__cause__, ValidationError)
    assert error.value.__cause__.error_count() == 1


def test_study_is_created_with_all_its_trials_or_not_at_all(kept, values):
    new = replace(values.study(name="sst2-confirm"), kind=StudyKind.CONFIRMATION, parent_id=kept.id)
    with pytest.raises(StudiesError, match="must continue at number 0 without a gap"):
        kept.ledger.create_study(new, [values.trial(1)])
    assert [study.name for study in kept.ledger.studies()] == ["sst2"]
