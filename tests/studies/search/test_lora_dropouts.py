"""Dropout of low-rank maps: searched where a study lists several, by every sampler, and nowhere else."""

import pytest
from support.simulated_search import assert_continued, proposer_of, search, whole_space

from search_space.errors import SettingError
from search_space.published import published_method
from search_space.space.options import SpaceOptions
from search_space.space.parameter_table import LORA_DROPOUT, has_input_dropout
from search_space.space.space import SearchSpace
from studies.confirmation.contenders import entry_of, trials_of
from studies.search.candidates import trial_request
from studies.study_file.sections import SPACES
from trial_runner.deltas import DELTAS
from trial_runner.requests import TrainingPlan

VALUES = (0.0, 0.1)
USUAL = 0.05
PLAN = TrainingPlan(steps=4, batch_size=4, evaluate_at_steps=(4,), lora_dropout=USUAL)


def sweep_of(space: SearchSpace) -> SearchSpace:
    forms = ("lowrank", "bottleneck", "diag")
    options = SpaceOptions(attention_forms=forms, ffn_forms=forms, lora_dropout=VALUES)
    return SearchSpace(shape=space.shape, budget=600_000, options=options)


def dropouts_of(history):
    return [trial_request(trial, attempt=1, plan=PLAN).plan.lora_dropout for trial in history]


@pytest.mark.parametrize("sampler", ["factored", "random", "tpe"])
def test_dropout_of_low_rank_maps_is_searched(sampler, space):
    swept = sweep_of(space)
    proposer = proposer_of(swept, sampler, published=())
    history = search(proposer, 14)
    assert_continued(swept, sampler, proposer, history)
    has_lora = [any(edit.form.name == "lowrank" for edit in trial.configuration.edits) for trial in history]
    assert {*has_lora} == {True, False}, "both kinds are needed"
    found = dropouts_of(history)
    assert {one for one, is_lora in zip(found, has_lora, strict=True) if is_lora} == {*VALUES}
    assert {one for one, is_lora in zip(found, has_lora, strict=True) if not is_lora} == {USUAL}


def test_dropout_is_part_of_the_fingerprint(space):
    swept = sweep_of(space)
    candidates = (swept.suggest(trial.proposal) for trial in search(proposer_of(swept, "random", published=()), 9))
    one = next(candidate for candidate in candidates if LORA_DROPOUT in candidate.parameters)
    other = {"0.0": "0.1", "0.1": "0.0"}[str(one.parameters[LORA_DROPOUT])]
    found = swept.suggest({**one.parameters, LORA_DROPOUT: other})
    assert found.fingerprint != one.fingerprint
    assert found.configuration == one.configuration


def test_published_methods_have_the_dropout_of_the_study_first(space):
    trial = search(proposer_of(sweep_of(space), "factored", published=("lora_qv",)), 1)[0]
    assert trial.method == "lora_qv"
    assert dropouts_of([trial]) == [USUAL]


def test_one_dropout_for_all_trials_adds_no_parameter(space):
    assert LORA_DROPOUT not in space.parameters()
    assert space.suggest(search(proposer_of(space, "random", published=()), 1)[0].proposal).fingerprint
    with pytest.raises(SettingError, match="at least two numbers"):
        SpaceOptions(lora_dropout=(0.1,))
    with pytest.raises(SettingError, match="lora_dropout"):
        SpaceOptions(lora_dropout=(0.1, 1.0))


def test_a_confirmation_trains_with_the_dropout_of_the_trial(space):
    swept = sweep_of(space)
    history = search(proposer_of(swept, "random", published=()), 9)
    trial = next(trial for trial in history if LORA_DROPOUT in trial.proposal)
    entry = entry_of(trial, swept, label="0", head_parameters=0, is_top=True)
    for again in trials_of([entry], [7, 8]):
        assert dict(again.proposal) == {LORA_DROPOUT: trial.proposal[LORA_DROPOUT]}
        assert dropouts_of([again]) == [float(trial.proposal[LORA_DROPOUT])]


def test_searched_dropout_matches_forms_with_input_dropout():
    shape = whole_space().shape
    for name in ("lora_all", "dora", "vera", "mam_adapter", "ia3", "bitfit", "compacter"):
        configuration = published_method(name).configuration(shape)
        dropped = any(DELTAS[edit.form.name].has_input_dropout for edit in configuration.edits)
        assert has_input_dropout(configuration) == dropped, name


def test_the_sweep_of_lora_searches_dropout():
    assert SPACES["lora"]["lora_dropout"] == [0, 0.1]
