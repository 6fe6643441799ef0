"""``deltaspace.Search``: fit on tables in memory, predict with the best trial."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pandas
import pytest
from pandas.testing import assert_frame_equal

import deltaspace
from deltaspace.errors import InvalidRequestError, RunnerError, SpecificationError, StudyChangedError

WORDS = ("good", "bad")
TRAIN = pandas.DataFrame([{"review": f"number {n} was {WORDS[n % 2]}", "verdict": WORDS[n % 2]} for n in range(60)])
VALIDATION = pandas.DataFrame([{"review": f"item {n} is {WORDS[n % 2]}", "verdict": WORDS[n % 2]} for n in range(20)])
TEXTS = ["number 7 was good", "the other item is bad"]
OVERRIDES = {
    "training.steps": 4,
    "training.batch_size": 8,
    "pruning.first_rung_steps": 2,
    "fleet.backend": "inline",
}

Make = Callable[..., deltaspace.Search]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the working directory of all searches."""
    return tmp_path_factory.mktemp("searches")


@pytest.fixture
def make(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return a maker of small searches; those without a name are of the study ``search`` of three trials."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DELTASPACE_AUTO_PRECISION", "fp32")
    monkeypatch.delenv("DELTASPACE_STORAGE", raising=False)

    def make(**given: Any) -> deltaspace.Search:
        usual = {"backbone": "embedded", "trials": 3, "overrides": OVERRIDES, "progress": False}
        return deltaspace.Search(**{**usual, **given})

    return make


def saved_tables(study: deltaspace.Study) -> dict[str, int]:
    """Return the files of a study's tables, with the times of their last change."""
    task: Any = study.best.study_record.specification["task"]
    return {file.name: file.stat().st_mtime_ns for file in sorted(Path(task["folder"]).iterdir())}


@pytest.mark.slow
def test_fit_launches_an_ordinary_study(make, tmp_path):
    search = make(name="reviews", budget="0.4%", storage=f"sqlite:///{tmp_path / 'own.db'}")
    assert search.fit(TRAIN, VALIDATION) is search
    assert search.study_ == deltaspace.open_study("reviews", search.storage)
    assert search.best_ == search.study_.best
    assert search.study_.verify() == []
    recorded = search.best_.study_record.specification
    task = recorded["task"]
    assert (task["kind"], task["text"], task["label"]) == ("classification", ["review"], "verdict")
    assert (recorded["budget"], recorded["trials"], recorded["training"]["steps"]) == ("0.4%", 3, 4)
    assert Path(task["folder"]).parent == Path.cwd() / "deltaspace-data"
    assert (search.budget, search.trials, search.overrides, search.label) == ("0.4%", 3, OVERRIDES, None)


@pytest.mark.slow
def test_predictions_are_those_of_the_exported_best_trial(make):
    search = make().fit(TRAIN, VALIDATION)
    search.study_.trial(search.best_.number).export("winner")
    expected = deltaspace.predict("winner", TEXTS)
    assert_frame_equal(search.predict(TEXTS), expected)
    assert_frame_equal(search.predict(pandas.Series(TEXTS)), expected)
    assert_frame_equal(search.predict(datasets.Dataset.from_dict({"review": TEXTS})["review"]), expected)
    assert list(expected.columns) == ["text", "prediction", "probability"]
    assert set(expected["prediction"]) <= set(WORDS)
    assert search.predict(TEXTS[0]).shape == (1, 3)


@pytest.mark.slow
def test_second_fit_continues_the_study_with_frames_or_datasets(make):
    first = make().fit(TRAIN, VALIDATION)
    before, tables = first.study_.trials, saved_tables(first.study_)
    second = make().fit(datasets.Dataset.from_pandas(TRAIN), datasets.Dataset.from_pandas(VALIDATION))
    assert second.study_ == first.study_
    assert_frame_equal(second.study_.trials, before)
    assert saved_tables(second.study_) == tables
    assert [*tables] == ["train.parquet", "validation.parquet"]


@pytest.mark.slow
def test_study_continues_with_more_trials_with_or_without_the_tables(make):
    before = make(name="more", trials=1).fit(TRAIN, VALIDATION).best_
    study = make(name="more", trials=2).fit({"train": TRAIN, "validation": VALIDATION}).study_
    assert [trial.record for trial in study][:1] == [before.record]
    study = deltaspace.open_study("more").launch(trials=3, progress=False)
    assert [trial.state for trial in study] == ["complete"] * 3
    assert study.verify() == []


@pytest.mark.slow
def test_other_rows_or_settings_leave_the_study_unchanged(make):
    search = make().fit(TRAIN, VALIDATION)
    before = search.predict(TEXTS)
    for other, tables, key in (
        ({}, (TRAIN.iloc[:40], VALIDATION), "task.folder"),
        ({}, (TRAIN,), "task.folder"),
        ({"budget": "1%"}, (TRAIN, VALIDATION), "budget"),
    ):
        with pytest.raises(StudyChangedError, match=rf"'search' exists \(3 trials\) with other settings.*\n  {key}: "):
            make(**other).fit(*tables)
    assert_frame_equal(search.predict(TEXTS), before)
    assert search.study_.verify() == []
    renamed = [table.rename(columns={"review": "text"}) for table in (TRAIN, VALIDATION)]
    assert len(make(name="other", trials=1).fit(*renamed).study_) == 1


@pytest.mark.slow
def test_columns_and_kind_may_be_given(make):
    frame = TRAIN.assign(stars=[n % 5 for n in range(60)])
    task = (
        make(name="stars", kind="regression", label="stars", trials=1)
        .fit(frame)
        .best_.study_record.specification["task"]
    )
    assert (task["kind"], task["label"], task["metric"]) == ("regression", "stars", "pearson")


def test_prediction_requires_a_fit_and_texts(make):
    search = make()
    message = r"^search must be fitted before it predicts; got no study\. Call fit first\.$"
    with pytest.raises(InvalidRequestError, match=message):
        search.predict(TEXTS)
    assert not hasattr(search, "best_")
    assert not hasattr(search, "study_")
    search.study_ = deltaspace.Study(name="search", storage="sqlite:///none.db")
    for table in (VALIDATION, datasets.Dataset.from_pandas(VALIDATION)):
        with pytest.raises(
            InvalidRequestError, match=rf"^texts must be .* of texts; got {type(table).__name__}\. Give one col"
        ):
            search.predict(table)


@pytest.mark.parametrize(
    ("given", "tables", "error", "message"),
    [
        ({}, ([1, 2],), InvalidRequestError, r"data must be a pandas frame, a datasets\.Dataset, .*; got list\."),
        ({}, (TRAIN, TRAIN["review"]), InvalidRequestError, r"data must be .*; got DataFrame, Series\."),
        ({}, (TRAIN[["review"]],), RunnerError, r"a task needs a text and a label, .* are review: text\. .*"),
        ({}, (TRAIN, VALIDATION[["review"]]), RunnerError, r"split 'validation' must have a column 'verdict'; .*"),
        ({"label": "stars"}, (TRAIN,), RunnerError, r"no column 'stars'; there are: review, verdict\."),
        ({"trials": 0}, (TRAIN,), SpecificationError, r".* 1 problem:\ntrials: must be at least 1; got 0"),
    ],
)
def test_wrong_input_is_refused_in_a_line(make, tmp_path, given, tables, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        make(storage=f"sqlite:///{tmp_path / 'wrong.db'}", **given).fit(*tables)
    assert not (tmp_path / "wrong.db").exists()
