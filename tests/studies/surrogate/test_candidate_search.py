"""The factored sampler: a pure function of the history, and what it makes of it."""

import random
from collections import Counter

import numpy as np
import optuna
import pytest
from support.factored_search import (
    ERROR,
    MeasuredTrial,
    drawn,
    history_of,
    measured_trial,
    proposed,
    reading,
    score_of,
    searched,
)

from search_space.space.random_draw import RandomTrial
from search_space.space.space import METHOD
from studies.search.factored_sampler import FactoredSampler
from studies.search.optuna_history import distributions
from studies.surrogate.candidate_search import FactoredSearch, FactoredSettings, nearly_equal
from studies.surrogate.encoding import Encoding
from studies.surrogate.features import unit_lr_of
from studies.surrogate.kernel import Points
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.prior_mean import BEST_UNIT_LR
from studies.surrogate.structure_distances import ABSENT, StructureDistances

MODEL_ALONE = FactoredSettings(random_fraction=0.0, retuned_fraction=0.0)


def fingerprints(trials: list[MeasuredTrial]) -> list[str]:
    return [one.fingerprint for one in trials]


def test_proposals_are_unique(space, history):
    search = FactoredSearch(space, seed=2, settings=FactoredSettings(random_fraction=0.0))
    trials = history(10)
    trials += searched(search, trials, 50)
    assert len(set(fingerprints(trials))) == 60
    again = proposed(search, trials)[0].fingerprint
    history_with_duplicate = history_of([*trials, trials[-1].changed(number=60, fingerprint=again)])
    assert search.candidate(history_with_duplicate, number=60).fingerprint != again


def points_of(structures, rates, sizes) -> Points:
    trends = np.zeros((len(structures), 2))
    return Points(
        structures=np.array(structures), unit_lrs=np.array(rates), log2_budget_fractions=np.array(sizes), trends=trends
    )


def test_near_duplicates_differ_in_small_rate_or_size_steps():
    point = ((3, 5), (0.1, -0.4), (-1.0, -1.0))
    others = {
        "itself": (point, True),
        "rates nearby": (((3, 5), (0.3, -0.6), (-1.0, -1.0)), True),
        "sizes nearby": (((3, 5), (0.1, -0.4), (-0.6, -1.4)), True),
        "one rate far": (((3, 5), (0.1, -0.1), (-1.0, -1.0)), False),
        "one size far": (((3, 5), (0.1, -0.4), (-1.0, -1.6)), False),
        "another FFN": (((3, 4), (0.1, -0.4), (-1.0, -1.0)), False),
        "no attention": (((ABSENT, 5), (0.1, -0.4), (-1.0, -1.0)), False),
    }
    columns = zip(*(other for other, _ in others.values()), strict=True)
    found = nearly_equal(points_of(*([one] for one in point)), points_of(*columns))
    assert dict(zip(others, found[0].tolist(), strict=True)) == {name: equal for name, (_, equal) in others.items()}


def test_half_of_the_retuned_methods_are_plain_lora(space):
    """Test it where LoRA scores so low that expected improvement alone would not choose it."""
    methods = ["prefix_tuning", "scaled_parallel_adapter_ffn", "mam_adapter", "lora_qv", "lora_ffn"]
    trials = [
        measured_trial(space.suggest_published(method, RandomTrial(0)), space, number, [reading(score)])
        for number, (method, score) in enumerate(zip(methods, [0.7, 0.8, 0.75, 0.2, 0.25], strict=True))
    ]
    settings = FactoredSettings(startup=2, random_fraction=0.0, retuned_fraction=1.0)
    search = FactoredSearch(space, seed=2, settings=settings)
    counts = Counter(search.candidate(history_of(trials), number=number).method for number in range(5, 45))
    assert 10 <= counts["lora_qv"] + counts["lora_ffn"] <= 30
    # without a trial of plain LoRA the others are tuned
    others = {search.candidate(history_of(trials[:3]), number=number).method for number in range(3, 13)}
    assert others <= set(methods[:3])


@pytest.mark.parametrize("settings", [MODEL_ALONE, FactoredSettings(random_fraction=0.0, retuned_fraction=1.0)])
def test_near_duplicates_are_not_proposed_despite_noise(space, settings):
    search, trials = FactoredSearch(space, seed=3, settings=settings), drawn(space, 12)
    for number in range(12, 30):
        (candidate,) = proposed(search, trials)
        noise = random.Random(candidate.fingerprint).gauss(0, ERROR)
        trials.append(measured_trial(candidate, space, number, [reading(score_of(candidate) + noise)]))
    encoding = Encoding(space)
    points = Points.of([encoding.features_of(trial) for trial in trials], StructureDistances())
    assert not np.triu(nearly_equal(points, points), 1)[:, 12:].any()


def test_share_of_new_structures_falls_with_trials():
    settings = FactoredSettings(new_structure_fraction=0.2, max_trials_per_structure=8)
    assert [settings.new_structure_fraction_at(trials) for trials in (0, 50, 100, 200, 800)] == [
        0.2,
        0.2,
        0.2,
        0.1,
        0.025,
    ]
    assert [settings.max_trials_per_structure_at(trials) for trials in (0, 160, 200, 1000)] == [8, 8, 10, 50]


