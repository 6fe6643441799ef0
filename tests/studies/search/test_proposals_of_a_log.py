"""Observations of the search: all records of the ledger, the same after a replay."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from support.factored_search import proposed
from support.simulated_search import readings_of, record_of, trial_score

from search_space.space.space import Candidate, SearchSpace
from studies.records import Reading, TrialState
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.observation import Observation
from studies.surrogate.recorded_observations import ObservationModel, shared_variance_fraction

MODEL = ObservationModel(steps=8, examples=400)
PUBLISHED = ("lora_qv", "mam_adapter", "head_only")


def test_proposer_receives_reading_progress_and_error(space):
    live, rebuilt = proposer_of(space), proposer_of(space)
    begun = [live.propose() for _ in PUBLISHED]
    records = [record_of(one, number, space, TrialState.RUNNING) for number, one in enumerate(begun)]
    before = Reading(trial=1, step=2, attempt=1, score=0.2, train_loss=1, seconds=1, rung=None)
    rebuilt.replay(records, {1: [before]})
    for proposer in (live, rebuilt):
        for reading in ((1, 2, 0.2), (1, 2, 0.9), (0, 2, 0.25), (0, 8, 0.5)):  # of two at one step the first stands
            proposer.add_reading(*reading)
        proposer.end_trial(0, TrialState.COMPLETE, 0.5)
        proposer.end_trial(2, TrialState.FAILED)
    ended, running, failed = live.trials
    assert [(one.fraction, one.score) for one in ended.readings] == [(0.25, 0.25), (1.0, 0.5)]
    assert ended.readings[1].standard_error == pytest.approx(
        math.sqrt(0.5 * 0.5 * (1 - shared_variance_fraction(1.0)) / 400), abs=1e-15
    )
    assert [(one.fraction, one.score) for one in running.readings] == [(0.25, 0.2)]
    assert [one.state for one in live.trials] == [TrialState.COMPLETE, TrialState.RUNNING, TrialState.FAILED]
    assert failed.readings == ()
    assert rebuilt.trials == live.trials


def test_rebuilt_search_knows_the_order_in_which_trials_ended(space):
    order = [18, 5, 0, 9, 19, 3, 14, 16, 1, 7, 12, 2, 17, 10, 4, 15, 6, 13, 8, 11]
    live, rebuilt, by_number = (proposer_of(space, published=("lora_qv",)) for _ in range(3))
    begun = [live.propose() for _ in order]
    records = [record_of(one, number, space, TrialState.COMPLETE) for number, one in enumerate(begun)]
    first = max(one.ended_at for one in records if one.ended_at is not None)
    for place, number in enumerate(order):
        live.add_reading(number, 4, trial_score(number))
        live.end_trial(number, TrialState.COMPLETE, records[number].score)
        records[number] = replace(records[number], ended_at=first + timedelta(seconds=place))
    rebuilt.replay(records, readings_of(records))
    at_once = [replace(one, ended_at=first) for one in records]
    by_number.replay(at_once, readings_of(records))
    proposals = [[proposer.propose().fingerprint for _ in range(3)] for proposer in (live, rebuilt, by_number)]
    assert proposals[0] == proposals[1]
    assert proposals[0] != proposals[2]


def test_scores_outside_0_to_1_have_no_standard_error():
    assert MODEL.measured(8, 27.5).standard_error == 0.0
    assert ObservationModel(steps=8).measured(8, 0.5).standard_error == 0.0


def proposer_of(space: SearchSpace, published: tuple[str, ...] = PUBLISHED) -> Proposer:
    return Proposer(space, sampler="factored", seed=3, initial_design=InitialDesign(published=published), model=MODEL)


def test_free_slots_are_filled_as_if_the_earlier_ones_were_running(space):
    proposer = proposer_of(space, published=("lora_qv",))
    histories: list[Observation] = []
    for number in range(12):
        candidate = proposer.propose()
        proposer.add_reading(number, 8, trial_score(number))
        proposer.end_trial(number, TrialState.COMPLETE, trial_score(number))
        histories.append(Observation.of(candidate, number=number, readings=(MODEL.measured(8, trial_score(number)),)))
    together = proposed(FactoredSearch(space, seed=3), histories, slots=4)
    assert [proposer.propose().fingerprint for _ in range(4)] == [one.fingerprint for one in together]


@pytest.mark.slow
def test_published_method_at_other_rates_keeps_its_name(space):
    proposer = proposer_of(space)
    found: list[Candidate] = []
    for number in range(80):
        found.append(proposer.propose())
        proposer.add_reading(number, 8, trial_score(number))
        proposer.end_trial(number, TrialState.COMPLETE, trial_score(number))
    again = [(number, one) for number, one in enumerate(found) if number >= len(PUBLISHED) and one.method is not None]
    assert again
    for number, candidate in again:
        assert candidate.method in PUBLISHED
        original = next(one for one in found if one.method == candidate.method)
        assert candidate.configuration == original.configuration
        assert proposer.trials[number].method == candidate.method
