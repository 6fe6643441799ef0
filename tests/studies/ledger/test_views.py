"""Views of the ledger: they equal the Python queries on both databases."""

import re
from contextlib import suppress
from dataclasses import replace
from statistics import fmean

import pytest
from support.factored_search import whole_space
from support.fixed_ledger import fixed_ledger

from search_space.errors import SearchSpaceError
from search_space.published import METHODS
from search_space.space.random_draw import RandomTrial
from studies.analysis.frames import frame_rows
from studies.analysis.leaderboard import leaderboard
from studies.analysis.ranks import ranked
from studies.analysis.readings import readings_table
from studies.analysis.sql import run_query
from studies.confirmation.results import confirmation_results
from studies.ledger.ledger import Ledger
from studies.ledger.views import VIEWS
from studies.pareto import front
from studies.records import ConfirmationRecord, Contender, StudyKind, TrialState

STUDIES = ("middle", "finished", "finished-confirm")


@pytest.fixture
def fixed(storage_url, tmp_path):
    fixed_ledger(storage_url, tmp_path)
    with Ledger.open(storage_url, read_only=True) as ledger:
        yield ledger


def rows(url, sql):
    return run_query(url, sql).to_dicts()


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_columns_that_are_documented_and_rows(fixed, storage_url, view):
    answer = run_query(storage_url, f"SELECT * FROM {view}")
    _, _, columns = VIEWS[view].__doc__.partition("Columns:")
    assert answer.columns == tuple(re.findall(r"^ {8}(\w+): ", columns, re.MULTILINE))
    assert bool(answer.rows)


def test_the_leaderboard_ranks_as_python_does_without_estimates(fixed, storage_url):
    found = rows(storage_url, "SELECT * FROM leaderboard ORDER BY study, place")
    for name in STUDIES:
        study = fixed.study(name)
        expected = ranked(fixed.trials(study.id))
        mine = [row for row in found if row["study"] == name]
        assert [row["trial"] for row in mine] == [trial.number for trial in expected]
        assert [row["place"] for row in mine] == list(range(1, len(expected) + 1))
    assert {row["study"] for row in found} == set(STUDIES)


def test_leaderboard_view_equals_the_python_leaderboard(fixed, storage_url):
    same = ("place", "method", "state", "score", "steps", "seeds", "budget_fraction", "backbone_fraction", "reason")
    same += ("attention_share", "attention_learning_rate", "ffn_learning_rate")
    renamed = {"number": "trial", "sentence": "description", "parameters": "stored_parameters"}
    sql = f"SELECT {', '.join([*same, *renamed.values()])} FROM leaderboard WHERE study = 'finished' ORDER BY place"
    assert [tuple(row.values()) for row in rows(storage_url, sql)] == [
        tuple(getattr(row, name) for name in (*same, *renamed)) for row in leaderboard(fixed, "finished").rows
    ]


def test_replicates_count_for_the_trial_that_they_repeat(fixed, storage_url):
    [first] = rows(storage_url, "SELECT * FROM leaderboard WHERE study = 'finished' AND trial = 0")
    scores = [fixed.trial(fixed.study("finished").id, number).score for number in (0, 7)]
    assert (first["seeds"], first["first_score"]) == (2, scores[0])
    assert first["score"] == pytest.approx(fmean(scores), rel=1e-15)
    assert rows(storage_url, "SELECT * FROM leaderboard WHERE study = 'finished' AND trial = 7") == []


def edits_of(configuration):
    return [
        {
            "edit": place,
            "side": "attention" if edit.site.is_attention else "ffn",
            "site": edit.site.value,
            "layers": edit.layers.name,
            "write": edit.write.value,
            "read": None if edit.read is None else edit.read.value,
            "insertion": edit.insertion.value,
            "form": edit.form.name,
            "activation": None if edit.form.activation is None else edit.form.activation.value,
            "gate": edit.gate.name,
            "heads": edit.heads.value,
            "bottleneck": None if edit.sized_form is None else edit.sized_form.width,
            "scale": edit.gate.fixed_scale,
        }
        for place, edit in enumerate(configuration.edits, start=1)
    ]


def all_kinds():
    """Return every published method, and draws of a space with two edits on a side and every choice of layers."""
    space = whole_space()
    draws = [space.suggest(RandomTrial(seed)).configuration for seed in range(60)]
    named = []
    for name in METHODS:
        with suppress(SearchSpaceError):  # what the budget is too small for
            named.append(space.suggest_published(name, RandomTrial(0)).configuration)
    assert len(named) > 20
    return [*draws, *named]


def test_every_edit_of_every_configuration_has_its_dimensions(kept, values, storage_url):
    configurations = all_kinds()
    trials = [
        replace(values.trial(number), configuration=configuration)
        for number, configuration in enumerate(configurations)
    ]
    kept.ledger.add_trials(kept.id, kept.epoch, trials)
    expected = [{"trial": number} | edit for number, one in enumerate(configurations) for edit in edits_of(one)]
    columns = ", ".join(expected[0])
    assert rows(storage_url, f"SELECT {columns} FROM configurations ORDER BY trial, edit") == expected
    assert max(edit["edit"] for edit in expected) > 2


