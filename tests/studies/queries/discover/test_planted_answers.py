"""Answers of a posterior that is planted: intervals, verdicts and sentences in closed form."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pytest
from support.factored_search import drawn, whole_space

from studies.errors import StudiesError
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
from studies.queries.discover.tree import _features, rule_tree
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


def test_the_best_of_a_cell_is_the_highest_of_its_draws_and_trials_and_said_so() -> None:
    told = Told(deviation=0.05)
    answer = cells(told)
    rows = [row for row in rows_of(Best, answer.rows) if row.table == FORMS]
    worths: dict[tuple[str, str], list[float]] = {}
    for one in told.measure.draws:
        attention, ffn = told.cell(one)
        worths.setdefault((attention or "none", ffn or "none"), []).append(told.worth(told.tuned(one)))
    for one in HISTORY:
        forms = [
            edits[0].form.name if edits else "none" for edits in (one.configuration.attention, one.configuration.ffn)
        ]
        worths.setdefault((forms[0], forms[1]), []).append(told.worth(told.candidates([one])[0]))
    assert {(row.row, row.column): row.value for row in rows} == pytest.approx(
        {cell: max(some) for cell, some in worths.items()}
    )
    best, close = rows[0], sum(not row.is_resolved for row in rows[1:])
    assert answer.sentences[0] == (
        f"The best pair of forms is a low-rank map + a low-rank map: {best.value:.4f} accuracy (90%: {best.low:.4f} to "
        f"{best.high:.4f}); of {len(rows) - 1} others {close} may be as good."
    )
    assert answer.sentences[1] == f"{sum(row.n == 0 for row in rows)} of {len(rows)} pairs of forms were never tried."
    for row in rows:
        tried = "never tried" if not row.n else f"{row.n} trials" if row.n > 1 else "1 trial"
        assert row.sentence.endswith(f"to score {row.value:.4f} ± {told.about():.4f} accuracy ({tried}).")
    for side in ("attention", "ffn"):
        own = [row for row in rows_of(Best, answer.rows) if row.table == side]
        assert sum(row.n for row in own) == Tried(HISTORY).at(side)


def test_a_study_of_published_methods_alone_says_which_is_best() -> None:
    told = Told()
    told.history = tuple(one for one in told.history if one.method is not None)
    told.__dict__.pop("complete", None)
    means = told.means(told.candidates(told.complete))
    best = told.complete[int(np.argmax(means))]
    assert told.found() == (
        f"The best of {len(told.complete)} complete trials is {best.method} (trial {best.number}): "
        f"{max(means):.4f} accuracy."
    )


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
            assert said.endswith(end.format(rate=row.rate) + " rates in space.learning_rates.")
    else:
        assert answer.sentences == ("No form has its best rate in the outer tenth of its range.",)


@pytest.mark.parametrize(("peak", "end"), [(0.9, "high"), (-0.9, "low")])
def test_an_optimum_is_at_the_end_as_often_as_the_highest_of_the_curve(peak: float, end: str) -> None:
    told = Told(peak=peak, deviation=0.03)
    answer = rates(told)
    curve = [row for row in rows_of(Rate, answer.rows) if (row.side, row.form) == ("ffn", "lowrank")]
    best = next(row for row in curve if row.is_best)
    apart = told.deviation * math.sqrt((1 - SHARED) / 24)  # what is shared moves the whole curve
    noise = np.random.default_rng(0).standard_normal((40_000, len(curve)))
    highest = np.argmax(np.array([row.value for row in curve]) + apart * noise, axis=1)
    places = np.array([row.place for row in curve])[highest]
    share = float(np.mean(places > 0.899 if end == "high" else places < 0.101))
    assert 0.5 < share < 0.85
    # 400 draws: four standard errors of a share are at most 0.1
    assert best.at_edge == pytest.approx(share, abs=0.1)
    (said,) = (one for one in answer.sentences if "a low-rank map at the FFN" in one)
    assert f"at the {end} end ({best.rate:.1e}), with a probability of {best.at_edge:.2f}: allow" in said
    tried = Tried(HISTORY).having("ffn", "form", "lowrank")
    assert {row.n for row in curve} == {tried}
    assert curve[0].sentence.endswith(f"{curve[0].rate:.1e}: {curve[0].value:.4f} ± {told.about(24):.4f}.")


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
        assert row.n == Tried(HISTORY).having(row.side, "form", row.better, row.worse)
    for row in rows:
        said = "is worth" if row.is_resolved else "is not resolved:"
        worth = f"{row.value:+.4f} accuracy (90%: {row.low:+.4f} to {row.high:+.4f})."
        assert row.sentence.endswith(f" {said} {worth}")


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


def test_a_tree_has_the_means_of_its_leaves_and_is_judged_by_the_other_half() -> None:
    told = Told(deviation=1e-9)
    tree = rule_tree(told)
    draws = [told.tuned(one) for one in told.measure.draws]
    names, features = _features(told, draws)
    worths, fitted = np.array([told.worth(one) for one in draws]), np.arange(len(draws)) % 2 == 0
    left, shares = np.zeros(len(draws)), 0.0
    for leaf in tree.leaves:
        there = np.ones(len(draws), dtype=bool)
        for condition in leaf.conditions:
            has = features[:, names.index(condition.removeprefix("not "))] == 1
            there &= ~has if condition.startswith("not ") else has
        assert 0 < len(leaf.conditions) <= 3
        assert (leaf.mean, leaf.share) == pytest.approx((worths[there].mean(), there.mean()))
        left[there] = worths[there] - worths[there & fitted].mean()
        shares += leaf.share
    assert shares == pytest.approx(1.0)
    other = ~fitted
    # joint draws have a jitter of a millionth of their variance
    assert tree.fidelity == pytest.approx(1 - left[other].var() / worths[other].var(), rel=1e-4)
    assert f"it explains {tree.fidelity:.0%} of the variance:" in tree.lines()[0]
    # half of the variance of what it is judged by is noise
    told.deviation = float(worths.std()) / math.sqrt(1 - SHARED)
    assert rule_tree(told).fidelity == pytest.approx(tree.fidelity / 2, abs=0.06)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_pooled_rule_is_said_to_hold_as_the_papers_have_it_or_unlike_them(sign: float) -> None:
    told = Told(sign=sign, deviation=1e-6)
    answer = across(dict.fromkeys("abcdefgh", told))
    rows = rows_of(PooledRule, answer.rows)
    resolved = [row for row in rows if row.is_resolved]
    assert resolved
    assert answer.sentences == tuple(row.sentence for row in resolved)
    for row in rows:
        number = f"{row.value:+.4f} accuracy (90%: {row.low:+.4f} to {row.high:+.4f}; 8 studies)"
        verdict = f", {'as' if row.value > 0 else 'unlike'} {row.source} has it." if row.is_resolved else "."
        said = "is worth" if row.is_resolved else "is not resolved:"
        assert row.sentence.endswith(f" {said} {number}{verdict}")
    (sides,) = (row for row in rows if row.side == "sides")
    some = pairs(told.measure, Contrast("sides", "edited", "ffn", "attention"))
    having, lacking = ([told.worth(told.tuned(one)) for one in group] for group in (some.having, some.lacking))
    assert sides.value == pytest.approx(np.mean(having) - np.mean(lacking))
    unsure = across({"a": Told(sign=sign, deviation=10), "b": Told(sign=sign, deviation=10)})
    assert unsure.sentences == ("None of the papers' rules is resolved by 2 studies.",)
    with pytest.raises(StudiesError, match="at least two studies"):
        across({"a": told})


def test_studies_of_several_metrics_are_pooled_in_spreads_of_their_scores() -> None:
    one, other, third = Told(), Told(), Told(metric="f1")
    same, mixed = across({"a": one, "b": other}), across({"a": one, "b": third})
    for alone, spread in zip(rows_of(PooledRule, same.rows), rows_of(PooledRule, mixed.rows), strict=True):
        assert (alone.unit, spread.unit) == ("accuracy", "spreads")
        assert spread.value == pytest.approx(alone.value / one.spread)
        assert spread.high - spread.low == pytest.approx((alone.high - alone.low) / one.spread)
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
