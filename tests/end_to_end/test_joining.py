"""Launches that share a study, each a process, killed in turn: nothing is lost, nothing is there twice."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.cluster import Cluster
from support.killed_study import PATIENCE_SECONDS, Launch, Study, check_at_rest, wait_for, wait_for_ends
from support.storages import on_one_storage

from studies.store.ledger import Ledger

pytestmark = pytest.mark.slow

KILLS = 4


@pytest.fixture
def new_study(tmp_path: Path) -> Iterator[Callable[..., Study]]:
    studies: list[Study] = []

    def make(url: str, backend: str, trials: int, **options: str) -> Study:
        brake = tmp_path / "brake"
        brake.touch()
        given = {"lease": "10", "if_running": "join", "brake": str(brake), **options}
        studies.append(Study(url, tmp_path / "artefacts", backend, trials, 0.0, given))
        return studies[-1]

    yield make
    for study in studies:
        study.stop()


def joined(study: Study) -> set[str]:
    """The launches that have worked for another, by what stands before the names of their workers."""
    if not study.recorded():
        return set()
    with Ledger.open(study.url, read_only=True) as ledger:
        workers = {attempt.worker for attempt in ledger.attempts(ledger.study("trivial").id)}
    return {worker.rpartition(":")[0] for worker in workers if ":" in worker}


def keepers(study: Study) -> int:
    with Ledger.open(study.url, read_only=True) as ledger:
        return len(ledger.keepers(ledger.study("trivial").id))


def runs_it(study: Study) -> Launch:
    """The launch that keeps the study; once there is one."""

    def found() -> list[Launch]:
        with Ledger.open(study.url, read_only=True) as ledger:
            hold = ledger.holder(ledger.study("trivial").id)
        process = "" if hold is None else hold.holder.split(":")[1]
        return [launch for launch in study.launches if str(launch.pid) == process and launch.poll() is None]

    wait_for(found, next(launch for launch in study.launches if launch.poll() is None), study)
    return found()[0]


def come_to_an_end(study: Study) -> None:
    """Every launch that is left ends, and says that the study is finished."""
    for number, launch in enumerate(study.launches):
        if launch.wait(PATIENCE_SECONDS) == 0:
            assert "True: finished: all" in study.said(number)
    assert study.launches[-1].poll() == 0
    check_at_rest(study)


@on_one_storage
def test_launches_that_share_a_study_are_killed_in_turn(new_study, storage_url):
    study = new_study(storage_url, "inline", 160, braked="0.15")
    moments = random.Random(KILLS)
    first = study.launch()
    wait_for(study.recorded, first, study)
    others = [study.launch() for _ in range(2)]
    wait_for(lambda: joined(study), first, study)
    for kill in range(KILLS):
        running = [launch for launch in study.launches if launch.poll() is None]
        # the keeper and one that joined, in turn
        victim = runs_it(study) if kill % 2 == 0 else moments.choice([one for one in running if one != runs_it(study)])
        victim.kill()
        victim.wait()
        others.append(study.launch())
        wait_for_ends(study, others[-1])
    study.release()
    come_to_an_end(study)
    assert keepers(study) >= 1 + KILLS // 2


def test_two_launches_share_a_study_on_one_cluster_and_the_second_goes_on_alone(new_study, tmp_path, monkeypatch):
    cluster = Cluster(tmp_path)
    try:
        cluster.start()
        cluster.add()
        for name, value in cluster.settings.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "artefacts").mkdir()
        url = f"sqlite:///{tmp_path / 'ledger.db'}"
        study = new_study(url, "ray", 120, workers="1", lease="20", braked="0.2")
        first = study.launch()
        wait_for_ends(study, first)
        second = study.launch()
        wait_for(lambda: joined(study), second, study)
        first.kill()
        first.wait()
        wait_for(lambda: keepers(study) == 2, second, study)
        third = study.launch()
        wait_for(lambda: len(joined(study)) == 2, third, study)
        study.release()
        come_to_an_end(study)
    finally:
        cluster.stop()
