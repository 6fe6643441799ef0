"""Warm start from earlier studies: it is read once, at the start, and is part of the study."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from support.ledger_query import query_study
from support.small_study import small_study
from support.trivial_runner import TrivialFactory

from studies.analysis.summaries import summary_of
from studies.errors import LaunchError, SpecificationError, StudyChangedError, UnknownStudyError
from studies.launch.launch import launch
from studies.records import TrialRecord
from studies.search.warm_start import WarmStart
from studies.study_file import Specification
from studies.study_file.recorded_specification import recorded_specification

LEARNING = {"learn_from": "auto"}
SUPPORT = Path(__file__).parents[2]


def specification(folder: Path, name: str, trials: int, **search: object) -> Specification:
    return small_study(folder, trials=trials, name=name, search=search, fleet={"pack": 1, "artefacts": str(folder)})


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database with one study that has ended."""
    folder = tmp_path_factory.mktemp("earlier")
    file = folder / "ledger.db"
    begin(file, specification(folder, "earlier", 24))
    with sqlite3.connect(file) as link:
        link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file


def begin(file: Path, study: Specification) -> list[str]:
    """Launch the study and return its announcements."""
    announced: list[str] = []
    launch(study, storage_url=f"sqlite:///{file}", factory=TrivialFactory(), announce=announced.extend)
    return announced


@pytest.fixture
def database(earlier: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(earlier, tmp_path / "ledger.db"))


def read(file: Path, name: str) -> tuple[list[TrialRecord], WarmStart | None]:
    held = query_study(f"sqlite:///{file}", name, lambda ledger, study: (ledger.trials(study.id), study))
    return held[0], recorded_specification(held[1]).lessons


def change(file: Path, values: str) -> None:
    with sqlite3.connect(file) as link:
        link.execute(f"UPDATE studies SET {values}")


def tried(file: Path, name: str) -> list[str]:
    return [trial.fingerprint for trial in read(file, name)[0]]


@pytest.mark.slow
def test_warm_start_trials_replace_the_weakest_initial_trials(database, tmp_path):
    announced = begin(database, specification(tmp_path, "later", 14, **LEARNING))
    assert announced[0].startswith("warm start from earlier: ")
    assert "in place of" in announced[0]
    trials, warm_start = read(database, "later")
    assert warm_start.sources == ("earlier",)
    count = len(warm_start.starts)
    assert count >= 1
    assert [dict(trial.proposal) for trial in trials[:count]] == [dict(start.proposal) for start in warm_start.starts]
    before, _ = read(database, "earlier")
    assert [one.description for one in trials[:count]] == [before[one.trial].description for one in warm_start.starts]
    published = [trial.method for trial in trials if trial.origin == "published"]
    assert len(warm_start.replaced) == count
    assert not set(warm_start.replaced) & set(published[: 10 - count])
    assert "head_only" in published
    assert query_study(f"sqlite:///{database}", "later", summary_of).learned_from == ("earlier",)


@pytest.mark.slow
def test_continued_study_does_not_depend_on_its_source(database, tmp_path):
    """Test launches cut short at several trials, with a source that grows and disappears: the trials are the same."""
    whole = Path(shutil.copy(database, tmp_path / "whole.db"))
    begin(whole, specification(tmp_path, "later", 17, **LEARNING))
    for trials in (1, 4, 12):
        begin(database, specification(tmp_path, "later", trials, **LEARNING))
        begin(database, specification(tmp_path, "earlier", 24 + trials))
    change(database, "name = 'gone' WHERE name = 'earlier'")
    begin(database, specification(tmp_path, "later", 17, **LEARNING))
    assert tried(database, "later") == tried(whole, "later")
    assert read(database, "later")[1] == read(whole, "later")[1]
    # and one that is begun now learns something else
    begin(database, specification(tmp_path, "latest", 1, **LEARNING))
    assert read(database, "latest")[1].sources == ("gone", "later")


