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
from studies.records import Reading, TrialRecord, TrialState
from studies.search.candidates import new_trial
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.search.samplers import Sampler

START = datetime(2026, 1, 1, tzinfo=UTC)
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


def search(proposer: Proposer, space: SearchSpace, count: int, history: list[TrialRecord]) -> list[TrialRecord]:
    """Run one trial after another and report each end."""
    for _ in range(count):
        number = proposer.next_number
        state = STATES[number % len(STATES)]
        record = record_of(proposer.propose(), number, space, state)
        proposer.add_reading(number, 4, trial_score(number))
        proposer.end_trial(number, state, record.score)
        history.append(record)
    return history


def whole_space() -> SearchSpace:
    """Return the whole space at about 0.5% of RoBERTa-base."""
    folder = Path(__file__).parents[1] / "data" / "backbones" / "roberta_base"
    shape = shape_of(json.loads((folder / "config.json").read_text()))
    return SearchSpace(shape=shape, budget=600_000)


def proposer_of(
    space: SearchSpace, sampler: str | Sampler = "tpe", published: tuple[str, ...] = ("mam_adapter", "lora_qv")
) -> Proposer:
    """Return a proposer with an empty history."""
    return Proposer(space, sampler=sampler, seed=5, initial_design=InitialDesign(published=published))


def next_after_a_replay(space: SearchSpace, sampler: str, count: int) -> list[str]:
    """Return fingerprints of the next three proposals of a proposer that was rebuilt from this number of trials."""
    history = search(proposer_of(space, sampler), space, count, [])
    replayed = proposer_of(space, sampler)
    replayed.replay(history, readings_of(history))
    return [trial.fingerprint for trial in search(replayed, space, 3, [])]


if __name__ == "__main__":
    sys.stdout.write("\n".join(next_after_a_replay(whole_space(), sys.argv[1], int(sys.argv[2]))))
