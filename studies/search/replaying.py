"""Whether Optuna's study in memory is what the ledger holds."""

from collections.abc import Iterator

from optuna.trial import FrozenTrial

from studies.keeping.plan import StudyPlan
from studies.search.proposer import Proposer
from studies.store.ledger import Ledger


def replayed(ledger: Ledger, study_id: int, plan: StudyPlan) -> Proposer:
    """A new proposer that was told what the ledger holds."""
    proposer = Proposer(plan.space, sampler=plan.sampler, seed=plan.seed, published=plan.published)
    proposer.replay(ledger.trials(study_id), ledger.readings_by_trial(study_id))
    return proposer


def replay_violations(ledger: Ledger, study_id: int, proposer: Proposer) -> list[str]:
    """Every difference between a proposer's history and the ledger, one line each; empty when they agree.

    Args:
        ledger: Where the study is.
        study_id: Its key.
        proposer: A live keeper's, or one that was `replayed`.
    """
    return list(_differences(ledger, study_id, proposer))


def _differences(ledger: Ledger, study_id: int, proposer: Proposer) -> Iterator[str]:
    trials, history = ledger.trials(study_id), proposer.history()
    readings = ledger.readings_by_trial(study_id)
    if len(trials) != len(history):
        yield f"the ledger holds {len(trials)} trials, Optuna {len(history)}"
    for trial, known in zip(trials, history, strict=False):
        expected = proposer.expected(trial, readings.get(trial.number, ()))
        if expected.state.is_finished() and not known.state.is_finished():
            yield f"trial {trial.number}: the ledger has ended it, Optuna has not"
            continue
        for what, ours, theirs in _facts(expected, known):
            if ours != theirs:
                yield f"trial {trial.number}: {what} is {ours} in the ledger, {theirs} in Optuna"


def _facts(expected: FrozenTrial, known: FrozenTrial) -> Iterator[tuple[str, object, object]]:
    yield "state", expected.state.name, known.state.name
    yield "parameters", expected.params, known.params
    yield "distributions", expected.distributions, known.distributions
    if expected.state.name != "FAIL":
        # Optuna hears no more of a trial that it was told to forget
        yield "score", expected.values, known.values
        yield "readings", expected.intermediate_values, known.intermediate_values
