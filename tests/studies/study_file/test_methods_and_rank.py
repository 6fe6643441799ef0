"""Keys ``space.methods`` and ``space.rank``, and the option ``--method``."""

import json
from dataclasses import fields

import pytest

from deltaspace.commands.main import main
from search_space.space.options import Space
from studies.errors import SpecificationError
from studies.study_file.parser import specification_of
from studies.study_file.recorded_specification import BegunSpecification
from studies.study_file.study import FIXED_BY_METHODS, Specification


def study_of(overrides: dict[str, object]) -> Specification:
    return specification_of("docstrings", overrides)


def problem_of(overrides: dict[str, object]) -> str:
    with pytest.raises(SpecificationError) as caught:
        study_of(overrides)
    first, line = str(caught.value).split("\n")
    assert first.endswith("is not a valid study file; 1 problem:")
    return line


def test_methods_and_rank_are_recorded_and_read_again():
    study = study_of({"space.methods": ["lora_qv", "lora_qv:s=4, r=2"], "space.rank": [1, 8]})
    recorded = json.loads(json.dumps(study.as_json()))
    assert recorded["space"]["methods"] == ["lora_qv", "lora_qv:s=4, r=2"]
    assert recorded["space"]["rank"] == [1, 8]
    assert Specification.from_json(recorded) == study
    assert study.space_options.published_points == study.space.methods
    assert study_of({"space.rank": 8}).space.rank == (8, 8)


def test_recorded_study_without_the_keys_is_the_same_search():
    study = study_of({})
    recorded = json.loads(json.dumps(study.as_json()))
    del recorded["space"]["methods"], recorded["space"]["rank"]
    old = BegunSpecification.from_json(recorded)
    assert old.search_identity() == study.search_identity()
    assert old.space_options == study.space_options


def test_methods_are_searched_by_size_unless_a_rank_is_given():
    assert study_of({"space.methods": ["lora_qv"]}).space_options.budget_fractions == (0.125, 1.0)
    own = {"space.methods": ["lora_qv"], "space.size": [0.5, 1]}
    assert study_of(own).space_options.budget_fractions == (0.5, 1.0)
    ranked = {"space.methods": ["lora_qv"], "space.rank": [4, 32]}
    assert study_of(ranked).space_options.budget_fractions == (0.125, 1.0)
    # a rank takes the place of the size in the sweep of LoRA
    assert study_of({"space": "lora", "space.rank": [2, 8]}).space_options.budget_fractions == (0.25, 1.0)
    assert study_of({"space": "lora", "space.rank": 8}).space_options.budget_fractions == (1.0, 1.0)


def test_listed_published_methods_give_way_to_those_of_the_space():
    study = study_of({"space.methods": ["lora_qv"], "search.published": ["mam_adapter"]})
    assert study.space_options.published_points == ("lora_qv",)
    none = study_of({"space.methods": ["lora_qv"], "search.published": "none"})
    assert none.space_options.published_points == ()


CONTRADICTIONS = {
    "attention_forms": ["lora"],
    "ffn_forms": [],
    "gates": ["add"],
    "values": {"activations": ["relu"]},
    "layers": ["range"],
    "sites": "separate",
    "edits_per_side": [1, 2],
}


@pytest.mark.parametrize("key", CONTRADICTIONS)
def test_key_that_methods_fix_is_refused(key):
    assert problem_of({"space.methods": ["lora_qv"], f"space.{key}": CONTRADICTIONS[key]}) == (
        f"space.methods: must stand without space.{key}, which published methods fix; got lora_qv"
    )


def test_every_other_key_of_the_space_goes_with_methods():
    others = {
        "values": {"scales": [0.5, 8]},
        "size": [0.25, 0.5],
        "max_extra_flops": 1000,
        "mergeable": True,
        "exportable": "peft",
        "learning_rates": {"lora": [1e-4, 1e-2], "head": [1e-4, 1e-2]},
        "lora_dropout": [0, 0.1],
    }
    study = study_of({"space.methods": ["lora_qv"], **{f"space.{key}": value for key, value in others.items()}})
    assert study.space_options.open_values["scale"] == {"0.5": 0.5, "8.0": 8.0}
    keys = {field.name for field in fields(Space)}
    assert keys == {*CONTRADICTIONS, *others, "methods", "rank"}
    assert set(FIXED_BY_METHODS) == set(CONTRADICTIONS)


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"space.methods": "lora_qv"}, "space.methods: must be a list of published methods; got 'lora_qv'"),
        ({"space.methods": ["lora_qv", "lora_qv"]}, "space.methods: must not name anything twice; got"),
        ({"space.methods": ["lora_qv:z=3"]}, "space.methods: lora_qv has no hyper-parameter 'z'; it has:"),
        ({"space.rank": [8, 4]}, "space.rank: must be a whole number from 1 on, or two of them, the lower one first;"),
        ({"space.rank": "many"}, "space.rank: must be a whole number from 1 on, or two of them, the lower one first;"),
        (
            {"space.rank": [1, 8], "space.size": [0.5, 1]},
            "space.size: must be left out where space.rank is given, which takes its place; got [0.5, 1.0]",
        ),
    ],
)
def test_bad_value_is_one_clear_line(overrides, line):
    assert problem_of(overrides).startswith(line)


@pytest.mark.parametrize("name", ["lora", "adapter", "lora_vq"])
def test_unknown_method_suggests_valid_ones(name, capsys, tmp_path):
    storage = ["--storage", f"sqlite:///{tmp_path}/empty.db"]
    assert main(["launch", "docstrings", "--method", f"bitfit,{name}", *storage]) == 2
    error = capsys.readouterr().err
    hint = {"lora": "'lora_qv', 'lora_kv' or 'lora_ffn'", "adapter": None, "lora_vq": "'lora_qv'"}[name]
    assert f"; got {name!r}" in error
    assert hint is None or f"did you mean {hint}?" in error


def test_method_that_does_not_fit_ends_the_launch_with_a_line(capsys, tmp_path):
    storage = ["--storage", f"sqlite:///{tmp_path}/empty.db", "--quiet"]
    assert main(["launch", "docstrings", "--method", "lora_all", "--budget", "100", *storage]) == 2
    assert capsys.readouterr().err == (
        "deltaspace: each method of space.methods must fit the study; got lora_all: this configuration needs at least "
        "18,432 parameters; the budget is 100. Name others.\n"
    )


def test_space_command_lists_the_parameters_of_methods(capsys):
    assert main(["space", "docstrings", "--set", "space.methods=[lora_qv,mam_adapter]", "--draw", "1"]) == 0
    shown = capsys.readouterr().out
    for line in ("method                        lora_qv, mam_adapter", "scale                         2.0, 4.0"):
        assert line in shown
    assert "learning_rate.lowrank         0.001 to 0.015, logarithmic" in shown
    assert "learning_rate.diag" not in shown
    assert "tried first: lora_qv, mam_adapter" in shown
    assert "structures" not in shown
    assert "% of the budget" in shown
