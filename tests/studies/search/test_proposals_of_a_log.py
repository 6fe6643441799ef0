"""The search is told all that the ledger holds, and the same whether or not it was rebuilt."""

import math

import pytest
from support.factored_search import proposed
from support.simulated_search import record_of, whole_space

from search_space.space.space import Candidate, SearchSpace
from studies.records import ReadingRecord, TrialRecord, TrialState
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.observation import Observation
from studies.surrogate.recorded_observations import ObservationModel, common_luck

COURSE = ObservationModel(steps=8, examples=400)
PUBLISHED = ("lora_qv", "mam_adapter", "head_only")


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return whole_space()


def readings(number: int, *scores: tuple[int, float]) -> list[ReadingRecord]:
    return [
        ReadingRecord(trial=number, step=step, attempt=1, score=score, train_loss=1, seconds=1, rung=None)
        for step, score in scores
    ]


def told(proposer: Proposer) -> None:
    """Three trials, of which one is complete, one runs and one has failed."""
    proposer.report(1, 2, 0.2)
    proposer.report(1, 2, 0.9)  # the first stands
    proposer.report(0, 2, 0.25)
    proposer.report(0, 8, 0.5)
    proposer.close(0, TrialState.COMPLETE, 0.5)
    proposer.close(2, TrialState.FAILED)


def test_it_is_told_how_far_a_reading_is_and_how_sure_and_records_tell_the_same(space):
    live, rebuilt = proposer_of(space), proposer_of(space)
    begun = [live.propose() for _ in PUBLISHED]
    records = [record_of(one, number, space, TrialState.RUNNING) for number, one in enumerate(begun)]
    rebuilt.replay(records, {1: readings(1, (2, 0.2))})
    for proposer in (live, rebuilt):
        told(proposer)
    ended, running, failed = live.trials
    assert [(one.fraction, one.score) for one in ended.readings] == [(0.25, 0.25), (1.0, 0.5)]
    assert ended.readings[1].standard_error == pytest.approx(
        math.sqrt(0.5 * 0.5 * (1 - common_luck(1.0)) / 400), abs=1e-15
    )
    assert [(one.fraction, one.score) for one in running.readings] == [(0.25, 0.2)]
    assert [one.state for one in live.trials] == [TrialState.COMPLETE, TrialState.RUNNING, TrialState.FAILED]
    assert failed.readings == ()
    assert rebuilt.trials == live.trials


def test_scores_that_are_no_shares_have_no_error_that_is_known():
    assert COURSE.measured(8, 27.5).standard_error == 0.0
    assert ObservationModel(steps=8).measured(8, 0.5).standard_error == 0.0


def proposer_of(space: SearchSpace, published: tuple[str, ...] = PUBLISHED) -> Proposer:
    return Proposer(space, sampler="factored", seed=3, opening=InitialDesign(published=published), course=COURSE)


def score_of(number: int) -> float:
    return (number * 37 % 101) / 101


def searched(proposer: Proposer, space: SearchSpace, count: int) -> tuple[list[TrialRecord], dict]:
    """Packs of three: of each one trial is complete, one pruned, and one failed or still running."""
    records, read = [], {}
    while len(records) < count:
        for number, candidate in [(proposer.next_number, proposer.propose()) for _ in range(3)]:
            states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED if number < 9 else TrialState.RUNNING)
            state = states[number % 3]
            scores = [(2, score_of(number)), (8, score_of(number + 1))][: 2 if state is TrialState.COMPLETE else 1]
            read[number] = readings(number, *scores)
            for one in read[number]:
                proposer.report(number, one.step, one.score)
            if state.is_terminal:
                proposer.close(number, state, scores[-1][1] if state is TrialState.COMPLETE else None)
            records.append(record_of(candidate, number, space, state))
    return records, read


def test_a_rebuilt_proposer_proposes_the_same_pack_among_pruned_failed_and_running_trials(space):
    lost = proposer_of(space)
    records, read = searched(lost, space, 21)
    rebuilt = proposer_of(space)
    rebuilt.replay(records, read)
    expected = [lost.propose().fingerprint for _ in range(4)]
    assert [rebuilt.propose().fingerprint for _ in range(4)] == expected
    assert len({*expected, *(one.fingerprint for one in records)}) == 25


def test_free_slots_are_filled_as_if_the_earlier_ones_were_running(space):
    proposer = proposer_of(space, published=("lora_qv",))
    seen: list[Observation] = []
    for number in range(12):
        candidate = proposer.propose()
        proposer.report(number, 8, score_of(number))
        proposer.close(number, TrialState.COMPLETE, score_of(number))
        seen.append(Observation.of(candidate, number=number, readings=(COURSE.measured(8, score_of(number)),)))
    together = proposed(FactoredSearch(space, seed=3), seen, slots=4)
    assert [proposer.propose().fingerprint for _ in range(4)] == [one.fingerprint for one in together]


def test_a_published_method_at_other_rates_is_a_published_trial_with_its_name(space):
    proposer = proposer_of(space)
    found: list[Candidate] = []
    for number in range(80):
        found.append(proposer.propose())
        proposer.report(number, 8, score_of(number))
        proposer.close(number, TrialState.COMPLETE, score_of(number))
    again = [(number, one) for number, one in enumerate(found) if number >= len(PUBLISHED) and one.method is not None]
    assert again
    for number, candidate in again:
        assert candidate.method in PUBLISHED
        original = next(one for one in found if one.method == candidate.method)
        assert candidate.configuration == original.configuration
        assert proposer.trials[number].method == candidate.method
