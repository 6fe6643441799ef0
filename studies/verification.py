"""Verification of a study: invariants of the ledger, the trials that its proposals make, hashes of its files."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from optuna.trial import FixedTrial

from search_space.errors import SearchSpaceError
from search_space.space.space import SearchSpace
from studies.analysis.estimates import cache_mismatches
from studies.confirmation.ablation_path import comparisons_of
from studies.confirmation.consistency import ConfirmationFacts
from studies.confirmation.results import ConfirmationResult, confirmation_result
from studies.consistency import record_violations, study_differences, trial_differences
from studies.inputs import changed_inputs
from studies.ledger.invariants import Records, database_violations
from studies.ledger.ledger import Ledger
from studies.pruning.consistency import pruning_differences
from studies.records import StudyKind, TrialRecord
from studies.study_file.recorded_specification import (
    FORMER_RULES,
    BegunSpecification,
    begun_specification,
    recorded_space,
)
from trial_runner.errors import RunnerError
from trial_runner.tasks import Prepared, prepared_for

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
"""Seconds after which leases of a killed launch have run out; the next launch takes them back, so that is no error."""


def verify(ledger: Ledger, name: str, tell: Callable[[str], object] = warnings.warn) -> list[str]:
    """Return one line for each error in a study; none if it is whole.

    It checks the database and its schema, see `studies.ledger.invariants`, the consistency of the records, see
    `studies.consistency`, and the files of the study's folder. Of a search it also makes each trial again from its
    proposal, decides at rungs again, see `studies.pruning.consistency`, and computes cached estimates again. Data and
    backbone are compared with their recorded digest, if there is one.

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
    specification, is_search = begun_specification(study), study.kind is StudyKind.SEARCH
    prepare = cache(lambda: prepared_for(specification.task, study.backbone))
    found = ledger.read(database_violations)
    changed = changed_inputs(study, tell, prepare).values()
    found += [f"data and backbone must be those that the study was begun with; {change}" for change in changed]
    records = ledger.read(lambda link: Records.of(link, study.id))
    searched = study if is_search else next((one for one in ledger.studies() if one.id == study.parent_id), None)
    if searched is None:
        return [*found, f"the study that '{name}' confirms must be there; it is not"]
    space, rungs = recorded_space(searched), specification.rung_plan().steps if is_search else ()
    found += record_violations(records, steps=specification.training.steps, rung_steps=rungs, now=_LONG_AGO)
    found += study_differences(study, specification, space)
    if not is_search:
        asked, originals = ledger.confirmation(study), ledger.read(lambda link: Records.of(link, searched.id))
        facts = ConfirmationFacts(records=records, asked=asked, originals=originals, space=space)
        found += facts.differences()
        found += [] if found else facts.contender_differences()
        return found or list(_comparison_mismatches(confirmation_result(ledger, name)))
    found += _proposal_mismatches(records.trials, space, study.seed)
    return found or [*_decision_mismatches(records, specification, prepare), *cache_mismatches(ledger, study)]


def _decision_mismatches(
    records: Records, specification: BegunSpecification, prepare: Callable[[], Prepared]
) -> Iterator[str]:
    """Yield one line for each decision at a rung against the rule; of collapse only if the data can be read."""
    if records.study.section("pruning").get("rule") in FORMER_RULES:
        return
    plan = specification.rung_plan()
    try:
        plan = replace(plan, guessing_loss=prepare().guessing_loss)
    except (RunnerError, OSError):
        plan = replace(plan, stops_collapsed=False)
    yield from pruning_differences(records.trials, records.readings, plan)


def _comparison_mismatches(result: ConfirmationResult) -> Iterator[str]:
    """Yield one line for each contender whose stored comparison is not the one of the scores."""
    expected = {label: one.entry() for label, one in comparisons_of(result).items()}
    for one in result.contenders if result.is_finished else ():
        ours, theirs = expected.get(one.label), one.comparison
        if _rounded(ours) != _rounded(theirs):
            yield (
                f"the comparison with '{one.label}' must be that of the scores, {ours}; got {theirs}. "
                "The same 'deltaspace confirm' or 'ablate' records a missing one."
            )


def _rounded(entry: Mapping[str, object] | None) -> dict[str, object]:
    """Return an entry with its numbers to six digits; a missing one is not an empty one."""
    found = {"is_missing": True} if entry is None else entry
    return {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in found.items()}


class _RecordedTrial(FixedTrial):
    """Fixed trial with the names of all its values, since those of a training may be missing."""

    def __init__(self, proposal: Mapping[str, Any]) -> None:
        """Fix the values."""
        super().__init__(dict(proposal))
        self.recorded = proposal.keys()


def _proposal_mismatches(trials: Sequence[TrialRecord], space: SearchSpace, seed: int) -> Iterator[str]:
    """Yield one line for each trial that differs from the one that its proposal makes."""
    for trial in trials:
        proposal = _RecordedTrial(trial.proposal)
        try:
            with warnings.catch_warnings(action="error", category=UserWarning):
                method = trial.method
                candidate = space.suggest(proposal) if method is None else space.suggest_published(method, proposal)
        except (SearchSpaceError, ValueError, UserWarning) as error:
            yield f"trial {trial.number}: its proposal must make a configuration; {error}"
            continue
        yield from trial_differences(trial, candidate, trials, space.shape, seed)
