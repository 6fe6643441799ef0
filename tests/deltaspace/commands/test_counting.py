"""``count`` and ``methods``: the conventions, every setting, and what is not valid on a backbone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.released_codes import all_counts

from deltaspace.commands.main import main
from search_space.backbones import shape_of
from search_space.published import METHODS

BACKBONES = Path(__file__).parents[2] / "data" / "backbones"

Run = Callable[..., str]


@pytest.fixture
def run(printed) -> Run:
    """Run a command line that must succeed on a backbone of the test data; return its output."""
    return lambda *arguments, backbone: printed(*arguments, "--backbone", str(BACKBONES / backbone))


def counted(run: Run, method: str, backbone: str, *settings: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(
        run("count", method, *(f"--set={setting}" for setting in settings), "--json", backbone=backbone)
    )
    return data


def test_count_has_attached_parameters_and_every_convention(run):
    """Test MAM on BART-large: 27,377,664 weights are printed as 6.7%, and 86,810,976 parameters were trained."""
    found = counted(run, "mam_adapter", "bart_large", "l=30", "r=512", "mid=800")
    config = json.loads((BACKBONES / "bart_large" / "config.json").read_text())
    assert (found["weights_only"], found["stored"], found["trained"]) == (27_377_664, 27_414_528, 86_810_976)
    assert found["conventions"]["weights_only"] == found["weights_only"]
    assert found["conventions"]["trained"] == 86_810_976
    assert all_counts("mam_adapter", shape_of(config), {"l": 30, "r": 512, "mid": 800})["unify_trained"] == 86_810_976
    assert found["percentages"]["weights_only"] == pytest.approx(6.73843, abs=1e-5)
    assert found["meanings"]["weights_only"].endswith("(He et al. 2022, appendix B)")
    assert list(found["conventions"]) == list(found["percentages"]) == list(found["meanings"])
    assert found["invalid"] is None


def test_a_count_as_a_table_has_a_row_for_peft_where_it_differs(run):
    text = run("count", "mam_inducer", backbone="gpt2")
    assert "2,001,816" in text
    assert "as PEFT counts" not in text
    (row,) = (line for line in run("count", "ia3", backbone="gpt2").splitlines() if "as PEFT counts" in line)
    assert row.split()[-2:] == ["64,512", "0.0518%"]


def test_the_released_code_of_an_inducer_counts_its_norms():
    config = json.loads((BACKBONES / "gpt2" / "config.json").read_text())
    found, total = all_counts("mam_inducer", shape_of(config)), 124_439_808
    assert found["repo_config_requires_grad"] == 2_057_112
    assert round(100 * found["repo_config_used"] / total, 4) == 1.6235


def test_choices_are_set_as_numbers_are(run):
    plain, changed = (
        counted(run, "parallel_adapter_attn", "qwen3_0_6b", "r=4", *more)
        for more in ((), ("write=concat", "norm=none"))
    )
    assert plain["settings"]["write"] == "o"
    assert changed["settings"] == {
        "bottleneck": 4,
        "read": "x_attn",
        "write": "concat",
        "norm": "none",
        "init": "bert",
    }
    assert changed["weights_only"] == 28 * 4 * (1024 + 2048)
    assert plain["stored"] - plain["with_bias"] == 28 * 2 * 1024
    assert changed["stored"] == changed["with_bias"]


def test_bitfit_without_biases_counts_zero_and_is_invalid(run):
    found = counted(run, "bitfit", "llama3_2_1b")
    assert (found["trained"], set(found["conventions"].values())) == (0, {0})
    assert found["invalid"].startswith("BitFit needs biases; llama has none.")
    assert "llama has none" in run("count", "bitfit", backbone="llama3_2_1b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["count", "lora_qv", "--set", "r=wide"], "rank must be a whole number of at least 1; got wide."),
        (["count", "lora_qv", "--set", "r="], "a setting must look like r=64; got 'r='."),
        (["count", "lora_qv", "--set", "=4"], "a setting must look like r=64; got '=4'."),
        (["count", "lora_qv", "--set", "s=big"], "scale must be a number; got big."),
        (["count", "lora_qv", "--set", "bias=maybe"], "bias must be one of no, yes; got maybe."),
        (["count", "lora_qv", "--set", "bias=1"], "bias must be one of no, yes; got 1."),
        (["count", "compacter", "--set", "r=6"], "a phm bottleneck must be a multiple of n"),
        (["count", "phm_adapter", "--set", "n=5"], "n 5 for widths 768 and 768"),
        (["count", "diff_pruning", "--set", "fraction=3"], "a budget must be above 0%"),
        (["count", "intrinsic_said", "--set", "dint=20"], "Raise the dimension above their number."),
        (["count", "mam_adapter", "--set", "s=-1"], "a fixed scale must be finite and above 0"),
        (["describe", "pfeiffer_adapter", "--set", "norm=out"], "norm must be one of none, in; got out."),
        (["count", "induser"], "Did you mean 'inducer'?"),
    ],
)
def test_a_wrong_setting_is_one_line(arguments, message, capsys):
    code = main([*arguments, "--backbone", str(BACKBONES / "roberta_base")])
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_methods_have_their_citations_and_settings(run):
    views = {view["name"]: view for view in json.loads(run("methods", "--json", backbone="roberta_base"))}
    assert list(views) == list(METHODS)
    assert all(view["citation"] and view["title"] for view in views.values())
    assert all(view["invalid"] is None for view in views.values())
    (read,) = (one for one in views["mam_adapter"]["hyperparameters"] if one["name"] == "read")
    assert (read["choices"], read["default"]) == (["x_ffn", "res_f"], "x_ffn")
    mam = views["mam_adapter"]
    assert [mam["attention"][name] for name in ("form", "write", "gate")] == ["softmax_memory", "head", "lse_convex"]
    assert [mam["ffn"][name] for name in ("form", "insertion", "gate")] == ["bottleneck", "parallel", "scale"]
    assert views["prompt_tuning"]["attention"] is None
    assert views["prompt_tuning"]["ffn"]["site"] == "embed"
    assert views["intrinsic_said"]["ffn"]["variant"] == "a factor per tensor"


@pytest.mark.parametrize(
    ("backbone", "invalid"),
    [
        ("roberta_base", {}),
        ("smollm2_135m", {"bitfit": "llama has none", "unipelt": "gate sigmoid_sample on llama"}),
        ("t5_small", {"bitfit": "t5 has none", "unipelt": "gate sigmoid_sample on t5"}),
        (
            "electra_small_discriminator",
            {"prompt_tuning": "embeddings of width 128", "p_tuning": "embeddings of width 128"},
        ),
    ],
)
def test_methods_marks_invalid_methods_with_their_reasons(run, backbone, invalid):
    views = json.loads(run("methods", "--json", backbone=backbone))
    found = {view["name"]: view["invalid"] for view in views if view["invalid"] is not None}
    assert set(found) == set(invalid)
    text = run("methods", backbone=backbone)
    for name, why in invalid.items():
        assert why in found[name]
        assert "\n" not in found[name]
        assert any(line.startswith(f"{name}: ") and why in line for line in text.splitlines())
        assert any(line.startswith(f"{name} ") and "not valid here" in line for line in text.splitlines())


def test_description_names_sites_outside_the_sublayers(run):
    text = run("describe", "p_tuning", backbone="roberta_base")
    assert "input <- [E(P), input]; P: 20 × 768" in text
    assert "embed" in text
    described = json.loads(run("describe", "intrinsic_said", "--set=dint=20000", "--json", backbone="roberta_base"))
    assert described["edits"][0] == {
        "site": "global",
        "sublayers": 1,
        "formula": "θ_t <- θ_t + μ_t P(z)_t, P: fixed random Fastfood; z: 19803, μ: 197",
    }
    assert described["nearest"][0] == {"method": "intrinsic_said", "differences": []}
