"""Proposals of a study with readings: what is recorded decides, and the order in which trials ended."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.simulated_search import NOTHING_TRIED, after, proposals, proposer_of, readings_of, record_of

from search_space.space.space import SearchSpace
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.records import TrialReport, TrialState
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.surrogate.candidate_search import FactoredSearch

NOISE = ScoreNoise(steps=4, examples=400)
PUBLISHED = ("lora_qv", "mam_adapter", "head_only")


def continued(space: SearchSpace, history: StudyHistory, count: int = 3) -> list[str]:
    """Return the fingerprints of the next proposals of a new proposer."""
    design = InitialDesign(published=("lora_qv",))
    proposer = Proposer(space, sampler="factored", seed=3, initial_design=design)
    return [one.fingerprint for one in proposals(proposer, count, history)]


def test_order_in_which_trials_ended_decides_not_their_numbers(space):
    order = [18, 5, 0, 9, 19, 3, 14, 16, 1, 7, 12, 2, 17, 10, 4, 15, 6, 13, 8, 11]
    begun = proposals(proposer_of(space, "factored", ("lora_qv",)), len(order))
    complete = [record_of(one, number, space, TrialState.COMPLETE) for number, one in enumerate(begun)]
    last = max(one.ended_at for one in complete if one.ended_at is not None)
    live = StudyHistory(NOISE)
    for number, candidate in enumerate(begun):
        live = live.added([record_of(candidate, number, space, TrialState.RUNNING)])
    readings = readings_of(complete)
    for place, number in enumerate(order):
        end, (reading,) = complete[number], readings[number]
        report = TrialReport(trial=number, attempt=1, reading=reading, state=end.state, score=end.score)
        live = live.reported(report, last + timedelta(seconds=place))
    rebuilt = StudyHistory.of(list(live), readings, NOISE)
    at_once = StudyHistory.of([replace(one, ended_at=last) for one in live], readings, NOISE)
    assert continued(space, live) == continued(space, rebuilt) != continued(space, at_once)


def test_free_slots_are_filled_as_if_the_earlier_ones_were_running(space):
    proposer, history = proposer_of(space, "factored", ("lora_qv",)), NOTHING_TRIED
    for _ in range(12):
        history = after(history, proposer.propose(history), space, TrialState.COMPLETE)
    search, together, running = FactoredSearch(space, seed=5), [], history
    for _ in range(4):
        candidate = search.candidate(running, number=len(running))
        assert candidate is not None
        together.append(candidate.fingerprint)
        running = after(running, candidate, space)
    assert [one.fingerprint for one in proposals(proposer, 4, history)] == together
    assert len({*together}) == 4


@pytest.mark.slow
def test_published_method_at_other_rates_keeps_its_name(space):
    proposer, history = proposer_of(space, "factored", PUBLISHED), NOTHING_TRIED
    for _ in range(80):
        history = after(history, proposer.propose(history), space, TrialState.COMPLETE)
    again = [one for one in history[len(PUBLISHED) :] if one.method is not None]
    assert again
    for trial in again:
        assert trial.method in PUBLISHED
        original = next(one for one in history if one.method == trial.method)
        assert trial.configuration == original.configuration
