"""Whether a study is whole: what must hold in the ledger, what its proposals make, and the files it names."""

import warnings
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from optuna.trial import FixedTrial

from search_space.errors import SearchSpaceError
from search_space.space.space import SearchSpace
from studies.search.proposer import Proposer
from studies.search.replaying import replay_violations
from studies.specification.recorded import recorded_space, recorded_specification
from studies.store.invariants import violations
from studies.store.ledger import Ledger
from studies.store.records import StudyKind, StudyRecord, TrialRecord

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
"""Leases of a launch that was killed run out, and the next launch takes them back: nothing is broken by that."""


def verify(ledger: Ledger, name: str) -> list[str]:
    """Every violation in a study, one line each; empty when it is whole.

    Checked are the invariants of the ledger, the files of its artefacts with their hashes and, of a study that
    searches, the rungs, the configuration that each proposal makes, and the replay of all that the sampler was told.

    Raises:
        UnknownStudyError: If there is no study of that name.
        StudiesError: If it was recorded by a release with other keys.
        RunnerError: If its backbone cannot be had.
    """
    study = ledger.study(name)
    if study.kind is StudyKind.CONFIRMATION:
        return violations(ledger, study.id, rung_steps=(), now=_LONG_AGO)
    specification, space = recorded_specification(study), recorded_space(study)
    found = violations(ledger, study.id, rung_steps=specification.rung_plan().steps, now=_LONG_AGO)
    trials = ledger.trials(study.id)
    found += _strange_proposals(trials, space)
    return found if found else list(_replay(ledger, study, trials, space))


def _strange_proposals(trials: Sequence[TrialRecord], space: SearchSpace) -> Iterator[str]:
    """Each proposal makes the configuration that was recorded with it."""
    for trial in trials:
        proposal = FixedTrial(dict(trial.proposal))
        try:
            with warnings.catch_warnings(action="error", category=UserWarning):
                method = trial.method
                candidate = space.suggest(proposal) if method is None else space.suggest_published(method, proposal)
        except (SearchSpaceError, ValueError, UserWarning) as error:
            yield f"trial {trial.number}: its proposal must make a configuration; {error}"
            continue
        if candidate.fingerprint != trial.fingerprint:
            yield (
                f"trial {trial.number}: its proposal must make the configuration {trial.fingerprint}; "
                f"it makes {candidate.fingerprint}"
            )


def _replay(ledger: Ledger, study: StudyRecord, trials: Sequence[TrialRecord], space: SearchSpace) -> Iterator[str]:
    """A sampler that is told what the ledger holds knows just that."""
    search = recorded_specification(study).search
    proposer = Proposer(space, sampler=search.sampler, seed=study.seed, published=search.published_points)
    proposer.replay(trials, ledger.readings_by_trial(study.id))
    yield from replay_violations(ledger, study.id, proposer)
