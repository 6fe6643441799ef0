"""The section ``space: lora``, a sweep of LoRA."""

from dataclasses import replace

import pytest

from deltaspace.commands.main import main
from studies.errors import SpecificationError
from studies.study_file.parser import specification_of


def space_of(overrides):
    return specification_of("docstrings", overrides).space


def test_space_of_a_name_is_its_section_and_keeps_other_keys():
    lora = space_of({"space": "lora"})
    assert (lora.attention_forms, lora.ffn_forms, lora.exportable) == (("lowrank",), ("lowrank",), "peft")
    assert lora.gates == ("add", "scale")
    for overrides in ({"space": "lora", "space.size": [0.5, 1]}, {"space.size": [0.5, 1], "space": "lora"}):
        assert space_of(overrides) == replace(lora, size=(0.5, 1.0))
    mapping = {"name": "one", "backbone": "embedded", "task": {"name": "docstrings"}, "budget": "0.5%"}
    assert specification_of(mapping | {"space": "lora"}).space == lora


def test_unknown_name_of_a_space_is_refused_in_one_line():
    with pytest.raises(
        SpecificationError, match=r"\nspace: must be a mapping of keys to values, or lora; got 'lorra'$"
    ):
        space_of({"space": "lorra"})


def test_lora_names_the_form_and_its_learning_rate():
    named = space_of({"space.attention_forms": ["lora"], "space.learning_rates": {"lora": [1e-4, 1e-2]}})
    assert named.attention_forms == ("lowrank",)
    assert named.learning_rates["lowrank"] == (1e-4, 1e-2)


def test_space_command_shows_a_sweep_of_lora(capsys):
    assert main(["space", "docstrings", "--set", "space=lora", "--set", "space.size=[0.5,1]"]) == 0
    shown = capsys.readouterr().out
    assert "0.5 to 1, logarithmic" in shown
    assert "softmax_memory" not in shown
