"""Proposals of studies of given published methods, and of bounded ranks, by every sampler."""

from collections import Counter

import pytest
from support.simulated_search import after, proposer_of, recorded_history, search

from search_space.forms import SizedForm
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.random_draw import RandomTrial
from search_space.space.space import METHOD, SIZE, SearchSpace
from studies.records import TrialState
from studies.search.candidates import new_trial
from studies.search.samplers import SAMPLERS
from studies.surrogate.encoding import Encoding

METHODS = ("lora_qv", "pfeiffer_adapter", "bitfit")
OPTUNA_CLASS = "optuna.samplers:TPESampler"


def space_with(space: SearchSpace, **options: object) -> SearchSpace:
    given = {"size": (0.125, 1.0)} | options
    return SearchSpace(shape=space.shape, budget=space.budget, options=SpaceOptions(**given))  # type: ignore[arg-type]


@pytest.mark.parametrize("sampler", [*SAMPLERS, OPTUNA_CLASS])
def test_every_sampler_proposes_and_receives_the_methods_alone(space, sampler):
    methods = space_with(space, methods=METHODS)
    proposer = proposer_of(methods, sampler, METHODS)
    history = search(proposer, 24)
    assert [trial.method for trial in history][:3] == list(METHODS)
    assert {trial.method for trial in history} == set(METHODS)
    assert all(trial.stored_parameters <= space.budget for trial in history)
    assert len({trial.fingerprint for trial in history}) == 24
    for trial in history:
        again = methods.suggest_published(trial.method, dict(trial.proposal))
        assert again.fingerprint == trial.fingerprint
        assert dict(trial.proposal) == again.parameters
        assert trial.proposal[METHOD] == trial.method
        assert (SIZE in trial.proposal) == (trial.method != "bitfit")
    # the sampler receives all of them, those that are tried first included
    visible = proposer.visible(history)
    assert [one.params for one in visible] == [dict(trial.proposal) for trial in history]
    assert proposer_of(methods, sampler, METHODS).propose(recorded_history(history)) == proposer.propose(history)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_single_method_is_tuned_by_every_sampler(space, sampler):
    one = space_with(space, methods=("lora_all",), rank=(1, 3), values=FormValues(scales=(1.0, 4.0)))
    history = search(proposer_of(one, sampler, ("lora_all",)), 14)
    assert {trial.method for trial in history} == {"lora_all"}
    assert METHOD not in one.parameters()
    ranks = {edit.form.size for trial in history for edit in trial.configuration.edits}
    assert ranks <= {"1", "1–2", "2", "2–3", "3"}
    assert len({trial.proposal["scale"] for trial in history}) == 2
    assert len({trial.attention_learning_rate for trial in history}) > 10


def test_first_random_trials_share_the_methods_evenly(space):
    methods = space_with(space, methods=METHODS)
    counts = Counter(trial.method for trial in search(proposer_of(methods, "factored", ()), 9))
    assert counts == dict.fromkeys(METHODS, 3)


def test_model_moves_the_trials_to_the_better_rates(space):
    one = space_with(space, methods=("lora_qv", "lora_ffn"))
    proposer, history = proposer_of(one, "factored", ()), recorded_history(())
    for number in range(36):
        candidate = proposer.propose(history)
        is_good = candidate.method == "lora_ffn" and float(candidate.parameters["learning_rate.lowrank"]) < 3e-3
        score = 0.8 if is_good else 0.3 + 0.001 * (number % 7)
        history = after(history, candidate, one, TrialState.COMPLETE, score)
    late = [trial for trial in history if trial.number >= 16]
    good = sum(trial.method == "lora_ffn" and trial.proposal["learning_rate.lowrank"] < 3e-3 for trial in late)
    assert good > len(late) / 2  # a fifth of random draws


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_keeps_the_bounds_of_the_rank(space, sampler):
    lora = {"attention_forms": ("lowrank",), "ffn_forms": ("lowrank",), "exportable": "peft"}
    bounded = space_with(space, rank=(2, 6), **lora)
    proposer = proposer_of(bounded, sampler, ("lora_qv", "lora_qv:r=8", "lora_all"))
    history = search(proposer, 18)
    widths = [width for trial in history for edit in trial.configuration.edits for width in _widths(edit.form)]
    assert set(widths) <= set(range(2, 7))
    assert len(set(widths)) > 2
    assert "must have ranks from 2 to 6; got 8" in proposer.left_out["lora_qv:r=8"]
    assert [trial.method for trial in history][:3] == ["lora_qv", "lora_all", None]


def _widths(form: SizedForm) -> tuple[int, int]:
    return (form.width, form.width + (form.widened > 0))


def test_encoding_sizes_a_bounded_rank_as_the_space_does(space):
    bounded = space_with(space, rank=(2, 16), attention_forms=("lowrank", "bottleneck"), ffn_forms=("lowrank",))
    encoding = Encoding(bounded)
    for seed in range(30):
        candidate = bounded.suggest(RandomTrial(seed))
        trial = new_trial(candidate, space.shape, number=0, study_seed=0, head_parameters=0)
        encoded = encoding.encode(trial)
        assert encoded is not None
        for side, exact in zip(encoding.features(encoded), encoding.features_of(trial), strict=True):
            assert (side is None) == (exact is None)
            if side is not None and exact is not None:
                assert side.log2_budget_fraction == pytest.approx(exact.log2_budget_fraction, abs=0.25)
        again = encoding.candidate(encoded)
        assert again.counts.stored == pytest.approx(candidate.counts.stored, rel=0.1)
