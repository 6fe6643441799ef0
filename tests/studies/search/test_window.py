"""What a sampler looks at of many trials."""

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from studies.search import window
from studies.search.window import Window, in_view

SPACE = {"x": FloatDistribution(0.0, 1.0), "kind": CategoricalDistribution(("a", "b"))}


def trials(states: str) -> list[FrozenTrial]:
    """Complete, pruned, failed and running ones, C, P, F and R; the earlier, the better."""
    known = {"C": TrialState.COMPLETE, "P": TrialState.PRUNED, "F": TrialState.FAIL, "R": TrialState.RUNNING}
    made = []
    for number, letter in enumerate(states):
        one = optuna.trial.create_trial(
            state=known[letter],
            value=-float(number) if letter == "C" else None,
            params={"x": (number % 7) / 7, "kind": "ab"[number % 2]},
            distributions=SPACE,
        )
        one.number = number
        made.append(one)
    return made


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "LARGEST", 6)
    monkeypatch.setattr(window, "BEST", 2)


@pytest.mark.usefixtures("small")
def test_the_best_complete_trials_the_newest_and_those_that_run_are_in_view() -> None:
    kept = in_view(trials("PCPCCFRPPPFPCP"))
    # 1 and 3 are the best complete ones; of those with a result 9, 11, 12 and 13 are the newest four
    assert [one.number for one in kept] == [1, 3, 6, 9, 11, 12, 13]


@pytest.mark.usefixtures("small")
def test_few_trials_are_all_in_view() -> None:
    few = trials("PCPCFRPP")
    assert in_view(few) is few


def proposed(sampler: BaseSampler, history: list[FrozenTrial]) -> list[dict[str, object]]:
    study = optuna.create_study(direction="maximize")
    study.add_trials(history)
    study.sampler = sampler
    asked = study.ask(SPACE)
    return [asked.params]


def tpe() -> TPESampler:
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        return TPESampler(seed=1, multivariate=True, group=True, constant_liar=True, n_startup_trials=4)


@pytest.mark.usefixtures("small")
def test_a_sampler_draws_as_if_there_were_no_other_trials() -> None:
    history = trials("PCPCCPPPPPPPCP")
    whole, kept = proposed(Window(tpe()), history), proposed(tpe(), in_view(history))
    assert whole == kept
    assert whole != proposed(tpe(), history)
