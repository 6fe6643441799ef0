"""Warnings about a cluster before a launch: every node that lacks a feature of this machine."""

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray

from studies.backends import resource_probe
from studies.backends.placement import ClusterNode
from studies.backends.resource_probe import (
    ClusterFacts,
    NodeFacts,
    cluster_facts,
    hub_settings,
    inspect_node,
    setting_differences,
)
from studies.backends.trial_files import FolderMark
from studies.backends.tune_worker import Home, node_description
from studies.errors import LaunchError
from studies.resource_estimates.machine import Machine, on_cluster
from studies.study_file.sections import Fleet

HEAD = ClusterNode(key="a", address="10.0.0.1", cpus=8, gpus=0)
WHOLE = NodeFacts(node=HEAD, release="1.0", sees_folder=True, has_backbone=True, settings={"HF_HOME": "/hf"})
WITH_GPUS = replace(
    WHOLE, node=ClusterNode(key="b", address="10.0.0.2", cpus=16, gpus=4, accelerators=frozenset({"H200"}))
)


def cluster(*nodes: NodeFacts) -> ClusterFacts:
    return ClusterFacts(
        address="10.0.0.1:6379", folder=Path("/shared"), release="1.0", settings={"HF_HOME": "/hf"}, nodes=nodes
    )


def test_equal_nodes_have_no_warnings():
    assert cluster(WHOLE, WITH_GPUS).warnings == ()


def test_warnings_name_every_node_and_its_differences():
    old = replace(WHOLE, release="0.9", has_backbone=False, settings={})
    far = replace(WITH_GPUS, sees_folder=False)
    broken = replace(WHOLE, node=replace(HEAD, address="10.0.0.3"), problem="ModuleNotFoundError: studies")
    assert cluster(old, far, broken).warnings == (
        "node 10.0.0.1 has deltaspace 0.9, this machine 1.0",
        "node 10.0.0.1 differs: HF_HOME is not set (/hf on the launching machine)",
        "node 10.0.0.1 does not have the backbone's folder",
        "node 10.0.0.2 does not see /shared: its snapshots go through this machine, more slowly",
        "node 10.0.0.3 cannot run workers: ModuleNotFoundError: studies",
    )


def test_workers_are_counted_as_a_launch_places_them(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    here = Machine(cores=2, gpus=(), workers=2, threads=1, fleet="Ray")
    found = on_cluster(here, Fleet(), cluster(WHOLE, WITH_GPUS))
    assert (found.workers, found.threads) == (4, 4)
    assert on_cluster(here, Fleet(worker={"gpus": 0}), cluster(WHOLE, replace(WITH_GPUS, problem="lost"))).workers == 8


def test_a_node_answers_for_its_folder_and_the_backbone(tmp_path):
    mark = FolderMark(folder=tmp_path)
    request = {"folder": str(tmp_path), "mark": mark.text, "backbone": str(tmp_path / "none")}
    assert not inspect_node(request)["sees_folder"]
    with mark.laid():
        answer = inspect_node(request)
    assert (answer["sees_folder"], answer["has_backbone"], answer["problem"]) == (True, False, "")
    assert inspect_node({**request, "backbone": ""})["has_backbone"]


@pytest.mark.parametrize(
    "outcome",
    [subprocess.TimeoutExpired("ray", 60), subprocess.CalledProcessError(1, "ray"), SimpleNamespace(stdout=b"?")],
)
def test_a_cluster_that_hangs_refuses_or_babbles_is_one_line(tmp_path, monkeypatch, outcome):
    def run(*given: object, **more: object) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(resource_probe.subprocess, "run", run)
    with pytest.raises(LaunchError, match=r"the cluster at 10\.0\.0\.1:6379 did not take this machine in") as ended:
        cluster_facts("10.0.0.1:6379", folder=tmp_path / "not" / "yet", backbone="")
    assert "\n" not in str(ended.value)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def bare(tmp_path, monkeypatch):
    for name in ("HF_HUB_CACHE", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_TOKEN", "HF_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    return tmp_path


def test_setting_of_one_side_alone_is_a_difference(bare, monkeypatch):
    here = hub_settings()
    assert list(setting_differences(here, here)) == []
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HF_HOME")
    assert list(setting_differences(hub_settings(), here)) == [
        f"HF_HOME is not set ({bare} on the launching machine)",
        "HF_HUB_OFFLINE is 1 (not set on the launching machine)",
    ]


@pytest.mark.parametrize("how", ["variable", "file"])
def test_hub_token_is_reported_without_its_value(bare, monkeypatch, how):
    before = hub_settings()
    if how == "file":
        (bare / "token").write_text("hf_secret")
    else:
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert "hf_secret" not in str(hub_settings())
    differences = list(setting_differences(before, hub_settings()))
    assert differences == ["a token of the hub is not set (there on the launching machine)"]


def test_error_on_another_node_names_it_and_its_differences(bare, monkeypatch):
    home = Home(keeper="k", namespace="n", node="a", mark=None)
    node = SimpleNamespace(get_node_id=lambda: "a")
    monkeypatch.setattr(ray, "get_runtime_context", lambda: node)
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "10.0.0.2")
    assert node_description(home) == ""
    node.get_node_id = lambda: "b"
    assert node_description(home) == " That was on node 10.0.0.2."
    monkeypatch.setenv("HF_HOME", "/own")
    description = node_description(home)
    assert description == f" That was on node 10.0.0.2, where HF_HOME is /own ({bare} on the launching machine)."
