"""Views of a study whose posterior is a formula: ends of intervals, shares, sentences."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.factored_search import drawn, history_of, whole_space

from studies.analysis.discover.differences import differences
from studies.analysis.discover.importance import base, factors, importance
from studies.analysis.discover.rates import rates
from studies.analysis.discover.sizes import sizes
from studies.analysis.discover.study_posterior import REACH, Asked, StudyPosterior
from studies.analysis.discover.summary import summary
from studies.surrogate.features import TrainedSide
from studies.surrogate.kernel import Points
from studies.surrogate.structure_distances import StructureDistances

SPACE = whole_space()
HISTORY = history_of(drawn(SPACE, 30))
SHARED = 0.9


class PlantedPosterior(StudyPosterior):
    """Posterior given by a formula, with one deviation for every score and one correlation for every pair.

    Low-rank maps are worth 5 points; a rate loses by its distance from the peak; twice the size is worth a point.
    """

    def __init__(self, *, deviation: float = 0.01, peak: float = 0.0, sign: float = 1.0, metric: str = "accuracy"):
        super().__init__(SPACE, HISTORY, metric=metric)
        self.deviation, self.peak, self.sign = deviation, peak, sign

    def worth(self, candidate: Asked) -> float:
        return 0.5 + self.sign * sum(self.of_side(side) for side in self._view(candidate) if side is not None)

    def of_side(self, side: TrainedSide) -> float:
        of_form, of_rate = 0.05 * ("lowrank" in side.structure.form), 0.02 * (side.unit_lr - self.peak) ** 2
        return of_form - of_rate + 0.01 * side.log2_budget_fraction

    def joint(self, candidates: Sequence[Asked]) -> tuple[Any, Any]:
        means = np.array([self.worth(one) for one in candidates])
        return means, self.deviation**2 * (SHARED + (1 - SHARED) * np.eye(len(means)))

    def means(self, candidates: Sequence[Asked]) -> Any:
        return np.array([self.worth(one) for one in candidates])

    def half_interval(self, count: int = 1) -> float:
        """Half the interval of a difference of two means over so many configurations each."""
        return REACH * self.deviation * math.sqrt(2 * (1 - SHARED) / count)


@pytest.fixture(scope="module")
def planted() -> PlantedPosterior:
    return PlantedPosterior()


def fifth(place: float) -> int:
    return min(4, int(5 * place))


def test_factors_are_binned_by_fifths_of_their_ranges(planted):
    some = base(planted.measure)
    found = {(one.side, one.dimension): one for one in factors(planted.measure, some)}
    low, high = SPACE.options.attention_share
    assert found["ffn", "rate"].values.tolist() == [fifth((one.ffn.unit_lr + 1) / 2) for one in some if one.ffn]
    shares = [
        fifth((one.attention_share - low) / (high - low)) if planted.encoding.shares_budget(one) else -1 for one in some
    ]
    assert found["both", "share"].values.tolist() == shares
    assert set(shares) == {-1, 0, 1, 2, 3, 4}


def test_study_posterior_ignores_the_paper_prior(planted):
    views = [planted.encoding.features_of(one) for one in HISTORY]
    trusting = Points.of(views, StructureDistances()).trends
    assert trusting[:, 1].any()
    own_trends = planted.surrogate.points(views).trends
    assert not own_trends[:, 1].any()
    assert np.array_equal(own_trends[:, 0], trusting[:, 0])


def test_the_best_rate_has_its_interval_and_the_rates_that_may_be_as_good(planted):
    card = rates(planted)
    for _, row in card.data.iterrows():
        curve = card.points[(card.points["at"] == row["at"]) & (card.points["form"] == row["form"])]
        assert row["score"] == curve["score"].max()
        reach = (row["high"] - row["score"]) / REACH / planted.deviation
        count = round((1 - SHARED) / (reach**2 - SHARED))
        fine = curve[row["score"] - curve["score"] <= planted.half_interval(count)]["rate"]
        assert (row["from"], row["to"]) == pytest.approx((fine.min(), fine.max()))


@pytest.mark.parametrize(("peak", "end", "advice"), [(-1.5, "low", "lower"), (1.5, "high", "higher")])
def test_a_best_rate_at_the_end_of_its_range_is_warned_of_if_it_is_sure(peak, end, advice):
    sentences = rates(PlantedPosterior(peak=peak, deviation=1e-4)).sentences
    assert any(f"is at the {end} end of its range" in one and f"Allow {advice} ones" in one for one in sentences)
    assert not any("end of its range" in one for one in rates(PlantedPosterior(peak=peak, deviation=0.5)).sentences)


def test_smallest_equally_good_trial_is_shown_with_its_saving():
    card = sizes(PlantedPosterior(sign=0.01, deviation=1e-4))
    smallest, best = card.points.iloc[0], card.points.loc[card.points["estimate"].idxmax()]
    less = 1 - smallest["parameters"] / best["parameters"]
    assert less > 0.1
    assert card.sentences[0].startswith(f"Trial {smallest['trial']} is the smallest within 0.5 points of the best")
    assert f": {smallest['parameters']:,} parameters (" in card.sentences[0]
    assert f", {less:.0%} less than the best)." in card.sentences[0]


def test_gains_lead_from_step_to_step_and_have_intervals(planted):
    data = differences(planted).data
    assert len(data) > 2
    assert data["gain"][1:].tolist() == pytest.approx(data["reached"].diff()[1:].tolist())
    reaches = data["high"] - data["gain"]
    assert reaches.tolist() == pytest.approx((data["gain"] - data["low"]).tolist())
    assert reaches.tolist() == pytest.approx([planted.half_interval()] * len(data))


@pytest.mark.parametrize(
    ("keeps", "deviation", "words"),
    [(max, 1e-3, "shown to be better"), (min, 1e-3, "shown to be worse"), (max, 1.0, "not decided")],
)
def test_summary_begins_with_the_discovery(keeps, deviation, words):
    planted = PlantedPosterior(deviation=deviation)
    kept = keeps((one for one in planted.complete if one.method is None), key=lambda one: planted.worth(one))
    planted.history = tuple(one for one in HISTORY if one.method or one.number == kept.number)
    del planted.complete
    sentences = summary(planted, [])
    assert words in sentences[0]
    assert " ± " in sentences[0]
    assert "deltaspace confirm" in sentences[-1]


def test_shares_of_variance_have_the_middle_of_the_draws(planted, monkeypatch):
    kept: dict[tuple[object, ...], Any] = {}
    real = PlantedPosterior.sampled

    def sampled(self: PlantedPosterior, candidates: Sequence[Asked], count: int, *words: object) -> Any:
        kept[words] = real(self, candidates, count, *words)
        return kept[words]

    monkeypatch.setattr(PlantedPosterior, "sampled", sampled)
    row = importance(planted).data.set_index("choice").loc["form at the FFN"]
    draws = kept["matters", "ffn", "form"]
    half = draws.shape[1] // 2
    one, other = draws[:, :half], draws[:, half:]
    shares = ((one - other) ** 2).mean(axis=1) / 2 / draws.var(axis=1)
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.quantile(shares, [0.025, 0.975])))
    assert row["share"] == pytest.approx(shares.mean())
