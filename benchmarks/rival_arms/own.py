"""Our own arms: studies of the product, launched in this process on the shared trials."""

import math
import time
from dataclasses import replace
from unittest.mock import patch

import deltaspace
from rival_arms.setting import Cell, Search, Tried
from rival_arms.training import OutOfTime
from studies.analysis.ranks import Ranking, ranking_of
from studies.analysis.verdict import on_new_examples
from studies.ledger.ledger import Ledger
from studies.records import TrialRecord, TrialState
from studies.search.candidates import trial_request
from studies.study_file import Specification, specification_of

_MARGIN = 30.0  # seconds that must be left for a study to be begun or continued


def uniform(cell: Cell) -> Search:
    """Uniform over structures, with the pruning and the estimates of the product."""
    return _study(cell, "uniform", {"search.sampler": "random"})


def factored(cell: Cell) -> Search:
    """As shipped."""
    return _study(cell, "factored", {})


def _study(cell: Cell, arm: str, overrides: dict[str, object]) -> Search:
    specification = specification_of(cell.specification, {"name": f"{cell.name}-{arm}", **overrides})
    storage = f"sqlite:///{cell.folder.absolute() / f'{specification.name}.db'}"
    found = _ended(specification, storage)
    left = cell.runner.until - time.monotonic()
    if found is None and left > _MARGIN:
        _launch(cell, specification, storage, left)
        found = _ended(specification, storage)
    if found is None:
        raise OutOfTime
    records, ranking = found
    tried = {one.number: _tried(cell, one) for one in records}
    chosen = ranking.trials[0]
    known = ranking.estimates.of
    estimate = on_new_examples(ranking) or known.get(chosen.number)
    expected = None if estimate is None else (estimate.mean, estimate.reach)
    return Search(trials=list(tried.values()), recommended=tried[chosen.number], expected=expected)


def _launch(cell: Cell, specification: Specification, storage: str, seconds: float) -> None:
    until, cell.runner.until = cell.runner.until, math.inf  # the study itself ends in time
    timed = specification_of(specification, {"fleet.time_budget": f"{max(1, int(seconds))}s"})
    try:
        with patch("trial_runner.runner.open_runner", lambda **_: cell.runner):
            deltaspace.launch(timed, storage=storage, progress=False)
    finally:
        cell.runner.until = until


def _ended(specification: Specification, storage: str) -> tuple[list[TrialRecord], Ranking] | None:
    try:
        with Ledger.open(storage, read_only=True) as ledger:
            study = ledger.study(specification.name)
            records = ledger.trials(study.id)
            if len(records) < specification.trials or not all(one.state.is_terminal for one in records):
                return None
            return list(records), ranking_of(ledger, study, records)
    except deltaspace.errors.StorageError:
        return None


def _tried(cell: Cell, record: TrialRecord) -> Tried:
    request = trial_request(record, attempt=1, plan=cell.specification.training_plan())
    is_complete = record.state is TrialState.COMPLETE
    return Tried(
        request=replace(request, trial=record.number),
        score=record.score if is_complete else None,
        steps=record.steps,
        method=record.method,
    )
