"""The table of docs/how-to/from-peft.md: peft trains as many parameters as deltaspace."""

import re
from pathlib import Path

import peft
import pytest
from transformers import AutoConfig, AutoModel

import deltaspace
from trial_runner.backbones import embedded_folder

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "from-peft.md"
ROWS = re.findall(r"^\| `(\w+Config\(.*\))` \| `(\S+)` \| ([0-9,]+) \|$", PAGE.read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize(("config", "method", "trained"), ROWS, ids=[method for _, method, _ in ROWS])
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_config_trains_as_many_parameters_as_its_method(config, method, trained):
    model = AutoModel.from_config(AutoConfig.from_pretrained(embedded_folder()), add_pooling_layer=False)
    given = eval(config, vars(peft))
    given.task_type = "FEATURE_EXTRACTION"
    in_peft = sum(one.numel() for one in peft.get_peft_model(model, given).parameters() if one.requires_grad)
    assert in_peft == deltaspace.count(method).trained == int(trained.replace(",", ""))


def test_table_has_all_kinds_of_peft_that_can_be_exported():
    assert {config.partition("Config")[0] for config, _, _ in ROWS} >= {"Lora", "IA3", "Vera", "PrefixTuning"}
    assert len(ROWS) == 9
