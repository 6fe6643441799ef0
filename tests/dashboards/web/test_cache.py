"""Cached studies: they are read again only where they changed."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import reading

from dashboards.jsonable import jsonable
from dashboards.web.cache import study as watching
from dashboards.web.cache.background import Background
from dashboards.web.cache.storage import WatchedStorage
from dashboards.web.cache.study import COLUMNS, WatchedStudy
from studies.errors import StorageError, StudiesError, UnknownStudyError
from studies.ledger.ledger import Ledger
from studies.records import EventKind, EventRecord, NewStudy, TrialOutline, TrialRecord, TrialState


class Keeper:
    """Writes a study, as a launch does."""

    def __init__(self, url: str, trials: tuple[TrialRecord, ...]) -> None:
        self.trials = trials
        self.ledger = Ledger.open(url)
        new = NewStudy(
            name="watched",
            specification={"task": {"name": "docstrings"}, "trials": 6},
            backbone="embedded",
            backbone_parameters=1000,
            budget_parameters=600_000,
            metric="accuracy",
            seed=0,
        )
        self.key = self.ledger.create_study(new).id
        self.epoch = self.ledger.take_over(self.key, "keeper")

    def begin(self, count: int) -> None:
        self.ledger.add_trials(self.key, self.epoch, self.trials[:count], worker="w")

    def read(self, number: int, step: int, score: float) -> None:
        self.ledger.settle(self.key, self.epoch, number, 1, readings=[reading(number, step, score)])

    def end(self, number: int, score: float) -> None:
        done = {"readings": [reading(number, 99, score)], "state": TrialState.COMPLETE, "score": score}
        self.ledger.settle(self.key, self.epoch, number, 1, **done)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'watched.db'}"


@pytest.fixture
def keeper(url: str, sample_trials: tuple[TrialRecord, ...]) -> Iterator[Keeper]:
    found = Keeper(url, sample_trials)
    yield found
    found.ledger.close()


@pytest.fixture
def storage(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[WatchedStorage]:
    monkeypatch.setattr(watching, "MIN_SECONDS", 0.0)
    found = WatchedStorage(url)
    yield found
    found.close()


def changed(study: WatchedStudy, since: int) -> tuple[int, list[int]]:
    """Return the version, and the numbers of the trials that changed after an earlier one."""
    found: Any = study.rows(since)
    return found["version"], [row[0] for row in found["rows"]]


def test_only_changed_trials_are_sent(keeper, storage):
    study = storage.study(keeper.key)
    assert changed(study, 0) == (0, [])
    keeper.begin(4)
    assert changed(study, 0) == (1, [0, 1, 2, 3])
    assert changed(study, 1) == (1, [])
    keeper.read(2, 4, 0.5)
    assert changed(study, 1) == (2, [2])
    keeper.end(0, 0.7)
    keeper.end(2, 0.6)
    assert changed(study, 2) == (3, [0, 2])
    assert changed(study, 0) == (3, [0, 1, 2, 3])
    assert study.counts[TrialState.COMPLETE] == 2
    keeper.begin(6)
    assert changed(study, 3) == (4, [4, 5])
    assert list(study.trials) == [TrialOutline.of(trial) for trial in keeper.ledger.trials(keeper.key)]


def test_only_newer_annotations_are_read_again(keeper, storage, monkeypatch):
    keeper.begin(1)
    for text in ("first", "second"):
        keeper.ledger.annotate(keeper.key, EventKind.NOTE, text, 0)
    study = storage.study(keeper.key)
    study.refresh()
    read, original = [], Ledger.user_events_after

    def counted(ledger: Ledger, *asked: int) -> tuple[int, list[EventRecord]]:
        found = original(ledger, *asked)
        read.extend(one.text for one in found[1])
        return found

    monkeypatch.setattr(Ledger, "user_events_after", counted)
    keeper.ledger.annotate(keeper.key, EventKind.NOTE, "third", 0)
    study.refresh()
    study.refresh()
    assert read == ["third"]
    assert study.annotations()[0].note == "third"


def test_ended_trials_are_not_read_again(keeper, storage, monkeypatch):
    keeper.begin(3)
    keeper.end(1, 0.5)
    study = storage.study(keeper.key)
    study.refresh()
    computed: list[int] = []
    real = Ledger.trial
    monkeypatch.setattr(Ledger, "trial", lambda self, key, number: computed.append(number) or real(self, key, number))
    for _ in range(3):
        study.refresh()
    assert computed == []
    keeper.end(0, 0.6)
    study.refresh()
    assert computed == [0]


def test_looks_in_quick_succession_are_one(keeper, storage, monkeypatch):
    monkeypatch.setattr(watching, "MIN_SECONDS", 1000.0)
    study = storage.study(keeper.key)
    assert study.refresh() == 0
    keeper.begin(1)
    assert study.refresh() == 0


def test_curves_follow_the_newest_reading(keeper, storage):
    keeper.begin(2)
    study = storage.study(keeper.key)
    assert study.curves([0, 1, 77]) == {0: [], 1: []}
    keeper.read(1, 4, 0.5)
    assert [one.score for one in study.curves([1])[1]] == [0.5]
    keeper.read(1, 8, 0.6)
    assert [one.score for one in study.curves([0, 1])[1]] == [0.5, 0.6]


def test_row_has_the_values_of_its_columns(keeper, storage):
    keeper.begin(1)
    keeper.end(0, 0.75)
    found: Any = jsonable(storage.study(keeper.key).rows(0))
    row = dict(zip(found["columns"], found["rows"][0], strict=True))
    trial = keeper.ledger.trial(keeper.key, 0)
    assert tuple(found["columns"]) == COLUMNS
    assert (row["number"], row["state"], row["score"]) == (0, "complete", 0.75)
    assert row["description"] == trial.description
    assert trial.attention is not None
    assert row["attention_form"] == trial.attention.form
    assert row["attention_learning_rate"] == trial.attention.learning_rate
    assert trial.ended_at is not None
    assert row["ended_at"] == round(trial.ended_at.timestamp())


def test_the_ranking_is_that_of_its_trials(keeper, storage):
    keeper.begin(3)
    keeper.end(0, 0.5)
    keeper.end(2, 0.8)
    study = storage.study(keeper.key)
    before = study.news()
    found: Any = study.ranking(waits=True)
    assert found.value["order"] == [2, 0]
    assert study.news() == {**before, "views": 1}


def test_a_storage_may_begin_to_exist_later(url, storage, request):
    with pytest.raises(StorageError, match="no database"):
        storage.studies()
    keeper: Keeper = request.getfixturevalue("keeper")
    assert [study.record.name for study in storage.studies()] == ["watched"]
    assert storage.named("watched") is storage.study(keeper.key)
    with pytest.raises(UnknownStudyError, match="no study 99"):
        storage.study(99)


def test_a_reader_never_keeps_a_writer_waiting(keeper, storage):
    study = storage.study(keeper.key)
    keeper.begin(6)
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            study.refresh()

    with ThreadPoolExecutor(4) as readers:
        looks = [readers.submit(look) for _ in range(4)]
        for step in range(1, 30):
            keeper.read(step % 6, step, 0.5)
        stop.set()
        assert [one.result() for one in looks] == [None] * 4
    study.refresh()
    assert list(study.trials) == [TrialOutline.of(trial) for trial in keeper.ledger.trials(keeper.key)]


class Slow:
    """Work that waits until it is let go, and counts."""

    def __init__(self) -> None:
        self.times = 0
        self.go = threading.Event()

    def __call__(self) -> int:
        self.go.wait(30)
        self.times += 1
        return self.times


def test_slow_values_are_computed_once_per_state():
    with ThreadPoolExecutor(1) as executor:
        background = Background(executor, (StudiesError,))
        work = Slow()
        assert background.ask("a", work) is None
        assert background.ask("a", work) is None
        work.go.set()
        executor.submit(lambda: None).result()
        found = background.ask("a", work)
        assert found is not None
        assert (found.value, found.state, found.number, work.times) == (1, "a", 1, 1)
        for _ in range(2):
            found = background.ask("b", work, waits=True)
            assert found is not None
            assert found.value == 2


def test_background_work_rests_and_keeps_its_last_result(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("dashboards.web.cache.background.time.monotonic", lambda: clock[0])

    def work() -> float:
        clock[0] += 2.0
        return clock[0]

    with ThreadPoolExecutor(1) as executor:
        background = Background(executor, (StudiesError,))
        background.ask("a", work, waits=True)
        for at, expected in ((3.0, 2.0), (19.9, 2.0), (20.0, 22.0)):
            clock[0] = at
            background.ask("b", work)
            executor.submit(lambda: None).result()
            found = background.newest
            assert found is not None
            assert found.value == expected


def test_an_error_for_the_user_is_an_answer():
    def work() -> int:
        raise StudiesError("too few trials.")

    with ThreadPoolExecutor(1) as executor:
        found = Background(executor, (StudiesError,)).ask("a", work, waits=True)
    assert found is not None
    assert (found.value, found.problem) == (None, "too few trials.")


def test_records_are_those_of_the_newest_keeper(keeper, storage):
    assert storage.studies()[0].record.epoch == 1
    keeper.ledger.take_over(keeper.key, "another")
    assert storage.studies()[0].record == replace(keeper.ledger.study("watched"))
    assert storage.study(keeper.key).record.epoch == 2