@pytest.mark.slow
def test_killed_launch_keeps_its_warm_start(database, tmp_path):
    """Test launches that continue after a kill, with trials still running."""
    whole = Path(shutil.copy(database, tmp_path / "whole.db"))
    begin(whole, specification(tmp_path, "later", 15, **LEARNING))
    script = (
        "import os, sys, pathlib; from support.trivial_runner import TrivialFactory;"
        "from test_warm_start import specification, LEARNING; from studies.launch.launch import launch;"
        "study = specification(pathlib.Path(sys.argv[2]), 'later', 15, **LEARNING);"
        "stop = lambda progress: progress.ended >= int(sys.argv[3]) and os._exit(9);"
        "launch(study, storage_url=sys.argv[1], factory=TrivialFactory(step_seconds=0.02), observer=stop)"
    )
    path = os.pathsep.join([str(SUPPORT), str(Path(__file__).parent), *sys.path])
    for after in ("0", "3"):
        command = [sys.executable, "-c", script, f"sqlite:///{database}", str(tmp_path), after]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "7"}, check=False)
        assert done.returncode == 9
    begin(database, specification(tmp_path, "later", 15, **LEARNING))
    assert tried(database, "later") == tried(whole, "later")


def test_another_word_is_another_study(database, tmp_path):
    begin(database, specification(tmp_path, "later", 2, **LEARNING))
    begin(database, specification(tmp_path, "later", 3, **LEARNING))
    assert len(tried(database, "later")) == 3
    message = r"(?s)Study 'later' exists \(3 trials\) with other settings, below\. Delete it.*"
    with pytest.raises(StudyChangedError, match=rf'{message}\n  search\.learn_from: "auto" -> "none"'):
        begin(database, specification(tmp_path, "later", 4, learn_from="none"))
    with pytest.raises(StudyChangedError, match=r'search.learn_from: "none" -> \["later"\]'):
        begin(database, specification(tmp_path, "earlier", 30, learn_from=["later"]))


@pytest.mark.slow
def test_empty_warm_start_equals_no_warm_start(tmp_path):
    for file, search in (("auto.db", LEARNING), ("none.db", {})):
        begin(tmp_path / file, specification(tmp_path, "first", 14, **search))
    assert tried(tmp_path / "auto.db", "first") == tried(tmp_path / "none.db", "first")
    assert read(tmp_path / "auto.db", "first")[1] == WarmStart()
    assert read(tmp_path / "none.db", "first")[1] is None


def test_methods_that_are_listed_one_by_one_all_stay(database, tmp_path):
    listed = ["bitfit", "lora_qv"]
    begin(database, specification(tmp_path, "later", 6, published=listed, learn_from="earlier"))
    trials, warm_start = read(database, "later")
    assert warm_start.replaced == ()
    count = len(warm_start.starts)
    assert [trial.method for trial in trials[: count + 2]] == [None] * count + listed


def test_other_families_and_metrics_are_no_automatic_sources(database, tmp_path):
    change(database, "metric = 'bleu'")
    begin(database, specification(tmp_path, "later", 1, **LEARNING))
    assert read(database, "later")[1].sources == ()
    change(database, "metric = 'f1', backbone = '/no/such/folder'")
    begin(database, specification(tmp_path, "latest", 1, **LEARNING))
    assert read(database, "latest")[1].sources == ()
    begin(database, specification(tmp_path, "last", 1, learn_from=["earlier"]))
    assert read(database, "last")[1].sources == ("earlier",)


def test_unusable_source_is_refused_before_writing(database, tmp_path):
    begin(database, specification(tmp_path, "short", 3))
    with pytest.raises(UnknownStudyError, match="no study 'earlyer'"):
        begin(database, specification(tmp_path, "later", 2, learn_from=["earlyer"]))
    with pytest.raises(LaunchError, match="at least 12 measured trials; got short: it has fewer"):
        begin(database, specification(tmp_path, "later", 2, learn_from=["earlier", "short"]))
    with pytest.raises(UnknownStudyError, match="it contains: earlier, short"):
        tried(database, "later")


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"learn_from": []}, "search.learn_from: must be auto, none, or a list of the names of earlier studies"),
        ({"learn_from": ["a", "a"]}, "search.learn_from: must not name anything twice"),
        ({"learn_from": 3}, "search.learn_from: must be auto, none"),
        ({"learn_from": "auto", "sampler": "tpe"}, "must learn from no earlier study unless the sampler is factored"),
    ],
)
def test_words_that_cannot_be_are_refused_on_one_line(tmp_path, search, message):
    with pytest.raises(SpecificationError) as refused:
        specification(tmp_path, "later", 2, **search)
    (line,) = str(refused.value).splitlines()[1:]
    assert message in line
