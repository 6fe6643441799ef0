"""A study as a database of Optuna, which stock Optuna and its dashboard open."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import optuna
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial

from search_space.codec import configuration_to_json
from studies.errors import StudiesError, WishError
from studies.exports.optuna_rows import add_trials
from studies.queries.ranking import ranking_of
from studies.records import StudyRecord, TrialRecord, TrialState
from studies.search.chronicle import Chronicle, Course
from studies.search.optuna_history import directions_of, distributions, frozen_trial, whole_path
from studies.search.quiet import quiet_optuna
from studies.specification.recorded import recorded_space, recorded_specification
from studies.store.ledger import Ledger
from trial_runner.files import unfinished

_STATES = {
    TrialState.QUEUED: optuna.trial.TrialState.WAITING,
    TrialState.RUNNING: optuna.trial.TrialState.RUNNING,
    TrialState.COMPLETE: optuna.trial.TrialState.COMPLETE,
    TrialState.PRUNED: optuna.trial.TrialState.PRUNED,
    TrialState.FAILED: optuna.trial.TrialState.FAIL,
}


def export_optuna(ledger: Ledger, study: str, file: Path) -> int:
    """Write all trials of a study to a new SQLite file, under the study's own name.

    States, parameters, intermediate values and scores are Optuna's; what else is known stands in user attributes.

    Args:
        file: Must not exist.

    Returns:
        How many trials there are.

    Raises:
        StudiesError: If there is no such study, or the file is there already or cannot be written.
    """
    record = ledger.study(study)
    _check_is_new(file)
    trials = list(_frozen_trials(ledger, record))
    temporary = unfinished(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()  # SQLite would make it with a mode of its own
        with quiet_optuna():
            _write(record, trials, temporary, _best(ledger, record))
        _check_is_new(file)
        temporary.rename(file)
    except OSError as error:
        raise StudiesError(f"an Optuna database must be written; got: {error}. Choose another place.") from error
    finally:
        temporary.unlink(missing_ok=True)
    return len(trials)


def optuna_study(ledger: Ledger, name: str) -> optuna.Study:
    """All trials of a study as a study in Optuna's memory.

    Raises:
        UnknownStudyError: If there is no study of that name.
    """
    record = ledger.study(name)
    trials = list(_frozen_trials(ledger, record))
    with quiet_optuna():
        return _filled(record, trials, storage=None, best=_best(ledger, record))


def _check_is_new(file: Path) -> None:
    if file.exists() or file.is_symlink():
        raise WishError(f"an export must go to a new place; {file} is there already. Choose another or remove it.")


def _best(ledger: Ledger, record: StudyRecord) -> int | None:
    best = ranking_of(ledger, record).best
    return None if best is None else best.number


def _write(record: StudyRecord, trials: Sequence[FrozenTrial], file: Path, best: int | None) -> None:
    storage = RDBStorage(f"sqlite:///{file}")
    try:
        _filled(record, trials, storage, best)
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _filled(
    record: StudyRecord, trials: Sequence[FrozenTrial], storage: RDBStorage | None, best: int | None
) -> optuna.Study:
    goal = recorded_specification(record).goal(record.budget_parameters)
    study = optuna.create_study(storage=storage, study_name=record.name, directions=directions_of(goal))
    names = [record.metric] if goal is None else [record.metric, goal.objective.value]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(names)
    if goal is not None:
        study.set_user_attr("values", names)
    for name, value in _study_attributes(record, best).items():
        study.set_user_attr(name, value)
    if storage is None:
        study.add_trials(trials)
    else:
        add_trials(storage, storage.get_study_id_from_name(record.name), trials)
    return study


def _study_attributes(record: StudyRecord, best: int | None) -> dict[str, object]:
    return {
        "metric": record.metric,
        "backbone": record.backbone,
        "backbone_parameters": record.backbone_parameters,
        "budget_parameters": record.budget_parameters,
        "seed": record.seed,
        "specification": dict(record.specification),
        # Optuna's own best trial goes by one score; this is the one of the leaderboard
        "best_trial_by_estimate": best,
    }


def _frozen_trials(ledger: Ledger, record: StudyRecord) -> Iterator[FrozenTrial]:
    """Every trial with its own state, and all that Optuna has no place for.

    A published method has its whole path through the space: of rates alone nothing of importance can be learned.
    """
    goal = recorded_specification(record).goal(record.budget_parameters)
    space, readings = recorded_space(record), ledger.readings_by_trial(record.id)
    spaces, chronicle = distributions(space), Chronicle(Course(goal=goal))
    trials = ledger.trials(record.id)
    for trial in trials:
        chronicle.replay(trial, readings.get(trial.number, ()))
    for trial, known, seen in zip(trials, chronicle.known, chronicle.trials, strict=True):
        path = None if trial.method is None else whole_path(space, seen)
        frozen = frozen_trial(known, trial.number, path or trial.proposal, spaces, is_scored=goal is None)
        frozen.state = _STATES[trial.state]
        frozen.datetime_start, frozen.datetime_complete = trial.created_at, trial.ended_at
        frozen.user_attrs = _trial_attributes(trial)
        if goal is not None:
            frozen.user_attrs["readings"] = {str(one.step): one.score for one in readings.get(trial.number, ())}
        yield frozen


def _trial_attributes(trial: TrialRecord) -> dict[str, object]:
    return {
        "description": trial.description,
        "origin": trial.origin,
        "method": trial.method,
        "reason": trial.reason,
        "seed": trial.seed,
        "attention_share": trial.attention_share,
        "stored_parameters": trial.stored_parameters,
        "extra_flops": trial.extra_flops,
        "trained_parameters": trial.trained_parameters,
        "head_parameters": trial.head_parameters,
        "configuration": configuration_to_json(trial.configuration),
    }
