"""What is asked of lm-eval, as far as it can be told without a model; what it answers is in `end_to_end`."""

import pytest

from trial_runner.errors import ExportWishError
from trial_runner.export import harness
from trial_runner.export.harness import Harness

RESULTS = {
    "mmlu": {"alias": "mmlu", "acc,none": 0.5, "acc_stderr,none": 0.01},
    "mmlu_law": {"alias": "law", "acc,none": 0.25, "sample_len": 4},
    "sums": {"exact_match,strict": 1, "exact_match_stderr,strict": "N/A", "name": "sums"},
}


def test_a_figure_is_called_by_its_task_and_the_filter_of_its_answers():
    alone = {"results": {"sums": RESULTS["sums"]}}
    assert harness._figures(alone, "sums.yaml", "sums[:5]") == {"sums[:5]/exact_match,strict": 1.0}
    group = {"results": RESULTS, "groups": {"mmlu": RESULTS["mmlu"]}}
    assert harness._figures(group, "mmlu", "mmlu") == {"mmlu/acc": 0.5}
    tag = {"results": {name: RESULTS[name] for name in ("mmlu_law", "sums")}}
    assert harness._figures(tag, "both", "both") == {"both/mmlu_law/acc": 0.25, "both/sums/exact_match,strict": 1.0}


def test_a_task_in_a_file_is_called_by_its_name_and_a_part_of_it_otherwise(tmp_path):
    file = str(tmp_path / "sums.yaml")
    assert Harness(tasks=(file,)).label(file) == "sums"
    assert Harness(tasks=("gsm8k",), limit=200).label("gsm8k") == "gsm8k[:200]"


@pytest.mark.parametrize("tasks", [(), ("gsm8k", ""), ("gsm8k", "gsm8k"), ("a/sums.yaml", "b/sums.yaml")])
def test_tasks_are_named_once(tasks):
    with pytest.raises(ExportWishError, match="each once"):
        Harness(tasks=tasks)


def test_no_example_is_too_few():
    with pytest.raises(ExportWishError, match="at least 1 example"):
        Harness(tasks=("gsm8k",), limit=0)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ExportWishError, match=r"got .*sums\.yaml\. List"):
        Harness(tasks=(str(tmp_path / "sums.yaml"),)).check()


def test_a_missing_package_is_said_in_one_line(monkeypatch):
    monkeypatch.setattr(harness, "find_spec", lambda name: None)
    with pytest.raises(ExportWishError, match=r"pip install 'deltaspace\[lm-eval\]'$"):
        Harness(tasks=("gsm8k",)).check()
