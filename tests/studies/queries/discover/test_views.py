"""V2, V4 and V5: differences to a published method, sizes, and pruned trials, as answers with intervals."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from support.factored_search import drawn, whole_space

from search_space.published.point import PublishedPoint
from search_space.space.space import SearchSpace
from studies.errors import StudiesError
from studies.queries.discover.asking import discovered
from studies.queries.discover.differences import Worth, differences
from studies.queries.discover.knowledge import Knowledge
from studies.queries.discover.pruned import Stopped, curves, probability_above, pruned
from studies.queries.discover.sizes import Size, front_band, point_of, sizes
from studies.records import TrialState
from studies.search.factored.observation import Observation


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return whole_space()


@pytest.fixture(scope="module")
def history(space: SearchSpace) -> list[Observation]:
    return drawn(space, 40)


@pytest.fixture(scope="module")
def knowledge(space: SearchSpace, history: list[Observation]) -> Knowledge:
    return Knowledge(space, history, metric="accuracy")


class Planted(Knowledge):
    """Believes of every configuration what it is told, with one deviation and one correlation of any two."""

    def __init__(
        self, space: SearchSpace, history: list[Observation], deviation: float, correlation: float = 0.0
    ) -> None:
        super().__init__(space, history, metric="accuracy")
        self._correlation = correlation
        self._deviation = deviation
        self._told = {one.fingerprint: one.readings[-1].score for one in history}

    def joint(self, asked):  # type: ignore[no-untyped-def]
        means = np.array([self._told[one.fingerprint] for one in asked])
        shared = self._correlation + (1 - self._correlation) * np.eye(len(means))
        return means, self._deviation**2 * shared

    def views(self, trials):  # type: ignore[no-untyped-def]
        return self.candidates(trials)

    def means(self, asked):  # type: ignore[no-untyped-def]
        return self.joint(asked)[0]


def two_complete(history: list[Observation], first: float, second: float) -> list[Observation]:
    """Two complete trials of planted scores, the first of them the smaller; all others are pruned."""
    sizes_first = sorted((one for one in history if one.number % 3 != 2), key=lambda one: one.number)
    kept = {sizes_first[0].number: first, sizes_first[1].number: second}
    found = []
    for one in history:
        if one.number in kept:
            last = replace(one.readings[-1], score=kept[one.number])
            found.append(replace(one, state=TrialState.COMPLETE, readings=(*one.readings[:-1], last)))
        else:
            found.append(replace(one, state=TrialState.PRUNED))
    return found


def test_values_of_differences_sum_to_what_the_winner_is_ahead(knowledge: Knowledge) -> None:
    answer = differences(knowledge)
    rows = [row for row in answer.rows if isinstance(row, Worth)]
    winner = knowledge.winner
    method = next(one for one in knowledge.complete if one.method == "mam_adapter")
    means = knowledge.means(knowledge.candidates([winner, method]))
    assert sum(row.value for row in rows) == pytest.approx(means[0] - means[1], abs=1e-9)
    assert sum(row.gain for row in rows) == pytest.approx(means[0] - means[1], abs=1e-9)
    assert rows[-1].reached == pytest.approx(means[0], abs=1e-9)
    assert [row.step for row in rows] == list(range(1, len(rows) + 1))
    assert f"trial {winner.number}" in answer.question
    assert all(row.is_resolved == (row.low > 0 or row.high < 0) for row in rows)
    assert len(answer.table()) == len(rows)


def test_a_method_that_was_never_tried_is_taken_at_the_middle_of_its_rates(knowledge: Knowledge) -> None:
    assert differences(knowledge, PublishedPoint("bitfit")).rows
    (asked,) = discovered(knowledge, ["V2"], against=PublishedPoint("bitfit"))
    assert "and bitfit," in asked.question
    (usual,) = discovered(knowledge, ["V2"])
    assert "and mam_adapter," in usual.question


def test_where_the_method_is_the_winner_the_best_discovery_is_compared(
    space: SearchSpace, history: list[Observation]
) -> None:
    knowledge = Knowledge(space, history, best=1)
    answer = differences(knowledge)
    found = [one for one in knowledge.complete if one.method is None]
    best = found[int(np.argmax(knowledge.means(knowledge.candidates(found))))]
    assert answer.question.startswith(f"What differs between the best discovery, trial {best.number}, and mam_adapter")
    assert answer.rows
    nothing = [one if one.method else replace(one, state=TrialState.PRUNED) for one in history]
    alone = differences(Knowledge(space, nothing, best=1))
    assert alone.sentences == ("The winner, trial 1, is mam_adapter itself, and nothing was discovered.",)


def test_a_method_that_cannot_be_there_gives_way_to_the_best_published_one(knowledge: Knowledge) -> None:
    answer = differences(knowledge, PublishedPoint("lora_qv:r=512"))
    assert "and lora_qv:r=512" not in answer.question
    assert any(f"and {name}," in answer.question for name in ("lora_qv", "mam_adapter"))


@pytest.mark.parametrize(("lead", "slack"), [(0.0, 0.005), (0.01, 0.005), (-0.02, 0.005)])
def test_the_probability_to_be_within_half_a_point_is_that_of_two_normal_scores(
    space: SearchSpace, history: list[Observation], lead: float, slack: float
) -> None:
    planted = Planted(space, two_complete(history, 0.5, 0.5 + lead), deviation=0.01)
    rows = [row for row in sizes(planted).rows if isinstance(row, Size)]
    by_trial = {row.trial: row.within for row in rows}
    first, second = (one.number for one in planted.complete)
    apart = NormalDist(0, 0.01 * 2**0.5)
    # 4,000 draws: four standard errors of a share are at most 0.032
    assert by_trial[first] == pytest.approx(apart.cdf(slack - lead), abs=0.032)
    assert by_trial[second] == pytest.approx(apart.cdf(slack + lead), abs=0.032)


def test_sizes_ascend_and_the_front_rises(knowledge: Knowledge) -> None:
    answer = sizes(knowledge)
    rows = [row for row in answer.rows if isinstance(row, Size)]
    assert [row.parameters for row in rows] == sorted(row.parameters for row in rows)
    front = [row.value for row in rows if row.is_front]
    assert front == sorted(front)
    assert {row.trial for row in rows} == {one.number for one in knowledge.complete}
    band = front_band(knowledge).to_dicts()
    assert all(float(str(row["low"])) <= float(str(row["best"])) <= float(str(row["high"])) for row in band)
    means = [float(str(row["best"])) for row in band]
    assert means == sorted(means)
    assert "The smallest delta within 0.5 points of the best" in answer.sentences[0]


def test_of_many_trials_the_best_and_the_front_are_compared(
    space: SearchSpace, history: list[Observation], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [row for row in sizes(Knowledge(space, history)).rows if isinstance(row, Size)]
    monkeypatch.setattr("studies.queries.discover.sizes.MOST", 5)
    some = [row for row in sizes(Knowledge(space, history)).rows if isinstance(row, Size)]
    best = sorted(whole, key=lambda row: -row.value)[:5]
    expected = {row.trial for row in whole if row.is_front} | {row.trial for row in best}
    assert {row.trial for row in some} == expected
    assert len(some) < len(whole)


def test_forecasts_do_not_depend_on_how_many_are_asked_at_once(
    space: SearchSpace, history: list[Observation], monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = Knowledge(space, history)
    whole = {row.trial: row for row in pruned(knowledge).rows if isinstance(row, Stopped)}
    monkeypatch.setattr("studies.queries.discover.pruned._AT_ONCE", 3)
    for row in pruned(knowledge).rows:
        assert isinstance(row, Stopped)
        assert row.beats == pytest.approx(whole[row.trial].beats, abs=1e-9)


def test_a_point_is_a_hundredth_unless_the_metric_is_in_percent() -> None:
    assert (point_of("accuracy"), point_of("bleu")) == (0.01, 1.0)


def test_the_chance_of_a_pruned_trial_is_that_of_a_normal_difference(
    space: SearchSpace, history: list[Observation]
) -> None:
    planted = Planted(space, two_complete(history, 0.4, 0.45), deviation=0.02, correlation=0.75)
    answer = pruned(planted)
    rows = [row for row in answer.rows if isinstance(row, Stopped)]
    assert len(rows) == len(history) - 2
    assert planted.winner.number == planted.complete[1].number
    apart = NormalDist(0, 0.02 * (2 * (1 - 0.75)) ** 0.5)
    told = {one.number: one.readings[-1].score for one in planted.history}
    for row in rows:
        assert row.beats == pytest.approx(apart.cdf(told[row.trial] - 0.45), abs=1e-9)
        assert row.value == pytest.approx(told[row.trial])
    assert [row.beats for row in rows] == sorted((row.beats for row in rows), reverse=True)
    expected = sum(row.beats for row in rows)
    assert answer.sentences[0].startswith(f"It is expected that {expected:.1f} of {len(rows)} pruned trials")


def test_the_cut_is_the_lowest_score_that_went_on(knowledge: Knowledge) -> None:
    rows = [row for row in pruned(knowledge).rows if isinstance(row, Stopped)]
    half = [one.readings[0].score for one in knowledge.history if len(one.readings) == 2]
    assert {row.cut for row in rows} == {min(half)}
    assert {row.fraction for row in rows} == {0.5}


def test_nothing_is_cut_where_nothing_was_pruned(space: SearchSpace, history: list[Observation]) -> None:
    complete = [one for one in history if one.state is TrialState.COMPLETE]
    assert pruned(Knowledge(space, complete)).sentences == ("No trial was pruned, so none was cut.",)


def test_curves_hold_every_reading(knowledge: Knowledge) -> None:
    assert len(curves(knowledge)) == sum(len(one.readings) for one in knowledge.history)


def test_a_study_without_a_complete_trial_has_no_winner(space: SearchSpace, history: list[Observation]) -> None:
    nothing = [replace(one, state=TrialState.PRUNED) for one in history]
    with pytest.raises(StudiesError, match="must have a complete trial before it has a winner"):
        sizes(Knowledge(space, nothing))


def test_what_is_sure_has_probability_one_half_or_nothing() -> None:
    assert [probability_above(mean, 0.0) for mean in (-1.0, 0.0, 1.0)] == [0.0, 0.5, 1.0]
