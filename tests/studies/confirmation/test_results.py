"""Results of a confirmation: numbers, sentences and notes, from given scores."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.small_study import small_study
from support.trivial_runner import TrivialRunner

from studies.confirmation.execution import confirm
from studies.confirmation.request import ConfirmationRequest
from studies.confirmation.results import ConfirmationResult, confirmation_result, notes, power_note, verdict_sentences
from studies.confirmation.verdicts import ConfirmationVerdict
from studies.errors import ConfirmationError
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger

SEEDS = 5

Scores = dict[int, float]
Confirmed = Callable[..., ConfirmationResult]


def around(mean: float, place: int) -> Scores:
    """Return one score per seed around a mean, with a standard deviation of 0.00158, for the contender at a place."""
    return {place * SEEDS + seed: mean + (seed - 2) / 1000 for seed in range(SEEDS)}


@pytest.fixture
def confirmed(tmp_path: Path) -> Confirmed:
    """Launch and confirm a study of mam_adapter, bitfit and two discoveries with these validation scores."""

    def make(validation: list[float], *means: float, **given: object) -> ConfirmationResult:
        url = f"sqlite:///{tmp_path / 'ledger.db'}"
        search = {"sampler": "random", "published": ["mam_adapter", "bitfit"]}
        own = {"trials": 4, "steps": 4, "first_rung": None, "name": "reviews", "search": search, "fleet": {"pack": 4}}
        factory = partial(TrivialRunner, scores=dict(enumerate(validation)))
        launch(small_study(tmp_path, **own), storage_url=url, factory=lambda threads: factory())
        scores = {number: score for place, mean in enumerate(means) for number, score in around(mean, place).items()}
        runner = partial(TrivialRunner, scores=scores | given.pop("scores", {}), fails_at=given.pop("fails_at", {}))
        request = ConfirmationRequest(study="reviews", **{"top": 1, "seeds": SEEDS, **given})
        confirm(request, storage_url=url, factory=lambda threads: runner())
        with Ledger.open(url, read_only=True) as ledger:
            with pytest.raises(ConfirmationError, match="'reviews' must be a confirmation"):
                confirmation_result(ledger, "reviews")
            return confirmation_result(ledger, "reviews-confirm")

    return make


DISCOVERED = [0.60, 0.55, 0.90, 0.80]
"""Validation scores of mam_adapter, bitfit and two discoveries."""


def test_every_contender_has_its_spread_and_optimism(confirmed):
    result = confirmed(DISCOVERED, 0.87, 0.61, top=1, against=("mam_adapter",))
    winner, mam = result.contenders
    assert (winner.label, winner.trial, winner.is_published) == ("trial 2", 2, False)
    assert (mam.label, mam.trial, mam.is_published) == ("mam_adapter", 0, True)
    assert winner.scores == pytest.approx((0.868, 0.869, 0.870, 0.871, 0.872))
    assert winner.spread.mean == pytest.approx(0.87)
    assert winner.spread.lowest == pytest.approx(0.868)
    assert winner.spread.deviation == pytest.approx(np.std(winner.scores, ddof=1))
    assert winner.optimism == pytest.approx(0.03)
    assert mam.optimism == pytest.approx(-0.01)
    assert result.is_finished
    assert result.winner == winner
    assert verdict_sentences(result)[-1] == (
        "Optimism of the search: trial 2 scored 0.9000 on validation and 0.8700 on test in the mean, "
        "a difference of +0.0300."
    )


def test_proposal_of_a_published_method_is_no_discovery(confirmed, tmp_path):
    confirmed(DISCOVERED, 0.87, 0.61, top=1, against=("mam_adapter",))
    described = "UPDATE trials SET description = ? WHERE number < ? AND study_id = (SELECT max(id) FROM studies)"
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection, connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        assert connection.execute(described, ("LoRA r=2, query+value (lora_qv)", SEEDS)).rowcount == SEEDS
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", read_only=True) as ledger:
        result = confirmation_result(ledger, "reviews-confirm")
    assert (result.winner.label, result.winner.method, result.winner.is_published) == ("trial 2", "lora_qv", True)
    assert verdict_sentences(result)[0].startswith("lora_qv (trial 2) beats mam_adapter on test: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("winner", "mam", "verdict", "phrase"),
    [
        (0.87, 0.85, ConfirmationVerdict.BEATS, "beats mam_adapter on test: accuracy +0.0200 (95%: "),
        (0.85, 0.87, ConfirmationVerdict.LOSES, "loses to mam_adapter on test: accuracy -0.0200 (95%: "),
        (
            0.8505,
            0.85,
            ConfirmationVerdict.NOT_SHOWN,
            "against mam_adapter on test: accuracy +0.0005 (95%: ",
        ),
    ],
)
def test_first_sentence_compares_the_winner_with_mam(confirmed, winner, mam, verdict, phrase):
    result = confirmed(DISCOVERED, winner, 0.7, mam, 0.95, against=("lora_qv", "mam_adapter", "full_finetuning"))
    by_label = {one.baseline: one for one in result.comparisons}
    assert list(by_label) == ["lora_qv", "mam_adapter", "full_finetuning"]
    assert by_label["mam_adapter"].verdict is verdict
    sentences = verdict_sentences(result)
    assert sentences[0].startswith(f"The discovered variant (trial 2) {phrase}")
    assert "beats lora_qv" in sentences[1]
    assert "loses to full_finetuning" in sentences[2]
    # every run of one above every run of the other: 2 of 252 splits, and three comparisons
    assert by_label["lora_qv"].adjusted_p == pytest.approx(3 * 2 / 252)
    assert f"p = {3 * 2 / 252:.2g} after Holm" in sentences[1]


def test_sentence_names_mam_when_it_wins(confirmed):
    result = confirmed([0.95, 0.55, 0.90, 0.80], 0.87, 0.7, against=("mam_adapter", "lora_qv"))
    assert [one.label for one in result.contenders] == ["mam_adapter", "lora_qv"]
    sentences = verdict_sentences(result)
    assert (
        sentences[0] == "The best trial of the search (trial 0) is mam_adapter itself: nothing better was discovered."
    )
    assert sentences[1].startswith("The published mam_adapter beats lora_qv")


def test_notes_list_the_limits_of_a_confirmation(confirmed):
    given = ("mam_adapter", "lora_qv:r=64", "lora_qv", "full_finetuning")
    result = confirmed(DISCOVERED, 0.87, 0.85, 0.7, 0.9, against=given)
    text = "\n".join(notes(result))
    assert "full_finetuning ignores the budget: it has 124,055,040 parameters, the budget is 623,228." in text
    assert "lora_qv has no complete trial in reviews: its learning rates are the middle of their range" in text
    assert "mam_adapter has no complete trial" not in text
    assert "lora_qv:r=64 was left out: " in text
    assert "Verdict: permutation test (exchange of runs), Holm-corrected, α = 0.05." in text
    assert "too few" not in " ".join(verdict_sentences(result))


def test_failed_seeds_are_noted_and_the_rest_is_no_win(confirmed):
    fails_at = {0: 3, 1: 3}
    result = confirmed(DISCOVERED, 0.87, 0.5, against=("mam_adapter",), fails_at=fails_at)
    winner = result.winner
    assert (winner.failed, winner.scores[:2]) == (2, (None, None))
    assert winner.spread.mean == pytest.approx(0.871)
    text = "\n".join(notes(result))
    assert "trial 2 failed with 2 of 5 seeds; those pairs are left out." in text
    assert verdict_sentences(result)[0].endswith("after Holm); 3 seeds are too few for the test: --seeds 4.")
    assert [one.pairs for one in result.comparisons] == [3]


def test_a_win_with_the_runs_that_did_not_fail_is_undecided(confirmed):
    result = confirmed(DISCOVERED, 0.87, 0.5, against=("mam_adapter",), fails_at={0: 3})
    (found,) = result.comparisons
    assert (found.pairs, found.verdict) == (4, ConfirmationVerdict.UNDECIDED)
    assert verdict_sentences(result)[0] == (
        "The discovered variant (trial 2) against mam_adapter is not decided: of 5 seeds trial 2 failed with 1 and "
        "mam_adapter with 0, so too few pairs are left."
    )


@pytest.mark.parametrize(
    ("seeds", "baselines", "note"),
    [
        (3, 3, "3 seeds are too few to show any difference to 3 baselines: --seeds 5."),
        (3, 1, "3 seeds are too few to show any difference to 1 baseline: --seeds 4."),
        (5, 3, None),
        (2, 0, None),
    ],
)
def test_too_few_seeds_are_noted_in_advance(seeds, baselines, note):
    assert power_note(seeds, baselines) == note


def test_equal_runs_and_ties_have_their_own_verdicts(confirmed):
    result = confirmed(DISCOVERED, 0.8, 0.8, against=("mam_adapter",))
    phrase = f"and mam_adapter have equal test scores with each of {SEEDS} seeds."
    assert verdict_sentences(result)[0] == f"The discovered variant (trial 2) {phrase}"
    tie = replace(result.comparisons[0], difference=0.001, low=-0.001, high=0.003)
    sentence = verdict_sentences(replace(result, comparisons=(tie,)))[0]
    assert "ties with mam_adapter on test: accuracy +0.0010 (95%: " in sentence
    assert sentence.endswith("; no difference is shown.")


def test_a_confirmation_is_a_table_and_sentences(confirmed):
    result = confirmed(DISCOVERED, 0.9, 0.8, against=("mam_adapter",))
    table = result.table()
    assert table["label"].tolist() == [one.label for one in result.contenders]
    assert table["test_mean"].tolist() == pytest.approx([0.9, 0.8])
    assert table["seeds"].tolist() == [SEEDS, SEEDS]
    assert str(result) == "\n".join([table.to_string(index=False), *verdict_sentences(result)])
    assert result._repr_html_().startswith(table._repr_html_())
