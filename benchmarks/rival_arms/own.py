"""Arms of this library: studies that are launched in this process on the shared trials."""

import math
import sys
import time
from dataclasses import replace
from unittest.mock import patch

import deltaspace
from rival_arms.setting import ArmTrial, Cell, SearchResult
from rival_arms.training import OutOfTime
from studies.analysis.ranks import Ranking, ranking_of
from studies.analysis.verdict import on_new_examples
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.records import TrialRecord, TrialState
from studies.search.candidates import trial_request
from studies.study_file import Specification, specification_of

_LEAST_SECONDS = 30.0  # below this no study is begun or continued


def uniform(cell: Cell) -> SearchResult:
    """Run a study that draws uniformly over structures, with pruning and estimates as shipped."""
    return _study(cell, "uniform", {"search.sampler": "random"})


def factored(cell: Cell) -> SearchResult:
    """Run a study with the search as shipped."""
    return _study(cell, "factored", {})


def lora_space(cell: Cell) -> SearchResult:
    """Run a study of LoRA alone, otherwise as shipped."""
    return _study(cell, "lora", {"space": "lora"})


def _study(cell: Cell, arm: str, overrides: dict[str, object]) -> SearchResult:
    specification = specification_of(cell.specification, {"name": f"{cell.name}-{arm}", **overrides})
    storage = f"sqlite:///{cell.folder.absolute() / f'{specification.name}.db'}"
    result = _complete_study(specification, storage)
    seconds = cell.runner.until - time.monotonic()
    if result is None and seconds > _LEAST_SECONDS:
        _launch(cell, specification, storage, seconds)
        result = _complete_study(specification, storage)
    if result is None:
        raise OutOfTime
    records, ranking = result
    trials = {record.number: _arm_trial(cell, record) for record in records}
    winner = ranking.trials[0].number
    estimate = on_new_examples(ranking) or ranking.estimates.of.get(winner)
    expected = None if estimate is None else (estimate.mean, estimate.reach)
    return SearchResult(trials=list(trials.values()), recommended=trials[winner], expected=expected)


def _launch(cell: Cell, specification: Specification, storage: str, seconds: float) -> None:
    """Continue a study until it is finished or its time is up.

    Raises:
        SystemExit: If a signal stops it.
    """
    until, cell.runner.until = cell.runner.until, math.inf  # the study itself ends in time
    timed = specification_of(specification, {"fleet.time_budget": f"{max(1, int(seconds))}s"})
    try:
        with patch("trial_runner.runner.open_runner", lambda **_: cell.runner):
            ended = launch(timed, storage_url=storage)
    finally:
        cell.runner.until = until
    if ended.is_interrupted:
        sys.exit(f"stopped: '{specification.name}' is not finished. The same command continues it.")


def _complete_study(specification: Specification, storage: str) -> tuple[list[TrialRecord], Ranking] | None:
    try:
        with Ledger.open(storage, read_only=True) as ledger:
            study = ledger.study(specification.name)
            records = ledger.trials(study.id)
            if len(records) < specification.trials or not all(record.state.is_terminal for record in records):
                return None
            return list(records), ranking_of(ledger, study, records)
    except deltaspace.errors.StorageError:
        return None


def _arm_trial(cell: Cell, record: TrialRecord) -> ArmTrial:
    request = trial_request(record, attempt=1, plan=cell.specification.training_plan())
    is_complete = record.state is TrialState.COMPLETE
    return ArmTrial(
        request=replace(request, trial=record.number),
        score=record.score if is_complete else None,
        steps=record.steps,
        method=record.method,
    )
