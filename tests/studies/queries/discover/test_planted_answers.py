"""Answers of a posterior that is planted: intervals, verdicts and sentences in closed form."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pytest
from support.factored_search import drawn, whole_space

from studies.queries.discover.across import PooledRule, across
from studies.queries.discover.answer import LEVEL, REACH, Answer
from studies.queries.discover.attention_share import BUDGETS, Share, attention_share
from studies.queries.discover.cells import FORMS, Best, cells
from studies.queries.discover.conclusion import conclusion
from studies.queries.discover.contrasts import Contrast, pairs
from studies.queries.discover.differences import Worth, differences
from studies.queries.discover.importance import Importance, importance
from studies.queries.discover.knowledge import REPLICATE, Asked, Knowledge
from studies.queries.discover.pruned import Stopped, pruned
from studies.queries.discover.rates import Rate, rates
from studies.queries.discover.rules import Rule, rules
from studies.queries.discover.sizes import Size, sizes
from studies.queries.discover.sobol import base, factors
from studies.queries.discover.tree import rule_tree
from studies.queries.discover.tried import Tried
from studies.search.factored.distances import Structures
from studies.search.factored.kernel import Points
from studies.search.factored.standard import LOWEST
from studies.search.factored.view import TrainedSide, View
from studies.store.records import TrialState

SPACE = whole_space()
HISTORY = drawn(SPACE, 30)
SHARED = 0.9

T = TypeVar("T")


class Told(Knowledge):
    """Believes of every configuration what a formula says, with one deviation and one correlation of any two.

    Low-rank maps are worth 5 points; a rate loses by its distance from the peak; twice the size is worth a point.
    """

    def __init__(self, *, deviation: float = 0.01, peak: float = 0.0, sign: float = 1.0, metric: str = "accuracy"):
        super().__init__(SPACE, HISTORY, metric=metric)
        self.deviation, self.peak, self.sign = deviation, peak, sign

    def found(self) -> str:
        """The first of the three sentences; the others are not worked out."""
        nothing = Answer(view="", question="", rows=(), sentences=("",), note="")
        self.answers |= {"V1": nothing, "V8": nothing}
        return conclusion(self)[0]

    def worth(self, asked: Asked) -> float:
        view: View = self._view(asked)
        return 0.5 + self.sign * sum(self.of_side(side) for side in (view.attention, view.ffn) if side is not None)

    def of_side(self, side: TrainedSide) -> float:
        return 0.05 * ("lowrank" in side.structure.form) - 0.02 * (side.rate - self.peak) ** 2 + 0.01 * side.size

    def joint(self, asked: Sequence[Asked]) -> tuple[Any, Any]:
        means = np.array([self.worth(one) for one in asked])
        return means, self.deviation**2 * (SHARED + (1 - SHARED) * np.eye(len(means)))

    def means(self, asked: Sequence[Asked]) -> Any:
        return np.array([self.worth(one) for one in asked])

    def apart(self, count: int = 1) -> float:
        """Half the interval of a difference of two means over so many configurations each."""
        return REACH * self.deviation * math.sqrt(2 * (1 - SHARED) / count)

    def about(self, count: int = 1) -> float:
        """Half the interval of a mean over so many configurations."""
        return REACH * self.deviation * math.sqrt(SHARED + (1 - SHARED) / count)


@pytest.fixture(scope="module")
def told() -> Told:
    return Told()


def rows_of(kind: type[T], rows: Sequence[object]) -> list[T]:
    return [row for row in rows if isinstance(row, kind)]


def test_cells_have_the_interval_of_their_best_and_are_resolved_by_that_of_the_gap() -> None:
    told = Told(deviation=0.05)
    rows = rows_of(Best, cells(told).rows)
    for table in (FORMS, "attention", "ffn"):
        own = [row for row in rows if row.table == table]
        assert own[0].gap == 0
        for row in own:
            assert row.gap == pytest.approx(own[0].value - row.value)
            assert (row.high - row.value, row.value - row.low) == pytest.approx([told.about()] * 2)
            assert row.is_resolved == (row is own[0] or row.gap > told.apart())
        assert {row.is_resolved for row in own[1:]} == {True, False}
    whole = [row for row in rows if row.table == FORMS]
    # one of the trials has a pair of forms that no draw of the space has
    assert sum(row.complete for row in whole) == len(told.complete)
    assert sum(row.n for row in whole) == len(HISTORY)


@pytest.mark.parametrize(
    ("sign", "width", "said"),
    [(1.0, 0.99, "The best discovery, trial "), (1.0, 1.01, "Whether trial "), (-1.0, 1.01, "Whether trial ")],
)
def test_the_first_sentence_goes_by_the_interval_of_the_difference(sign: float, width: float, said: str) -> None:
    told = Told(sign=sign)
    best = {
        is_found: max(told.means(told.candidates([one for one in told.complete if (one.method is None) == is_found])))
        for is_found in (True, False)
    }
    gap = float(best[True] - best[False])
    assert gap > 0
    told.deviation *= width * gap / told.apart()
    first = told.found()
    assert first.startswith(said)
    assert f"{gap:+.4f} accuracy (90%: {gap - told.apart():+.4f} to {gap + told.apart():+.4f})" in first


@pytest.mark.parametrize(("width", "said"), [(0.99, "Nothing beats "), (1.01, "Whether trial ")])
def test_a_study_that_found_nothing_better_says_so(width: float, said: str) -> None:
    told = Told()
    published = [one for one in told.complete if one.method is not None]
    found = [one for one in told.complete if one.method is None]
    worst = found[int(np.argmin(told.means(told.candidates(found))))]
    told.history = tuple(one for one in told.history if one.method is not None or one is worst)
    told.__dict__.pop("complete", None)
    gap = float(max(told.means(told.candidates(published))) - told.means(told.candidates([worst]))[0])
    assert gap > 0
    told.deviation *= width * gap / told.apart()
    assert told.found().startswith(said)


@pytest.mark.parametrize(
    ("peak", "end"),
    [
        (-1.0, "at the low end ({rate:.1e}): allow lower"),
        (1.0, "at the high end ({rate:.1e}): allow higher"),
        (0.0, ""),
    ],
)
def test_a_best_rate_at_the_end_of_its_range_is_warned_of(peak: float, end: str) -> None:
    told = Told(peak=peak, deviation=1e-4)
    answer = rates(told)
    rows = rows_of(Rate, answer.rows)
    best = [row for row in rows if row.is_best]
    assert {row.place for row in best} == {(peak + 1) / 2}
    assert {row.at_edge for row in best} == {1.0 if end else 0.0}
    assert {row.at_edge for row in rows if not row.is_best} == {0.0}
    for row in rows:
        low, high = SPACE.options.learning_rates[row.form]
        assert row.rate == pytest.approx(low * (high / low) ** row.place)
    if end:
        assert len(answer.sentences) == len(best)
        for row, said in zip(best, answer.sentences, strict=True):
            assert said.endswith(end.format(rate=row.rate) + " rates in search.learning_rates.")
    else:
        assert answer.sentences == ("No form has its best rate in the outer tenth of its range.",)


def test_a_rate_is_worse_where_the_interval_of_the_difference_says_so() -> None:
    told = Told(deviation=0.02)
    rows = rows_of(Rate, rates(told).rows)
    curve = [row for row in rows if (row.side, row.form) == ("ffn", "lowrank")]
    best = next(row for row in curve if row.is_best)
    counts = {math.isclose(row.high - row.value, told.about(24), rel_tol=1e-9) for row in curve}
    assert counts == {True}  # 24 structures have low-rank maps there
    assert [row.is_resolved for row in curve] == [
        row is not best and best.value - row.value > told.apart(24) for row in curve
    ]
    assert {row.is_resolved for row in curve} == {True, False}


def test_half_a_budget_is_worth_what_a_doubling_at_both_sides_is(told: Told) -> None:
    answer = attention_share(told)
    rows = rows_of(Share, answer.rows)
    whole = [row for row in rows if row.budget == 1.0]
    for budget in BUDGETS:
        some = [row for row in rows if row.budget == budget]
        lost = [one.value - other.value for one, other in zip(whole, some, strict=True)]
        assert lost == pytest.approx([2 * 0.01 * math.log2(1 / budget)] * len(whole))
    first = {(row.attention, row.ffn): row for row in reversed(whole)}
    assert next(iter(reversed(first))) == ("lowrank", "lowrank")
    for cell in first:
        curve = [row for row in whole if (row.attention, row.ffn) == cell]
        best = next(row for row in curve if row.is_best)
        assert best.value == max(row.value for row in curve)
        own = [((row.high - row.value) / REACH / told.deviation) ** 2 - SHARED for row in curve]
        (count,) = {round((1 - SHARED) / one) for one in own}
        assert [row.is_resolved for row in curve] == [
            row is not best and best.value - row.value > told.apart(count) for row in curve
        ]
        fine = [row.share for row in curve if not row.is_resolved]
        assert any(f"shares from {min(fine):.0%} to {max(fine):.0%} are" in one for one in answer.sentences)


def test_sizes_have_intervals_shares_of_the_budget_and_the_times_they_were_repeated() -> None:
    told = Told(deviation=0.004)
    first = told.complete[0]
    again = replace(first, number=len(HISTORY), origin=REPLICATE, fingerprint=f"{first.fingerprint}-17")
    lost = replace(again, number=len(HISTORY) + 1, state=TrialState.PRUNED, fingerprint=f"{first.fingerprint}-18")
    told.history = (*told.history, again, lost)
    answer = sizes(told)
    rows = rows_of(Size, answer.rows)
    for row in rows:
        assert row.of_budget == row.parameters / 600_000
        assert (row.high - row.value, row.value - row.low) == pytest.approx([told.about(1)] * 2)
        assert row.is_resolved == (row.within >= LEVEL or row.within <= 1 - LEVEL)
        assert row.n == (2 if row.trial == first.number else 1)
    assert {row.is_resolved for row in rows} == {True, False}
    chosen = next((row for row in rows if row.within >= LEVEL), None) or next(row for row in rows if row.within >= 0.5)
    assert f"is trial {chosen.trial} with {chosen.parameters:,} parameters" in answer.sentences[0]
    largest = max(rows, key=lambda row: row.value)
    less = 1 - chosen.parameters / largest.parameters
    assert ("less than the best" in answer.sentences[0]) == (less > 0)
    assert less <= 0 or f", {less:.0%} less than the best" in answer.sentences[0]


def test_a_small_one_that_is_as_good_is_said_to_save_what_it_saves() -> None:
    answer = sizes(Told(sign=0.01, deviation=1e-4))
    rows = rows_of(Size, answer.rows)
    smallest, best = rows[0], max(rows, key=lambda row: row.value)
    assert {row.within for row in rows} == {1.0}
    less = 1 - smallest.parameters / best.parameters
    assert less > 0.1
    assert f"trial {smallest.trial} with {smallest.parameters:,} parameters" in answer.sentences[0]
    assert f", {less:.0%} less than the best)" in answer.sentences[0]


def test_forecasts_of_pruned_trials_have_intervals_and_say_how_many_were_read_there(told: Told) -> None:
    rows = rows_of(Stopped, pruned(told).rows)
    there = sum(any(one.fraction == 0.5 for one in trial.readings) for trial in HISTORY)
    for row in rows:
        assert (row.high - row.value, row.value - row.low) == pytest.approx([told.about()] * 2)
        assert row.is_resolved == (row.beats >= LEVEL or row.beats <= 1 - LEVEL)
        assert row.n == there > len(rows)
    assert any(row.beats <= 1 - LEVEL for row in rows)


def test_gains_lead_from_step_to_step_and_values_have_intervals(told: Told) -> None:
    rows = rows_of(Worth, differences(told).rows)
    assert len(rows) > 2
    for before, row in pairwise(rows):
        assert row.gain == pytest.approx(row.reached - before.reached)
    for row in rows:
        # a step compares two configurations; a value weighs several, whose weights sum to nothing
        assert (row.gain_high - row.gain, row.gain - row.gain_low) == pytest.approx([told.apart()] * 2)
        assert row.high - row.value == pytest.approx(row.value - row.low)
        assert 0 < row.high - row.value < told.apart() * 1.0001
    assert any(row.gain != pytest.approx(row.value) for row in rows)


def test_trials_are_counted_by_what_they_edit() -> None:
    counted = Tried([*HISTORY, replace(HISTORY[0], number=99, readings=())])
    edits = [(bool(one.configuration.attention), bool(one.configuration.ffn)) for one in HISTORY]
    both, attention, ffn = ((True, True), (True, False), (False, True))
    assert (counted.editing("both"), counted.editing("attention"), counted.editing("ffn")) == (
        edits.count(both),
        edits.count(attention),
        edits.count(ffn),
    )
    assert counted.at("attention") == sum(one for one, _ in edits)
    assert counted.at("ffn") == sum(other for _, other in edits)
    assert counted.at("both") == edits.count(both)
    lowrank = [one for one in HISTORY if {edit.form.name for edit in one.configuration.ffn} == {"lowrank"}]
    assert lowrank
    assert counted.having("ffn", "form", "lowrank") == len(lowrank)
    assert counted.having("ffn", "form") == counted.at("ffn")


def test_one_side_alone_is_compared_with_the_other(told: Told) -> None:
    found = pairs(told.measure, Contrast("sides", "edited", "ffn", "attention"))
    assert all(one.attention is None and one.ffn is not None for one in found.having)
    assert all(one.ffn is None and one.attention is not None for one in found.lacking)
    both = pairs(told.measure, Contrast("sides", "edited", "both", "ffn"))
    assert all(len(one.sides) == 2 for one in both.having)
    assert len(both) == 60 < both.support * len(told.measure.draws) <= len(told.measure.draws)


def test_a_rule_says_first_what_is_better(told: Told) -> None:
    rows = rows_of(Rule, rules(told).rows)
    of_form = [row for row in rows if row.dimension == "form" and row.is_resolved]
    forms = [row for row in of_form if "lowrank" in (row.better, row.worse)]
    assert forms
    assert {row.better for row in forms} == {"lowrank"}
    for row in forms:
        assert row.value > 0
        assert row.low > 0


def fifth(place: float) -> int:
    return min(4, int(5 * place))


def test_factors_are_binned_by_fifths_of_their_ranges(told: Told) -> None:
    some = base(told.measure)
    found = {(one.side, one.dimension): one for one in factors(told.measure, some)}
    low, high = SPACE.options.attention_share
    assert found["ffn", "rate"].values.tolist() == [fifth((one.ffn.rate + 1) / 2) for one in some if one.ffn]
    shares = [fifth((one.share - low) / (high - low)) if told.genome.is_shared(one) else -1 for one in some]
    assert found["both", "share"].values.tolist() == shares
    assert set(shares) == {-1, 0, 1, 2, 3, 4}


def test_shares_of_variance_have_the_middle_nine_tenths_of_the_draws(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[tuple[object, ...], Any] = {}
    real = Told.sampled

    def sampled(self: Told, asked: Sequence[Asked], count: int, *words: object) -> Any:
        kept[words] = real(self, asked, count, *words)
        return kept[words]

    monkeypatch.setattr(Told, "sampled", sampled)
    rows = {(row.side, row.dimension): row for row in rows_of(Importance, importance(told).rows)}
    row, draws = rows["ffn", "form"], kept["V1", "ffn", "form"]
    half = draws.shape[1] // 2
    one, other = draws[:, :half], draws[:, half:]
    shares = ((one - other) ** 2).mean(axis=1) / 2 / draws.var(axis=1)
    assert (row.low, row.high) == pytest.approx(np.quantile(shares, [0.05, 0.95]))
    assert row.value == pytest.approx(shares.mean())


def test_a_tree_says_which_way_it_decides(told: Told) -> None:
    best, *_, worst = rule_tree(told).leaves
    assert best.mean > worst.mean
    assert any(one.endswith(": a low-rank map") and not one.startswith("not ") for one in best.conditions)
    assert any(one.startswith("not ") and one.endswith(": a low-rank map") for one in worst.conditions)
    assert 0 < best.share < 1


def test_studies_of_several_metrics_are_pooled_in_spreads_of_their_scores() -> None:
    one, other, third = Told(), Told(), Told(metric="f1")
    same, mixed = across({"a": one, "b": other}), across({"a": one, "b": third})
    for alone, spread in zip(rows_of(PooledRule, same.rows), rows_of(PooledRule, mixed.rows), strict=True):
        assert (alone.unit, spread.unit) == ("accuracy", "spreads")
        assert spread.value == pytest.approx(alone.value / one.spread)
        assert alone.agrees == (alone.value > 0)
        assert alone.effects[0].startswith(f"a {alone.value:+.4f} ± ")
        reach = float(alone.effects[0].rpartition(" ")[2])
        # of two equal studies the pooled mean has an error smaller by the root of two, and a t quantile of 6.31
        assert alone.high - alone.value == pytest.approx(reach / REACH / math.sqrt(2) * 6.3138, abs=1e-3)
    assert {row.agrees for row in rows_of(PooledRule, same.rows)} == {True, False}


def test_what_is_far_below_the_middle_counts_as_the_lowest(told: Told) -> None:
    scores = [one.readings[-1].score for one in told.complete]
    assert told.lowest == pytest.approx(np.median(scores) + LOWEST * told.spread)
    assert told.lowest < np.median(scores)


def test_a_study_is_asked_without_what_the_papers_would_bet_on(told: Told) -> None:
    views = [told.genome.view_of(one) for one in HISTORY]
    trusting = Points.of(views, Structures()).trends
    assert trusting[:, 1].any()
    asked = told.points(views).trends
    assert not asked[:, 1].any()
    assert np.array_equal(asked[:, 0], trusting[:, 0])
