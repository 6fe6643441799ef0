"""Search without training: scores are a formula of the trial's number, and trials take a minute each.

As a program it simulates a search of ``argv[2]`` trials by the sampler ``argv[1]``, rebuilt from its records on the
way. It prints the fingerprints of the next proposals, one a line.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from search_space.backbones import shape_of
from search_space.space.space import Candidate, SearchSpace
from studies.history.history import StudyHistory
from studies.records import Reading, TrialRecord, TrialReport, TrialState
from studies.search.candidates import new_trial
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.search.samplers import Sampler

START = datetime(2026, 1, 1, tzinfo=UTC)
NOTHING_TRIED = StudyHistory()
STATES = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.COMPLETE, TrialState.FAILED)


def trial_score(number: int) -> float:
    return (number * 37 % 101) / 101


def record_of(candidate: Candidate, number: int, space: SearchSpace, state: TrialState) -> TrialRecord:
    """Return the ledger's record of a trial that took a minute, one after another."""
    new = new_trial(candidate, space.shape, number=number, study_seed=5, head_parameters=10)
    began_at = START + timedelta(minutes=number)
    return replace(
        new,
        state=state,
        score=trial_score(number) if state is TrialState.COMPLETE else None,
        steps=4,
        last_score=trial_score(number),
        reason="why" if state in (TrialState.PRUNED, TrialState.FAILED) else None,
        attempt=1,
        created_at=began_at,
        ended_at=began_at + timedelta(seconds=59) if state.is_terminal else None,
    )


def readings_of(trials: Iterable[TrialRecord]) -> dict[int, list[Reading]]:
    return {
        trial.number: [
            Reading(
                trial=trial.number,
                step=4,
                attempt=1,
                score=trial_score(trial.number),
                train_loss=1,
                seconds=1,
                rung=0,
            )
        ]
        for trial in trials
    }


def assert_continued(space: SearchSpace, sampler: str, proposer: Proposer, history: StudyHistory) -> None:
    """Assert that another proposer continues the recorded history as the first one does."""
    other = proposer_of(space, sampler, published=())
    assert other.propose(recorded_history(history)).fingerprint == proposer.propose(history).fingerprint


def recorded_history(trials: Iterable[TrialRecord]) -> StudyHistory:
    records = list(trials)
    return StudyHistory.of(records, readings_of(records))


def after(
    history: StudyHistory,
    candidate: Candidate,
    space: SearchSpace,
    state: TrialState = TrialState.RUNNING,
    score: float | None = None,
) -> StudyHistory:
    """Return the history after a trial of a candidate, ended unless it runs; the default score is its number's."""
    number = len(history)
    record = record_of(candidate, number, space, TrialState.RUNNING)
    history = history.added([replace(record, steps=0, last_score=None)])
    if not state.is_terminal:
        return history
    last = trial_score(number) if score is None else score
    report = TrialReport(
        trial=number,
        attempt=1,
        reading=replace(readings_of([record])[number][0], score=last),
        state=state,
        score=last if state is TrialState.COMPLETE else None,
        reason=None if state is TrialState.COMPLETE else "why",
    )
    return history.reported(report, START + timedelta(minutes=number, seconds=59))


def proposals(proposer: Proposer, count: int, history: StudyHistory = NOTHING_TRIED) -> list[Candidate]:
    """Propose trials, each as if those before it were running."""
    found = []
    for _ in range(count):
        found.append(proposer.propose(history))
        history = after(history, found[-1], proposer.space)
    return found


def search(proposer: Proposer, count: int, history: StudyHistory = NOTHING_TRIED) -> StudyHistory:
    """Run one trial after another and return the history after them."""
    for number in range(len(history), len(history) + count):
        history = after(history, proposer.propose(history), proposer.space, STATES[number % len(STATES)])
    return history


def whole_space() -> SearchSpace:
    """Return the whole space at about 0.5% of RoBERTa-base."""
    folder = Path(__file__).parents[1] / "data" / "backbones" / "roberta_base"
    shape = shape_of(json.loads((folder / "config.json").read_text()))
    return SearchSpace(shape=shape, budget=600_000)


def proposer_of(
    space: SearchSpace, sampler: str | Sampler = "tpe", published: tuple[str, ...] = ("mam_adapter", "lora_qv")
) -> Proposer:
    """Return the proposer of a study of some published methods."""
    return Proposer(space, sampler=sampler, seed=5, initial_design=InitialDesign(published=published))


def next_after_a_replay(space: SearchSpace, sampler: str, count: int) -> list[str]:
    """Return fingerprints of the next three proposals of a new proposer after this number of trials."""
    records = list(search(proposer_of(space, sampler), count))
    return [trial.fingerprint for trial in search(proposer_of(space, sampler), 3, recorded_history(records))[count:]]


if __name__ == "__main__":
    sys.stdout.write("\n".join(next_after_a_replay(whole_space(), sys.argv[1], int(sys.argv[2]))))
