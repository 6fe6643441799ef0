"""Verification of a study: invariants of the ledger, replay of its proposals, hashes of its files."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from optuna.trial import FixedTrial

from search_space.errors import SearchSpaceError
from search_space.space.space import SearchSpace
from studies.confirmation.ablation_path import comparisons_of
from studies.confirmation.results import ConfirmationResult, confirmation_result
from studies.consistency import confirmation_differences, record_differences, study_differences, trial_differences
from studies.inputs import changed_inputs
from studies.ledger.invariants import Records, file_violations, record_violations
from studies.ledger.ledger import Ledger
from studies.records import StudyKind, TrialRecord
from studies.study_file.recorded_specification import (
    begun_specification,
    recorded_space,
    recorded_specification,
)

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
"""Seconds after which leases of a killed launch have run out; the next launch takes them back, so that is no error."""


def verify(ledger: Ledger, name: str, tell: Callable[[str], object] = warnings.warn) -> list[str]:
    """Return one line for each error in a study; none if it is whole.

    It checks the SQLite file, the invariants of the ledger, the hashes of the artefacts' files, and the consistency of
    the records, see `studies.consistency`. Of a search it also replays each proposal and the history that the sampler
    received. Data and backbone are compared with their recorded digest, if there is one.

    Args:
        ledger: Ledger of the study.
        name: Name of the study.
        tell: Called with a line if data and backbone cannot be read, so that they are not compared.

    Raises:
        UnknownStudyError: If there is no study of that name.
        StudiesError: If it was recorded by a release with other keys.
        RunnerError: If its backbone cannot be loaded.
    """
    study = ledger.study(name)
    found = ledger.read(file_violations)
    changed = changed_inputs(study, tell).values()
    found += [f"data and backbone must be those that the study was begun with; {change}" for change in changed]
    records = ledger.read(lambda link: Records.of(link, study.id))
    if study.kind is StudyKind.CONFIRMATION:
        specification = begun_specification(study)
        found += record_violations(records, rung_steps=(), now=_LONG_AGO)
        found += record_differences(records, specification.training.steps, ())
        parent = next((one for one in ledger.studies() if one.id == study.parent_id), None)
        if parent is None:
            return [*found, f"the study that '{name}' confirms must be there; it is not"]
        originals = ledger.trials(parent.id)
        found += confirmation_differences(records, ledger.confirmation(study), parent, originals)
        return found or list(_strange_comparisons(confirmation_result(ledger, name)))
    specification, space = recorded_specification(study), recorded_space(study)
    steps = specification.rung_plan().steps
    found += record_violations(records, rung_steps=steps, now=_LONG_AGO)
    found += record_differences(records, specification.training.steps, steps)
    budget = specification.budget_parameters(space.shape)
    found += study_differences(study, specification, space.shape.parameters, budget)
    found += _strange_proposals(records.trials, space, study.seed)
    return found


def _strange_comparisons(result: ConfirmationResult) -> Iterator[str]:
    """Yield one line for each stored comparison of a confirmation that differs from the one of its scores."""
    expected = {label: one.entry() for label, one in comparisons_of(result).items()}
    for one in result.contenders:
        told = expected.get(one.label)
        if one.comparison is not None and (
            told is None or any(_differ(one.comparison.get(key), told[key]) for key in told)
        ):
            yield f"the comparison with '{one.label}' must be that of the scores, {told}; got {dict(one.comparison)}"


def _differ(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return not math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-9)
    return ours != theirs


def _strange_proposals(trials: Sequence[TrialRecord], space: SearchSpace, seed: int) -> Iterator[str]:
    """Yield one line for each trial that differs from the one that its proposal makes."""
    for trial in trials:
        proposal = FixedTrial(dict(trial.proposal))
        try:
            with warnings.catch_warnings(action="error", category=UserWarning):
                method = trial.method
                candidate = space.suggest(proposal) if method is None else space.suggest_published(method, proposal)
        except (SearchSpaceError, ValueError, UserWarning) as error:
            yield f"trial {trial.number}: its proposal must make a configuration; {error}"
            continue
        yield from trial_differences(trial, candidate, trials, space.shape, seed)