def test_curves_are_the_readings_with_their_time_summed_up(fixed, storage_url):
    found = rows(storage_url, "SELECT * FROM curves WHERE study = 'middle' ORDER BY trial, step")
    expected = frame_rows(readings_table(fixed.readings(fixed.study("middle").id)))
    same = ("trial", "step", "rung", "score", "train_loss", "validation_loss")
    totals = dict.fromkeys((row["trial"] for row in expected), 0.0)
    for mine, reading in zip(found, expected, strict=True):
        assert {name: mine[name] for name in same} == {name: reading[name] for name in same}
        totals[mine["trial"]] += reading["seconds"]
        assert mine["seconds"] == pytest.approx(totals[mine["trial"]], rel=1e-12)
    assert {row["heard_at"] for row in found} == {None}


def test_size_of_a_trial_is_split_between_its_sides(fixed, storage_url):
    found = rows(storage_url, "SELECT * FROM budget_use WHERE study = 'middle' ORDER BY trial")
    study = fixed.study("middle")
    trials = fixed.trials(study.id)
    assert [row["trial"] for row in found] == [trial.number for trial in trials]
    for row, trial in zip(found, trials, strict=True):
        at_attention = round(trial.attention_share * trial.stored_parameters)
        assert row["attention_parameters"] == at_attention
        assert row["ffn_parameters"] == trial.stored_parameters - at_attention
        assert row["budget_fraction"] == trial.stored_parameters / study.budget_parameters
        assert row["backbone_fraction"] == trial.stored_parameters / study.backbone_parameters
        assert (row["steps"], row["extra_flops"]) == (trial.steps, None)
        spent = sum(reading.seconds for reading in fixed.readings(study.id, trial.number))
        assert row["seconds"] == pytest.approx(spent, rel=1e-12)


@pytest.mark.slow
def test_contenders_of_a_confirmation_have_their_spread_on_test(fixed, storage_url):
    found = rows(storage_url, "SELECT * FROM confirmation_results")
    [result] = confirmation_results(fixed, "finished")
    assert len(found) == len(result.contenders)
    for place, (row, one) in enumerate(zip(found, result.contenders, strict=True), start=1):
        assert (row["study"], row["confirmation"], row["place"]) == ("finished", "finished-confirm", place)
        assert (row["label"], row["trial"], row["kind"]) == (one.label, one.trial, "top" if one.is_top else "baseline")
        assert (row["planned"], row["seeds"], row["change"]) == (2, 2, None)
        assert row["validation_score"] == one.validation_score
        assert row["mean"] == pytest.approx(one.spread.mean, rel=1e-15)
        assert row["deviation"] == pytest.approx(one.spread.deviation, rel=1e-12)
        assert (row["lowest"], row["highest"]) == (min(one.scores), max(one.scores))
        assert row["optimism"] == pytest.approx(one.optimism, abs=1e-15)


def test_contenders_count_only_seeds_that_completed(ledger, values, storage_url):
    parent = ledger.create_study(values.study())
    one = Contender(label="", trial=None, validation_score=None, is_top=False, baselines=())
    given = {"against": ("lora_qv",), "seeds": (5, 6), "contenders": tuple(replace(one, label=name) for name in "abc")}
    request = ConfirmationRecord(study=parent.name, top=1, left_out={}, **given)
    new = values.study(name="sst2-confirm", kind=StudyKind.CONFIRMATION, parent_id=parent.id)
    study = ledger.create_study(new, [values.trial(number) for number in range(6)], request)
    epoch = ledger.take_over(study.id, "keeper")
    scores = {0: 0.5, 1: 0.7, 2: 0.25}
    for number in range(4):
        ledger.lease_all(study.id, epoch, [number], "w")
        outcome = {**values.complete, "score": scores[number]} if number in scores else values.failed
        readings = [values.reading(number, 10, score=scores[number])] if number in scores else []
        ledger.settle(study.id, epoch, number, 1, readings=readings, **outcome)
    sql = "SELECT label, seeds, mean, deviation FROM confirmation_results ORDER BY place"
    first, second, third = run_query(storage_url, sql).rows
    assert first == ("a", 2, pytest.approx(0.6), pytest.approx(0.02**0.5))
    assert second == ("b", 1, 0.25, None)
    assert third == ("c", 0, None, None)


def test_fronts_contain_trials_that_no_smaller_one_beats(kept, values, storage_url):
    sizes = [4, 2, 2, 8, 6, 2, 9, 1]
    scores = [0.5, 0.4, 0.6, 0.7, 0.6, 0.6, 0.7, None]
    flops = [1, 2, 3, 1, None, 9, 0, 5]
    trials = [
        replace(values.trial(number), stored_parameters=sizes[number], extra_flops=flops[number])
        for number in range(len(sizes))
    ]
    kept.ledger.add_trials(kept.id, kept.epoch, trials, worker="w")
    for number, score in enumerate(scores):
        outcome = values.pruned if score is None else {**values.complete, "score": score}
        reading = values.reading(number, 10, score=0.9 if score is None else score)
        kept.ledger.settle(kept.id, kept.epoch, number, 1, readings=[reading], **outcome)
    sql = "SELECT objective, trial, size FROM fronts ORDER BY objective, size"
    complete = [trial for trial in kept.ledger.trials(kept.id) if trial.state is TrialState.COMPLETE]
    expected = []
    for objective, size in (("extra_flops", "extra_flops"), ("parameters", "stored_parameters")):
        sized = [trial for trial in complete if getattr(trial, size) is not None]
        chosen = front([getattr(trial, size) for trial in sized], [trial.score for trial in sized])
        expected += [(objective, sized[place].number, getattr(sized[place], size)) for place in chosen]
    assert run_query(storage_url, sql).rows == tuple(expected)
    assert [row[1] for row in expected] == [6, 2, 3]
