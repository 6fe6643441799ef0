"""Machine of a launch: cores, GPUs, Ray, and their division among workers."""

import os
from dataclasses import dataclass, replace
from importlib.metadata import version

from studies.backends.backend import allowed_threads
from studies.backends.placement import NO_GPU, share_of
from studies.backends.resource_probe import ClusterFacts
from studies.backends.tune import ray_address
from studies.errors import LaunchError
from studies.study_file.sections import Fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Machine and its workers.

    Attributes:
        cores: Number of cores that this process may use.
        gpus: Name and memory in bytes of each GPU.
        workers: Number of workers of a launch.
        threads: Compute threads of a worker.
        fleet: Backend of the workers in words.
    """

    cores: int
    gpus: tuple[tuple[str, int], ...]
    workers: int
    threads: int
    fleet: str


def this_machine(fleet: Fleet) -> Machine:
    """Return the machine of a launch from here; a cluster is queried by the launch itself."""
    cores = len(os.sched_getaffinity(0))
    found = gpus()
    is_inline = fleet.backend == "inline"
    asked = None if fleet.workers == "auto" else int(fleet.workers)
    workers = 1 if is_inline else asked or max(1, (len(found) or cores) // fleet.worker.shards)
    address = ray_address()
    ray = f"Ray {version('ray')}, " + (f"the cluster at {address}" if address else "started by the launch")
    threads = max(1, cores // workers)
    return Machine(
        cores=cores,
        gpus=found,
        workers=workers,
        threads=min(threads, allowed_threads() or threads),
        fleet="one process" if is_inline else ray,
    )


def on_cluster(machine: Machine, fleet: Fleet, cluster: ClusterFacts) -> Machine:
    """Return the machine with the workers that a cluster holds.

    Raises:
        LaunchError: If there are fewer GPUs than workers.
    """
    nodes, options = [one.node for one in cluster.nodes if not one.problem], fleet
    share = share_of(nodes, options, is_own=False)
    return replace(
        machine,
        workers=max(1, share.room(nodes)) if options.workers == "auto" else int(options.workers),
        threads=max(1, min(share.cores, allowed_threads() or share.cores)),
    )


def gpus() -> tuple[tuple[str, int], ...]:
    """Return name and memory in bytes of each GPU."""
    import torch

    properties = (torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count()))
    return tuple((str(found.name), int(found.total_memory)) for found in properties)


def gpu_warning(fleet: Fleet, count: int | None = None) -> str:
    """Return a line where workers of a launch on Ray would wait for a GPU, of which there are none; else nothing.

    Args:
        count: Number of GPUs; None for those of this machine, or of a cluster that will be asked.
    """
    if fleet.backend == "inline" or fleet.worker.gpus != 1 or (count is None and ray_address()):
        return ""
    return "" if (len(gpus()) if count is None else count) else NO_GPU


def check_gpu(fleet: Fleet) -> None:
    """Check that the one process of a launch without Ray has the GPU that it was promised.

    Raises:
        LaunchError: If there is none.
    """
    if fleet.backend == "inline" and fleet.worker.gpus == 1 and not gpus():
        raise LaunchError(
            "fleet.worker.gpus must be auto or 0 where fleet.backend is inline and this machine has no GPU; got 1. "
            "auto uses the CPU."
        )
