"""Model features of two edits a side: those of the search, of recorded trials and of what can be counted are equal."""

import math

import pytest
from support.factored_search import drawn, whole_space
from support.planted_ledger import Planted

from search_space.parameter_counts.counts import count_edits
from search_space.space.options import SpaceOptions
from search_space.space.space import SearchSpace
from studies.analysis.predictions import RecordedFeatures
from studies.surrogate.encoding import Encoding
from studies.surrogate.features import TrainedSide, is_mixed, unit_lr_of


@pytest.fixture(scope="module")
def two() -> SearchSpace:
    one = whole_space()
    return SearchSpace(shape=one.shape, budget=one.budget, options=SpaceOptions(edits_per_side=(1, 2)))


def shares_of(side: TrainedSide) -> list[str]:
    return sorted(fact for fact in side.structure.other if " above " in fact)


def test_features_are_those_of_counted_sides_and_peak_rates(two):
    mixed = 0
    for trial in drawn(two, 200, published=()):
        configuration, (attention, ffn) = trial.configuration, Encoding(two).features_of(trial.record)
        for side, edits, rate in (
            (attention, configuration.attention, trial.record.attention_learning_rate),
            (ffn, configuration.ffn, trial.record.ffn_learning_rate),
        ):
            assert (side is None) == (not edits)
            if side is None or rate is None:
                continue
            stored = count_edits(edits, two.shape).stored
            assert side.log2_budget_fraction == pytest.approx(math.log2(stored / two.budget), abs=1e-9)
            assert side.unit_lr == pytest.approx(unit_lr_of(rate, *two.peak_lr_range(edits)), abs=1e-9)
            if not is_mixed(edits):
                assert not shares_of(side)
                continue
            mixed += 1
            widths = {edit.form.name: getattr(edit.form, "width", 0) for edit in edits}
            first = min(widths)
            share = widths[first] / sum(widths.values()) if any(widths.values()) else 0.0
            assert shares_of(side) == [f"{first} above {step}" for step in (0.2, 0.4, 0.6, 0.8) if share > step]
    assert mixed > 50, "two forms at one site are what is counted in two ways"


def test_recorded_trials_have_the_features_of_the_search(tmp_path):
    with Planted(f"sqlite:///{tmp_path / 'ledger.db'}", 30).ledger as ledger:
        study = ledger.study("planted")
        recorded, encoding = RecordedFeatures(study), Encoding(whole_space())
        for trial in ledger.trials(study.id):
            for one, other in zip(recorded.features_of(trial), encoding.features_of(trial), strict=True):
                assert (one is None) == (other is None)
                if one is not None and other is not None:
                    assert one.structure == other.structure
                    assert one.log2_budget_fraction == other.log2_budget_fraction
                    assert one.unit_lr == pytest.approx(other.unit_lr, abs=1e-12)
