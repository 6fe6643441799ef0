"""d90: which dimension is chosen from made-up trials, and the study that tries them."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from studies.errors import WishError
from studies.intrinsic import DIMENSIONS, FULL, Dimension, Fall, Sweep, dimension_of, mean_dimension, sweep_of
from studies.records import TrialRecord, TrialState
from studies.study_file import Specification, specification_from_mapping

BACKBONES = Path(__file__).parents[1] / "data" / "backbones"
ROBERTA = BACKBONES / "roberta_base"
SWEEP = Sweep(method="intrinsic_said", dimensions=(100, 300, 1000, 3000))


def trial(method: str | None, score: float | None, state: TrialState = TrialState.COMPLETE) -> TrialRecord:
    return TrialRecord(
        number=0,
        origin="published",
        method=method,
        fingerprint="0",
        description="",
        configuration=Configuration(edits=()),
        proposal={},
        seed=0,
        attention=None,
        ffn=None,
        attention_share=0.0,
        stored_parameters=1,
        trained_parameters=1,
        head_parameters=1,
        study_id=1,
        state=state,
        score=score,
        steps=10,
        last_score=score,
        reason=None,
        attempt=1,
        created_at=datetime.now(UTC),
        ended_at=None,
    )


def outcome(*scores: float | None, full: float | None = 0.8, fraction: float = 0.9, tries: int = 1) -> Dimension:
    """Of one complete trial per dimension with a score; None has not begun."""
    trials = [] if full is None else [trial(FULL, full)]
    trials += [trial(SWEEP.point(d), s) for d, s in zip(SWEEP.dimensions, scores, strict=True) if s is not None]
    return dimension_of(trials, SWEEP, fraction=fraction, tries=tries)


def test_d90_is_the_smallest_dimension_that_reaches_nine_tenths_of_the_full_score() -> None:
    found = outcome(0.5, 0.71, 0.73, 0.79)
    assert found.dimension == 1000
    assert found.threshold == pytest.approx(0.72)
    assert [point.reaches for point in found.points] == [False, False, True, True]
    assert found.points[1].fraction_of_full == pytest.approx(0.71 / 0.8)
    assert found.is_final


def test_a_score_of_exactly_nine_tenths_is_enough() -> None:
    assert 0.9 * 0.8 > 0.72, "the last binary digit must not decide"
    assert outcome(0.5, 0.6, 0.72, 0.7).dimension == 1000


def test_a_larger_dimension_that_falls_short_does_not_matter() -> None:
    assert outcome(0.5, 0.75, 0.6, 0.5).dimension == 300


def test_a_larger_dimension_that_scored_less_by_more_than_noise_is_named() -> None:
    found = falls_of(0.5, 0.75, 0.6, 0.7)
    assert [(fall.dimension, fall.below) for fall in found] == [(1000, 300), (3000, 300)]
    assert [fall.by for fall in found] == pytest.approx([0.15, 0.05])
    assert [fall.noise for fall in found] == pytest.approx([0.04, 0.04])


def test_a_curve_that_rises_or_falls_by_less_than_noise_is_monotone() -> None:
    assert falls_of(0.5, 0.6, 0.7, 0.8) == ()
    assert falls_of(0.6, 0.6, 0.6, 0.6) == ()
    assert falls_of(0.5, 0.75, 0.72, 0.715) == ()
    assert [fall.dimension for fall in falls_of(0.5, 0.75, 0.72, 0.70)] == [3000], "small steps add up to a large one"


def test_what_has_no_score_is_no_fall() -> None:
    assert falls_of(None, None, None, None) == ()
    assert falls_of(0.5, None, None, 0.6) == ()
    assert [(fall.dimension, fall.below) for fall in falls_of(0.7, None, 0.6, None)] == [(1000, 100)]


def test_noise_is_that_of_the_mean_of_two_scores_and_a_twentieth_of_it_unless_told() -> None:
    (fall,) = outcome(0.8, 0.7, None, None).falls
    assert fall.noise == pytest.approx(0.05 * 0.75)
    assert outcome(0.80, 0.77, None, None).falls == ()
    (fall,) = outcome(-0.2, -0.6, None, None).falls
    assert fall.noise == pytest.approx(0.05 * 0.4)


def falls_of(*scores: float | None) -> tuple[Fall, ...]:
    """Of points with these scores, where 0.04 may be luck."""
    trials = [trial(SWEEP.point(d), s) for d, s in zip(SWEEP.dimensions, scores, strict=True) if s is not None]
    return dimension_of(trials, SWEEP, fraction=0.9, noise=lambda _: 0.04).falls


def test_a_fraction_can_be_asked_for() -> None:
    assert outcome(0.5, 0.6, 0.73, 0.79, fraction=0.6).dimension == 100
    assert outcome(0.5, 0.6, 0.73, 0.79, fraction=1.0).dimension is None


def test_no_dimension_may_reach_it() -> None:
    found = outcome(0.5, 0.6, 0.7, 0.71)
    assert found.dimension is None
    assert found.is_final


@pytest.mark.parametrize("full", [None, 0.0, -0.2])
def test_without_a_positive_full_score_nothing_reaches_it(full: float | None) -> None:
    found = outcome(0.5, 0.6, 0.7, 0.8, full=full)
    assert (found.threshold, found.dimension) == (None, None)
    assert found.points[0].fraction_of_full is None
    assert found.is_final == (full is not None)


def test_it_is_final_once_no_smaller_dimension_is_open() -> None:
    assert outcome(0.5, 0.6, 0.73, None).is_final
    waiting = outcome(0.5, None, 0.73, 0.79)
    assert (waiting.dimension, waiting.is_final) == (1000, False)
    assert not outcome(0.5, 0.6, 0.7, None).is_final
    assert not outcome(0.5, 0.6, 0.73, 0.79, tries=2).is_final


def test_of_several_tries_the_best_counts_and_only_complete_ones() -> None:
    trials = [
        trial(FULL, 0.8),
        trial(FULL, 0.7),
        trial(SWEEP.point(100), 0.3),
        trial(SWEEP.point(100), 0.74),
        trial(SWEEP.point(300), None, TrialState.FAILED),
        trial("mam_adapter", 0.9),
        trial(None, 0.9),
    ]
    found = dimension_of(trials, SWEEP, fraction=0.9, tries=2)
    assert (found.dimension, found.full.score, found.full.trials) == (100, 0.8, 2)
    assert found.is_final
    assert [point.score for point in found.points] == [0.74, None, None, None]
    assert (found.points[1].trials, found.points[1].failed) == (1, 1)


def test_of_one_seed_the_mean_curve_is_its_own() -> None:
    found = outcome(0.5, 0.9, 0.6, 0.79)
    assert found.falls
    assert mean_dimension([found]) == found


def test_of_several_seeds_the_mean_scores_count() -> None:
    """Alone they say 300 and 3,000; the means are 0.4, 0.7, 0.73 and 0.78 against 0.9 of 0.8."""
    seeds = [outcome(0.5, 0.76, 0.74, 0.76, full=0.82), outcome(0.3, 0.64, 0.69, 0.8, full=0.78)]
    assert [one.dimension for one in seeds] == [300, 3000]
    found = mean_dimension(seeds)
    assert found.threshold == pytest.approx(0.72)
    assert [point.score for point in found.points] == pytest.approx([0.4, 0.7, 0.715, 0.78])
    assert [point.fraction_of_full for point in found.points] == pytest.approx([0.5, 0.875, 0.89375, 0.975])
    assert found.dimension == 3000
    assert found.points[0].deviation == pytest.approx(0.1 * 2**0.5)
    assert found.full.deviation == pytest.approx(0.02 * 2**0.5)
    assert [point.trials for point in found.points] == [2, 2, 2, 2]
    assert found.is_final


def test_a_seed_without_a_score_leaves_the_mean_open() -> None:
    found = mean_dimension([outcome(0.5, 0.6, 0.73, 0.79), outcome(0.5, 0.6, None, 0.79)])
    assert found.points[2].score is None
    assert found.points[2].deviation is None
    assert (found.dimension, found.is_final) == (3000, False)


def test_a_fall_of_one_seed_may_be_none_of_the_mean() -> None:
    falling, rising = outcome(0.5, 0.76, 0.6, 0.79), outcome(0.3, 0.5, 0.7, 0.8)
    assert falling.falls
    assert not mean_dimension([falling, rising]).falls
    assert mean_dimension([falling, falling]).falls == falling.falls


@pytest.fixture(scope="module")
def roberta() -> BackboneShape:
    return shape_of(json.loads((ROBERTA / "config.json").read_text()))


def test_a_sweep_is_of_the_dimensions_that_the_backbone_allows(roberta: BackboneShape) -> None:
    said = Sweep.on(roberta, "intrinsic_said", [3000, 100, 300, 300])
    assert said.dimensions == (300, 3000)
    ((dimension, why),) = said.left_out
    assert dimension == 100
    assert f"{roberta.parameter_tensors} tensors" in why
    assert said.roster == (FULL, "intrinsic_said:dint=300", "intrinsic_said:dint=3000")
    did = Sweep.on(roberta, "intrinsic_did", DIMENSIONS)
    assert (did.dimensions, did.left_out) == (DIMENSIONS, ())
    with pytest.raises(WishError, match="must have a dimension that the backbone allows"):
        Sweep.on(roberta, "intrinsic_said", [10, 30])


def study(tmp_path: Path, **given: object) -> Specification:
    return specification_from_mapping(
        {
            "name": "reviews",
            "backbone": str(ROBERTA),
            "task": {"name": "docstrings", "max_tokens": 16},
            "budget": "0.5%",
            "trials": 14,
            "seed": 3,
            "training": {"steps": 16},
            "search": {"sampler": "tpe", "published": "compared"},
            "fleet": {"backend": "inline", "artefacts": str(tmp_path / "artefacts")},
            **given,
        }
    )


def test_the_study_of_a_sweep_keeps_task_training_and_fleet(tmp_path: Path, roberta: BackboneShape) -> None:
    own = study(tmp_path)
    sweep = Sweep.on(roberta, "intrinsic_said", [300, 1000])
    swept = sweep_of(own, sweep)
    assert swept.name == "reviews-d90-said"
    assert (swept.task, swept.training, swept.fleet, swept.backbone) == (
        own.task,
        own.training,
        own.fleet,
        own.backbone,
    )
    assert swept.space.learning_rates == own.space.learning_rates
    assert swept.space_options.published_points == sweep.roster
    assert swept.trials == 3
    assert swept.rung_steps == (16,), "nothing is compared, and so nothing pruned, before the last step"
    assert swept.parameter_budget().parameters(roberta) == roberta.parameters
    assert swept.search_identity() == sweep_of(own, sweep).search_identity()


def test_later_tries_are_studies_with_seeds_of_their_own(tmp_path: Path, roberta: BackboneShape) -> None:
    sweep = Sweep.on(roberta, "intrinsic_did", [300])
    swept = [sweep_of(study(tmp_path), sweep, attempt=attempt) for attempt in (1, 2, 3)]
    assert [one.name for one in swept] == ["reviews-d90-did", "reviews-d90-did-2", "reviews-d90-did-3"]
    assert [one.seed for one in swept] == [3, 4, 5]
