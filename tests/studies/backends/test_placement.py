"""How a cluster is divided: by nodes and GPUs, and never a share that no node has."""

import pytest

from studies.backends.placement import ClusterNode, Share, no_gpu, share_of
from studies.errors import LaunchError
from studies.study_file.sections import Fleet

KINDS = frozenset({"H200"})


def node(cpus: int, gpus: int = 0, kinds: frozenset[str] = frozenset()) -> ClusterNode:
    return ClusterNode(key=f"{cpus}/{gpus}", address="10.0.0.1", cpus=cpus, gpus=gpus, accelerators=kinds)


def share(nodes: list[ClusterNode], *, is_own: bool = False, **options: object) -> Share:
    worker = {key: options.pop(key) for key in ("gpus", "cpus", "shards", "accelerator") if key in options}
    return share_of(nodes, Fleet(worker=worker, **options), is_own=is_own)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("nodes", "options", "cores", "gpus", "room"),
    [
        ([node(8)], {}, 1, 0, 8),
        ([node(8)], {"workers": 3}, 2, 0, 4),
        ([node(2)], {"workers": 5}, 1, 0, 2),
        ([node(2), node(2)], {"workers": 3}, 1, 0, 4),  # all cores // workers would fit, too
        ([node(3), node(1)], {"workers": 2}, 1, 0, 4),  # all cores // workers would not: 2 on the second
        ([node(5), node(5)], {"workers": 3}, 2, 0, 4),  # all cores // workers would not: 3 fits once on each
        ([node(16), node(8, 2)], {}, 4, 1, 2),  # the head has no GPU, and its cores are no GPU worker's
        ([node(64, 8), node(8, 2)], {}, 4, 1, 10),
        ([node(4, 8)], {}, 0, 1, 8),  # fewer cores than GPUs
        ([node(8)], {"gpus": 1}, 1, 1, 0),  # nodes with GPUs are to come
        ([node(8, 1)], {"gpus": 0}, 1, 0, 8),
        ([node(8, 1), node(8, 1, KINDS)], {"accelerator": "H200"}, 8, 1, 1),
        ([node(8, 1)], {"workers": 64, "gpus": 1}, 8, 1, 1),  # 63 more are asked for
        ([node(8)], {"cpus": 3}, 3, 0, 2),
        ([node(16), node(8, 5)], {"shards": 2}, 4, 2, 2),  # the fifth GPU has none to share with
        ([node(8)], {"shards": 4}, 4, 0, 2),
        ([node(1)], {"shards": 4}, 1, 0, 1),
        ([node(8)], {"shards": 4, "gpus": 1}, 1, 4, 0),  # a node with as many is to come
        ([node(8, 4)], {"shards": 4, "gpus": 0, "workers": 1}, 8, 0, 1),
    ],
)
def test_every_worker_has_a_share_that_its_node_can_give(nodes, options, cores, gpus, room):
    found = share(nodes, **options)
    assert (found.cores, found.gpus, found.room(nodes)) == (cores, gpus, room)


def test_more_workers_than_gpus_are_refused_unless_gpus_may_come():
    with pytest.raises(LaunchError, match="got 3 workers and 2 GPUs"):
        share([node(8, 2)], workers=3)
    with pytest.raises(LaunchError, match="got 3 workers and 2 GPUs"):
        share([node(8, 2)], workers=3, gpus=1, is_own=True)
    assert share([node(8, 2)], workers=3, gpus=1).gpus == 1


def test_oversized_shards_are_refused_unless_a_node_may_join():
    with pytest.raises(LaunchError, match=r"at most the GPUs of one node; got 4 shards and 2 GPUs\. Use"):
        share([node(8, 2), node(8, 2)], shards=4)
    with pytest.raises(
        LaunchError, match="every worker needs 2 GPUs of its own, on one node; got 3 workers and 5 GPUs"
    ):
        share([node(8, 5)], shards=2, workers=3)
    assert share([node(8, 2)], shards=4, gpus=1).words == "4 GPUs and 1 core"


def test_ray_bundle_names_the_gpu_kind_and_no_zeros():
    assert Share(cores=0, gpus=1, accelerator="H200").bundle == {"GPU": 1.0, "accelerator_type:H200": 0.001}
    assert Share(cores=2, gpus=0).bundle == {"CPU": 2.0}
    assert (Share(cores=1, gpus=1).words, Share(cores=2, gpus=0).words) == ("a GPU and 1 core", "2 cores")


def test_cluster_without_gpus_is_named_while_workers_wait_for_one():
    message = "waiting for a GPU: this Ray cluster has none; fleet.worker.gpus=auto uses the CPU"
    assert no_gpu(1, [node(8), node(4)]) == no_gpu(1, []) == message
    assert no_gpu(0, [node(8)]) == no_gpu(1, [node(8), node(4, 1)]) == ""


def test_refusal_without_any_gpu_names_the_setting_that_needs_none():
    with pytest.raises(LaunchError, match=r"got 1 workers and 0 GPUs. fleet.worker.gpus=auto uses the CPU"):
        share([node(8)], is_own=True, workers=1, gpus=1)
