"""Clusters of several nodes: one that dies, is drained, is added or has a disk of its own costs no trial.

Every node is a ``ray start`` of its own, and dies as a machine dies: all of its processes at once.
"""

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.cluster import Cluster, has_own_disks, is_under_way
from support.killed_study import PATIENCE_SECONDS, LaunchedStudy, check_at_rest, finish, wait_for
from support.ledger_query import query_study

import deltaspace
from studies.backends.resource_probe import cluster_facts
from studies.ledger.ledger import Ledger
from studies.records import AttemptRecord, EventRecord

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a head without a GPU, which is the launching machine; tests add other nodes."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def new_study(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., LaunchedStudy]]:
    """Build studies that are launched on the cluster, with a file ``brake`` beside their folder."""
    for name, value in cluster.settings.items():
        monkeypatch.setenv(name, value)
    studies: list[LaunchedStudy] = []

    def make(trials: int, **options: str) -> LaunchedStudy:
        folder = tmp_path / "artefacts"
        folder.mkdir()
        given = {"lease": "20", "brake": str(tmp_path / "brake"), **options}
        studies.append(LaunchedStudy(f"sqlite:///{tmp_path / 'ledger.db'}", folder, "ray", trials, 0.01, given))
        return studies[-1]

    yield make
    for study in studies:
        study.stop()


def recorded(study: LaunchedStudy) -> tuple[list[AttemptRecord], list[EventRecord]]:
    """Return the attempts and events of a study."""
    return query_study(study.url, "trivial", lambda ledger, own: (ledger.attempts(own.id), ledger.events(own.id)))


def test_trials_of_a_dead_node_continue_and_a_new_node_is_used(cluster, new_study, tmp_path):
    study = new_study(16, workers="auto")
    (tmp_path / "brake").touch()
    own_disk = has_own_disks()
    doomed = cluster.add(hidden=study.folder if own_disk else None)
    process = study.launch()
    wait_for(lambda: is_under_way(study, 2), process, study)
    doomed.kill()
    wait_for(lambda: any("machine was lost" in event.text for event in recorded(study)[1]), process, study)
    new = cluster.add()
    wait_for(lambda: new.workers(), process, study)
    (tmp_path / "brake").unlink()
    finish(study, process)
    check_at_rest(study)
    attempts, events = recorded(study)
    lost = [event.trial for event in events if "its machine was lost" in event.text]
    assert lost
    with Ledger.open(study.url, read_only=True) as ledger:
        for trial in lost:  # what was measured before was not measured again: it went on from a snapshot
            readings = ledger.readings(ledger.study("trivial").id, trial)
            assert len({reading.attempt for reading in readings}) > 1
    assert any("cannot access" in event.text for event in events) == own_disk
    assert len({attempt.worker for attempt in attempts}) >= 3


def test_a_node_that_is_drained_lays_its_trials_aside(cluster, new_study, tmp_path):
    study = new_study(10, workers="auto")
    (tmp_path / "brake").touch()
    leaving = cluster.any_other()
    process = study.launch()
    wait_for(lambda: is_under_way(study, 2), process, study)
    cluster.drain(leaving)
    wait_for(lambda: not leaving.workers(), process, study)
    (tmp_path / "brake").unlink()
    finish(study, process)
    leaving.kill()
    check_at_rest(study)
    assert [event.text for event in recorded(study)[1] if event.kind == "lost"]
    assert all("laid aside" in event.text for event in recorded(study)[1] if event.kind == "lost")


@pytest.mark.postgres
def test_weights_reach_the_launch_from_nodes_with_own_disks(cluster, tmp_path, monkeypatch, postgres_url):
    for name, value in cluster.settings.items():
        monkeypatch.setenv(name, value)
    for node in cluster.nodes[1:]:
        node.kill()
    folder, home = tmp_path / "artefacts", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    own_disk = has_own_disks()
    # the head has one core: all trials are trained on the other node, however long it loads
    other = cluster.add(cpus=2, hidden=folder if own_disk else None, HOME=str(home))
    small = {"trials": 4, "training.steps": 4, "training.batch_size": 4, "pruning.first_rung_steps": 4}
    some = {"task.examples.train": 64, "task.examples.validation": 32, "search.replicates": 0, "search.published": []}
    there = {"fleet.workers": 1, "fleet.worker.cpus": 2, "fleet.pack": 2, "fleet.artefacts": str(folder)}
    settings = {**small, **some, **there}
    study = deltaspace.launch("docstrings", storage=postgres_url, overrides=settings, progress=False)
    other.kill()
    assert study.verify() == [], "every file is here, and whole"
    with Ledger.open(postgres_url, read_only=True) as ledger:
        key = ledger.study(study.name).id
        events, artefacts = ledger.events(key), ledger.artefacts(key)
    assert any("cannot access" in event.text for event in events) == own_disk
    assert sorted(one.trial for one in artefacts if one.kind == "delta") == [0, 1, 2, 3]
    study.export(tmp_path / "trial-3", 3)


def test_a_check_before_a_launch_asks_every_node(cluster, new_study, tmp_path):
    cluster.any_other()
    new_study(1)  # a launch's environment
    facts = cluster_facts(cluster.address, folder=tmp_path / "to come", backbone=str(tmp_path))
    assert facts.warnings == ()
    assert len(facts.nodes) == sum(node.process.poll() is None for node in cluster.nodes)
    assert all(one.node.cpus == 1 for one in facts.nodes)


def test_node_with_another_backbone_ends_launch_in_one_line(cluster, new_study, tmp_path):
    study = new_study(6, workers="auto")
    (tmp_path / "brake").touch()
    other = cluster.add(TRIVIAL_BACKBONE="another")
    process = study.launch()
    assert process.wait(PATIENCE_SECONDS) == 1
    other.kill()
    (message,) = [line for line in study.log().splitlines() if "LaunchError: every node must have the same" in line]
    assert re.search(
        r"the same backbone; got (trivial on node \S+ and another|another on node \S+ and trivial) on node \S+\.",
        message,
    )


def test_workers_are_where_the_gpus_are(cluster, new_study):
    study = new_study(4, workers="auto")
    has_gpu = cluster.add(gpus=1)
    process = study.launch()
    wait_for(lambda: has_gpu.workers(), process, study)
    assert cluster.nodes[0].workers() == []
    finish(study, process)
    check_at_rest(study)
    has_gpu.kill()


def test_ctrl_c_ends_unstarted_fleet_and_wrong_token_is_one_line(cluster, new_study, tmp_path, monkeypatch):
    study = new_study(6, gpus="1")
    waiting = study.launch()
    other_token = tmp_path / "other"
    other_token.write_text("0" * 64)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(other_token))
    stranger = LaunchedStudy(f"sqlite:///{tmp_path / 'other.db'}", tmp_path / "others" / "artefacts", "ray", 6)
    stranger.folder.mkdir(parents=True)
    refused = stranger.launch()
    try:
        wait_for(lambda: "0 ended, 0 running" in study.log(), waiting, study)
        os.kill(waiting.pid, signal.SIGINT)
        assert waiting.wait(PATIENCE_SECONDS) == 0
        assert "False: stopped after 0 of 6 trials: interrupted by Ctrl-C" in study.log()
        assert refused.wait(PATIENCE_SECONDS) == 1
        last_line = stranger.log().splitlines()[-1]
        assert last_line.startswith(
            f"studies.errors.LaunchError: cannot run the workers: the cluster at {cluster.address}"
        )
        assert "have its token" in last_line
    finally:
        stranger.stop()
