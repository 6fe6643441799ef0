"""Samplers of other packages, named in a study file by module and class, on the tree of choices."""

import sys
import types

import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState as OptunaState
from support.simulated_search import NOTHING_TRIED, after, recorded_history, search

from search_space.space.options import SpaceOptions
from search_space.space.space import SearchSpace
from studies.errors import LaunchError, SpecificationError
from studies.records import TrialState
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer, SpaceExhausted
from studies.search.samplers import Sampler, sampler_of
from studies.study_file.parser import specification_from_mapping

TPE = "optuna.samplers:TPESampler"
GROUPED = {"class": TPE, "multivariate": True, "group": True}


def test_tpe_learns_from_published_methods_and_continues(space):
    initial_design = InitialDesign(published=("mam_adapter", "lora_qv"))

    def proposer() -> Proposer:
        return Proposer(space, sampler=sampler_of(GROUPED), seed=5, initial_design=initial_design)

    lost, other = proposer(), proposer()
    history = search(lost, 24)
    visible = other.visible(recorded_history(history))
    assert [one.state for one in visible[:4]] == [
        OptunaState.COMPLETE, OptunaState.PRUNED, OptunaState.COMPLETE, OptunaState.FAIL
    ]  # fmt: skip
    assert visible[0].params["attention.form"] == "softmax_memory"
    following = search(lost, 3, history)
    again = search(other, 3, recorded_history(history))
    assert [trial.fingerprint for trial in again] == [trial.fingerprint for trial in following]


def test_brute_force_of_optuna_tries_all_of_a_small_space_once(space):
    # attention: q, v, o, q+v; FFN: u, f, u+f; one of them or both: 4 * 3 + 4 + 3 points
    fixed = {"const": (1e-3, 1e-3)}
    options = SpaceOptions(attention_forms=("const",), ffn_forms=("const",), learning_rates=fixed, published=())
    small = SearchSpace(shape=space.shape, budget=600_000, options=options)
    proposer = Proposer(small, sampler="optuna.samplers:BruteForceSampler", seed=0)
    history = NOTHING_TRIED
    for _ in range(19):
        history = after(history, proposer.propose(history), small, TrialState.COMPLETE, 0.5)
    with pytest.raises(SpaceExhausted):
        proposer.propose(history)


@pytest.mark.parametrize(
    ("sampler", "reason"),
    [
        ("optuna.samplers:CmaEsSampler", "CmaEsSampler needs a fixed set of numbers; this space is conditional"),
        ("optuna.samplers:PartialFixedSampler", "must have a seed argument"),
        ("optuna.samplers:Sampler", "cannot import the sampler"),
        ("no_such_module:Sampler", "cannot import the sampler"),
        ("optuna.samplers:_tpe", "must be an Optuna sampler class; got <module"),
        ({"class": TPE, "groups": 1}, "cannot create the sampler .* Correct its options"),
        ({"class": "tpe", "group": True}, "the class of a sampler with options must be a module:Class; got 'tpe'"),
        ({"group": True}, "the class of a sampler with options must be a module:Class; got 'None'"),
    ],
)
def test_unusable_sampler_is_refused_in_one_line(sampler, reason):
    with pytest.raises(LaunchError, match=reason) as refused:
        sampler_of(sampler)
    assert "\n" not in str(refused.value)
    study = {"name": "a", "backbone": "embedded", "task": {"name": "docstrings"}, "budget": "1%"}
    study["search"] = {"sampler": sampler}
    with pytest.raises(SpecificationError, match=f"search.*{reason}"):
        specification_from_mapping(study)


def test_samplers_of_optunahub_are_loaded_by_their_package(monkeypatch):
    hub = types.ModuleType("optunahub")
    hub.load_module = lambda package: types.SimpleNamespace(Hubs=RandomSampler, package=package)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "optunahub", hub)
    assert isinstance(sampler_of("optunahub:samplers/hubs:Hubs"), Sampler)
