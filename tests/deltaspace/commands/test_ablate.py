"""``deltaspace ablate``, and ``show`` of an ablation. The runner is trivial; its scores are made up."""

import functools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.trivial_ablation import BEST, launch_study
from support.trivial_runner import TrivialRunner

import studies.confirmation.execution

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Run) -> Run:
    """Run a command in a storage with the study ``reviews``; return exit code, stdout and stderr."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    monkeypatch.setenv("DELTASPACE_STORAGE", url)
    launch_study(url, tmp_path)
    scores = {number: 0.87 - number / 1000 for number in range(80)}
    confirm = functools.partial(
        studies.confirmation.execution.confirm, factory=lambda threads: TrivialRunner(scores=scores)
    )
    monkeypatch.setattr(studies.confirmation.execution, "confirm", confirm)

    return ran


@pytest.mark.slow
def test_an_ablation_is_printed_shown_again_and_refused_without_a_trial(run: Run) -> None:
    code, out, err = run("ablate", "reviews", "best", "--seeds", "4", "--quiet")
    assert code == 0, err
    text = " ".join(out.split())
    assert f"reviews-ablate: from bitfit to trial {BEST} of reviews, 4 seeds each, accuracy on the test split" in text
    assert f"Trial {BEST} minus bitfit on the test split: +0.0" in text
    assert "bitfit is the best published method of reviews, which its verdict compares with." in text
    assert "p-values are corrected by Holm for" in text
    assert "finished: all" in err
    assert "See 'deltaspace show reviews-ablate'" in err
    found = json.loads(run("show", "reviews-ablate", "--json")[1])
    steps = found["ablation"]["steps"]
    assert [one["number"] for one in steps] == list(range(len(steps)))
    assert steps[0]["comparison"] is None
    assert steps[1]["comparison"]["difference"] == pytest.approx(0.004)
    assert found["ablation"]["total"]["difference"] == pytest.approx(0.004 * (len(steps) - 1))
    code, _, err = run("ablate", "reviews", "last")
    assert (code, "a trial is a number or 'best'; got 'last'" in err) == (2, True)
    code, _, err = run("ablate", "reviews", "best", "--against", "mam_adaptor")
    assert (code, "Did you mean 'mam_adapter'?" in err) == (2, True)