def test_a_model_finds_better_than_draws_do(space, history):
    def later(settings: FactoredSettings) -> float:
        search = FactoredSearch(space, seed=4, settings=settings)
        trials = history(10)
        scores = [one.readings[-1].score + 0.05 * (len(one.readings) == 1) for one in searched(search, trials, 40)]
        return float(np.mean(scores[20:]))

    assert later(MODEL_ALONE) > later(FactoredSettings(startup=1000)) + 0.03


def test_posterior_is_on_the_score_scale_and_fits_readings(encoding, history):
    fitter, trials = SurrogateFitter(encoding.features_of), history(90)
    observed, unknown = trials[:60], [fitter.features(one) for one in trials[60:]]
    truth = np.array([one.readings[0].score + 0.05 for one in trials[60:]])
    means, deviations = fitter.posterior(history_of(observed)).predict(unknown)
    assert np.corrcoef(means, truth)[0, 1] > 0.6
    assert np.mean(np.abs(means - truth) < 2 * deviations) > 0.8
    observed_means, with_all = fitter.posterior(history_of(trials)).predict(unknown)
    assert (with_all < deviations).mean() > 0.9
    assert np.abs(observed_means - truth).mean() < np.abs(means - truth).mean()


@pytest.mark.slow
def test_optuna_alone_can_use_it(space):
    study = optuna.create_study(direction="minimize", sampler=FactoredSampler(FactoredSearch(space, seed=1)))

    def objective(trial: optuna.Trial) -> float:
        return -score_of(space.suggest(trial))

    study.optimize(objective, n_trials=30)
    again = optuna.create_study(direction="minimize", sampler=FactoredSampler(FactoredSearch(space, seed=1)))
    again.optimize(objective, n_trials=30)
    assert [one.params for one in again.trials] == [one.params for one in study.trials]
    assert np.mean(study.trials_dataframe()["value"][15:]) < np.mean(study.trials_dataframe()["value"][:10])


def test_a_sampler_of_optuna_knows_every_parameter_it_proposes(space):
    study = optuna.create_study(direction="maximize", sampler=FactoredSampler(FactoredSearch(space, seed=2)))
    for number in range(14):
        trial = study.ask()
        relative = dict(trial.relative_params)
        candidate = space.suggest(trial)
        assert dict(candidate.parameters).items() <= relative.items()
        trial.report(0.1 * random.Random(number).random(), 5)
        study.tell(trial, score_of(candidate)) if number % 2 else study.tell(
            trial, state=optuna.trial.TrialState.PRUNED
        )


def test_enqueued_published_method_gets_the_best_expected_rates(space):
    study = optuna.create_study(direction="maximize", sampler=FactoredSampler(FactoredSearch(space, seed=2)))
    study.enqueue_trial({}, user_attrs={METHOD: "prefix_tuning"})
    candidate = space.suggest(study.ask())
    assert candidate.method == "prefix_tuning"
    place = unit_lr_of(candidate.attention_learning_rate, *space.options.learning_rates["softmax_memory"])
    assert place == pytest.approx(BEST_UNIT_LR)


def test_published_trials_are_identified_by_their_parameters(space):
    """Test that published trials are learned from only with the parameters of their suggestions."""

    def proposals(*, has_parameters: bool) -> list[dict[str, object]]:
        study = optuna.create_study(direction="maximize", sampler=FactoredSampler(FactoredSearch(space, seed=2)))
        for place, method in enumerate(("lora_qv", "lora_ffn", "bitfit", "prefix_tuning") * 3):
            candidate = space.suggest_published(method, RandomTrial(place))
            frozen = optuna.trial.create_trial(
                value=score_of(candidate),
                params=dict(candidate.parameters),
                distributions={name: distributions(space)[name] for name in candidate.parameters},
                user_attrs={METHOD: method} if has_parameters else {},
            )
            study.add_trial(frozen)
        return [dict(space.suggest(study.ask()).parameters) for _ in range(3)]

    frozen, untold = proposals(has_parameters=True), proposals(has_parameters=False)
    assert frozen != untold
    assert all("lowrank" in (one.get("attention.form"), one.get("ffn.form")) for one in frozen)


def test_published_method_is_proposed_by_name_in_optuna_study(space):
    search = FactoredSearch(
        space, seed=2, settings=FactoredSettings(startup=2, random_fraction=0.0, retuned_fraction=1.0)
    )
    study = optuna.create_study(direction="maximize", sampler=FactoredSampler(search))
    for method in ("lora_qv", "lora_ffn"):
        study.enqueue_trial({}, user_attrs={METHOD: method})
    methods = []
    for _ in range(5):
        trial = study.ask()
        candidate = space.suggest(trial)
        methods.append(candidate.method)
        study.tell(trial, score_of(candidate))
    assert methods[:2] == ["lora_qv", "lora_ffn"]
    assert set(methods[2:]) <= {"lora_qv", "lora_ffn"}


def test_studies_of_one_sampler_are_independent(space):
    """Test two studies over one space with a sampler that is kept between calls."""
    sampler = FactoredSampler(FactoredSearch(space, seed=4))

    def study_of(best: float) -> list[dict[str, object]]:
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for number in range(12):
            trial = study.ask()
            space.suggest(trial)
            study.tell(trial, best * number)
        return [one.params for one in study.trials]

    first = study_of(1.0)
    assert study_of(-1.0)[10:] != first[10:]
    assert study_of(1.0) == first
