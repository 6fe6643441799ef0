"""Checks of a study before it is launched: data, noise, speed, size and machine. Nothing is recorded."""

from dataclasses import dataclass

from studies.backends.resource_probe import ClusterFacts, cluster_facts
from studies.backends.tune import cluster_address
from studies.launch.preparation import initial_design_of, prepared, space_of
from studies.launch_warnings import launch_warnings
from studies.resource_estimates.data import DataFacts, data_facts
from studies.resource_estimates.machine import Machine, check_gpu, gpu_warning, on_cluster, this_machine
from studies.resource_estimates.noise import noise_warning
from studies.resource_estimates.speed import Speed, measured_speed
from studies.study_file import Specification
from studies.study_file.recorded_specification import BegunSpecification
from trial_runner.backbones import load_tokenizer
from trial_runner.files import expanded

_NUMBER_BYTES = 4
_KEPT_NUMBERS = 3
"""Numbers stored per trained parameter, in the file of any trial: the parameter and two moments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Expected cost of a study.

    Attributes:
        trial_seconds: Seconds of a full trial in its pack.
        most_seconds: Seconds of the study if no trial is pruned, without the start of the workers.
        measuring_share: Share of evaluation in these seconds.
        disk_bytes: Size of the files of all trials, each as large as the budget allows.
    """

    trial_seconds: float
    most_seconds: float
    measuring_share: float
    disk_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of checking a study before its launch.

    Attributes:
        specification: The study file.
        speed: Measured speed of trials; None if no step was trained.
        forecast: Expected cost; None without a measured speed.
        budget: Largest number of stored parameters of a trial.
        plan: Warnings of a launch of the same study file.
        cluster: Nodes of the Ray cluster for the workers; None without a cluster.
    """

    specification: Specification
    data: DataFacts
    machine: Machine
    speed: Speed | None
    forecast: Forecast | None
    budget: int
    backbone_parameters: int
    plan: tuple[str, ...]
    cluster: ClusterFacts | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each problem that may spoil the study."""
        noise = noise_warning(self.data)
        nodes = () if self.cluster is None else self.cluster.warnings
        gpus = len(self.machine.gpus) if self.cluster is None else sum(one.node.gpus for one in self.cluster.nodes)
        lacking = gpu_warning(self.specification.fleet, gpus)
        return (*self.data.warnings, *filter(None, (noise,)), *self.plan, *nodes, *filter(None, (lacking,)))


def check(specification: Specification, *, takes_steps: bool = True) -> Check:
    """Check a study before its launch.

    Args:
        specification: The study file.
        takes_steps: Whether to train some trials for a few seconds to measure time and memory. A sharded backbone is
            never trained here, since it may be too large for one process.

    Raises:
        RunnerError: If the backbone or the task cannot be loaded.
        SearchSpaceError: If nothing fits the budget, or the backbone's family is not supported.
        LaunchError: If this machine is not part of the Ray cluster, or a process that needs a GPU has none.
    """
    check_gpu(specification.fleet)
    space = space_of(specification)
    task = prepared(specification)
    cluster = _cluster(specification)
    machine = this_machine(specification.fleet)
    if cluster is not None:
        machine = on_cluster(machine, specification.fleet, cluster)
    takes_steps = takes_steps and specification.fleet.worker.shards == 1
    speed = measured_speed(specification, task, space, machine) if takes_steps else None
    expected = None
    if speed is not None:
        parameters = space.budget + len(task.labels) * (space.shape.width + 1)
        examples = len(task.splits["validation"])
        expected = forecast(specification, speed, machine.workers, examples=examples, parameters=parameters)
    return Check(
        specification=specification,
        data=data_facts(task, load_tokenizer(specification.backbone.name)),
        machine=machine,
        speed=speed,
        forecast=expected,
        budget=space.budget,
        backbone_parameters=space.shape.parameters,
        plan=launch_warnings(
            space, initial_design_of(BegunSpecification.of(specification), task), trials=specification.trials
        ),
        cluster=cluster,
    )


def forecast(specification: Specification, speed: Speed, workers: int, *, examples: int, parameters: int) -> Forecast:
    """Return the cost of a study in which every trial runs to its end.

    Args:
        specification: The study file.
        speed: Measured speed of a trial.
        workers: Number of workers.
        examples: Number of examples of the validation split.
        parameters: Largest number of trained parameters of a trial, with its task head.
    """
    rungs, most = len(specification.rung_steps) - 1, specification.rung_examples
    at_rung = examples if most is None else min(examples, most)
    measuring = rungs * at_rung * speed.example_seconds + examples * speed.final_example_seconds
    trial = specification.training.steps * speed.step_seconds + measuring
    return Forecast(
        trial_seconds=trial,
        most_seconds=trial * specification.trials / workers,
        measuring_share=measuring / trial if trial else 0.0,
        disk_bytes=_NUMBER_BYTES * _KEPT_NUMBERS * parameters * specification.trials,
    )


def _cluster(specification: Specification) -> ClusterFacts | None:
    """Return the cluster that a launch would use; None if it starts its own Ray, or uses none."""
    address = None if specification.fleet.backend == "inline" else cluster_address()
    if address is None:
        return None
    backbone = expanded(specification.backbone.name)
    return cluster_facts(
        address, folder=specification.artefact_folder(), backbone=str(backbone.resolve()) if backbone.is_dir() else ""
    )
