"""Trials that are trained again: the best configurations, and baselines with tuned learning rates."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support.simulated_search import proposals

from search_space.canonical import fingerprint
from search_space.published.point import PublishedPoint
from search_space.space.space import SearchSpace
from search_space.words.describe import sentence
from studies.confirmation.contenders import Contender, ContenderEntry, contender_entries, trials_of
from studies.records import TrialRecord, TrialState
from studies.search.candidates import new_trial
from studies.search.proposer import Proposer

TIME = datetime(2026, 1, 1, tzinfo=UTC)

Recorded = Callable[..., TrialRecord]


def points(*names: str) -> tuple[PublishedPoint, ...]:
    return tuple(map(PublishedPoint, names))


def recorded(new: TrialRecord, score: float | None = None, state: TrialState = TrialState.COMPLETE) -> TrialRecord:
    """Return a recorded trial that has ended."""
    reason = None if state is TrialState.COMPLETE else "why"
    return replace(new, state=state, score=score, reason=reason, attempt=1, created_at=TIME, ended_at=TIME)


class Rates:
    """Proposes a fixed place in every range of learning rates."""

    def __init__(self, place: float) -> None:
        self.place = place

    def suggest_categorical(self, name: str, choices: tuple[str, ...]) -> str:
        return choices[0]

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return low + self.place * (high - low)


@pytest.fixture
def published(space: SearchSpace) -> Recorded:
    """Build the trial of a published method, with learning rates at one fraction of their range."""

    def make(name: str, number: int, score: float | None, place: float = 0.5, **given: object) -> TrialRecord:
        candidate = space.suggest_published(name, Rates(place))
        new = new_trial(candidate, space.shape, number=number, head_parameters=1538)
        return recorded(replace(new, **given), score, TrialState.COMPLETE if score is not None else TrialState.PRUNED)

    return make


@pytest.fixture(scope="module")
def proposed(space: SearchSpace) -> list[TrialRecord]:
    """Four discoveries with scores 0.70, 0.71, 0.72 and 0.73."""
    found = proposals(Proposer(space, sampler="random", seed=0), 4)
    news = [new_trial(one, space.shape, number=number, head_parameters=1538) for number, one in enumerate(found)]
    return [recorded(new, 0.70 + number / 100) for number, new in enumerate(news)]


def contenders(trials: list[TrialRecord], space: SearchSpace, top: int, *against: str) -> list[Contender]:
    entries, _ = contender_entries(trials, space, top=top, against=points(*against))
    return [entry.contender for entry in entries]


def baseline(trials: list[TrialRecord], space: SearchSpace, name: str) -> ContenderEntry:
    """Return the entry of a method compared with the best configuration."""
    return contender_entries(trials, space, top=1, against=points(name))[0][1]


def test_one_configuration_with_several_learning_rates_is_one_contender(published, proposed, space):
    rates = [published("lora_qv", 4, 0.80, 0.2), published("lora_qv", 5, 0.90, 0.4, method=None)]
    assert rates[0].fingerprint != rates[1].fingerprint
    assert [one.trial for one in contenders([*proposed, *rates], space, 3)] == [5, 3, 2]


def test_labels_are_numbers_or_the_names_of_methods(published, proposed, space):
    found = contenders([*proposed, published("bitfit", 4, 0.8)], space, 2, "lora_qv")
    assert [(one.label, one.is_top, one.baselines) for one in found] == [
        ("bitfit", True, ()),
        ("trial 3", True, ()),
        ("lora_qv", False, ("lora_qv",)),
    ]


def test_a_baseline_is_the_studys_own_trial_with_its_best_learning_rates(published, proposed, space):
    trials = [
        published("mam_adapter", 4, 0.60, 0.1),
        published("mam_adapter", 5, 0.65, 0.9, method=None, origin="proposed"),  # rediscovered
        published("lora_qv", 6, 0.50),
    ]
    found = baseline([*proposed, *trials], space, "mam_adapter")
    assert (found.contender.label, found.contender.trial, found.contender.validation_score) == ("mam_adapter", 5, 0.65)
    assert found.template.ffn == trials[1].ffn
    assert found.template.configuration == trials[0].configuration


def test_a_baseline_is_a_proposal_that_equals_the_method_at_another_size(published, proposed, space):
    method, narrow = published("lora_all", 4, 0.60), published("lora_all:r=1", 5, 0.65)
    said = sentence(narrow.configuration, space.shape)
    narrow = replace(narrow, method=None, origin="proposed", description=said)
    assert method.configuration != narrow.configuration
    assert said.endswith("(lora_all)")
    for trials in ([method, narrow], [narrow]):
        assert baseline([*proposed, *trials], space, "lora_all").contender.trial == 5
    assert baseline([*proposed, method, narrow], space, "lora_qv").contender.trial is None


def test_a_method_that_the_study_searched_as_a_point_is_that_point(published, proposed, space):
    point = published("lora_qv:s=4", 4, 0.5)
    assert contenders([*proposed, point], space, 1, "lora_qv")[1].trial == 4
    assert contenders([*proposed, point], space, 1, "lora_qv:s=2")[1].trial is None


@pytest.mark.parametrize("was_pruned", [False, True])
def test_a_baseline_without_a_complete_trial_has_rates_of_the_middle(published, proposed, space, was_pruned):
    trials = [*proposed, published("lora_qv", 4, None, 0.9)] if was_pruned else proposed
    entry = baseline(trials, space, "lora_qv")
    low, high = space.options.learning_rates["lowrank"]
    assert entry.contender.trial is None
    assert entry.contender.validation_score is None
    # its scale of 2 does twice as much in a step
    assert entry.template.attention.learning_rate == pytest.approx((low * high) ** 0.5 / 2)
    assert 0.98 * space.budget <= entry.template.stored_parameters <= space.budget
    assert entry.template.head_parameters == 1538


def test_full_fine_tuning_is_not_bound_by_the_budget(proposed, space):
    assert baseline(proposed, space, "full_finetuning").template.stored_parameters > 100 * space.budget


def test_winner_that_is_a_baseline_is_listed_once(published, proposed, space):
    found = contenders([*proposed, published("mam_adapter", 4, 0.9)], space, 2, "lora_qv", "mam_adapter")
    assert [(one.label, one.trial, one.is_top, one.baselines) for one in found] == [
        ("mam_adapter", 4, True, ("mam_adapter",)),
        ("trial 3", 3, True, ()),
        ("lora_qv", None, False, ("lora_qv",)),
    ]


def test_a_baseline_that_does_not_fit_is_left_out_with_the_reason(proposed, space):
    entries, left_out = contender_entries(proposed, space, top=1, against=points("lora_qv:r=64", "bitfit"))
    assert [entry.contender.label for entry in entries] == ["trial 3", "bitfit"]
    assert list(left_out) == ["lora_qv:r=64"]
    assert "the budget is 600,000" in left_out["lora_qv:r=64"]


@pytest.mark.parametrize(("head_parameters", "is_left_out"), [(0, True), (1538, False)])
def test_the_task_head_alone_is_left_out_where_texts_are_written(proposed, space, head_parameters, is_left_out):
    trials = [replace(trial, head_parameters=head_parameters) for trial in proposed]
    entries, left_out = contender_entries(trials, space, top=1, against=points("head_only", "bitfit"))
    assert ("head_only" in left_out) is is_left_out
    assert len(entries) == 3 - is_left_out


def test_trials_are_every_entry_with_every_seed(proposed, space):
    entries, _ = contender_entries(proposed, space, top=2, against=())
    trials = trials_of(entries, (11, 22, 33))
    assert [(trial.number, trial.seed) for trial in trials] == list(enumerate([11, 22, 33] * 2))
    assert len({trial.fingerprint for trial in trials}) == 6
    assert trials[4].fingerprint == f"{proposed[2].fingerprint}:22"
    assert trials[4].configuration == proposed[2].configuration
    assert all(trial.proposal == {} for trial in trials)
    assert fingerprint(trials[0].configuration, space.shape)
