"""Looks a study over before it is launched: data, noise, speed, size, machine; nothing is recorded."""

from dataclasses import dataclass
from pathlib import Path

from studies.backends.resource_probe import ClusterFacts, cluster_facts
from studies.backends.tune import cluster_address
from studies.launch.preparation import opening_of, prepared, space_of
from studies.launch_warnings import outlook
from studies.resource_estimates.data import DataFacts, data_facts
from studies.resource_estimates.duration import Forecast, Workload, forecast
from studies.resource_estimates.machine import Machine, on_cluster, this_machine
from studies.resource_estimates.noise import noise_warning_of
from studies.resource_estimates.speed import Speed, measured_speed
from studies.study_file import Specification
from studies.study_file.recorded_specification import BegunSpecification
from trial_runner.backbones import load_tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What is known of a study before it is launched.

    Attributes:
        speed: What trials take; None if no step was taken.
        forecast: The same of the study; None without.
        budget: Most stored parameters of a trial.
        workload: What the study has to do.
        plan: Lines on what will come to nothing, as a launch says them.
        cluster: The nodes that workers would be on; None without a cluster.
    """

    specification: Specification
    data: DataFacts
    machine: Machine
    speed: Speed | None
    forecast: Forecast | None
    budget: int
    backbone_parameters: int
    workload: Workload
    plan: tuple[str, ...]
    cluster: ClusterFacts | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may spoil the study, a line each; none if all is well."""
        noise = noise_warning_of(self.data)
        nodes = () if self.cluster is None else self.cluster.warnings
        return (*self.data.warnings, *((noise,) if noise else ()), *self.plan, *nodes)


def check(specification: Specification, *, takes_steps: bool = True) -> Check:
    """Look a study over.

    Args:
        specification: The study.
        takes_steps: Whether some trials are trained for a few seconds, which tells time and memory; none are of a
            backbone that is sharded, since it may be too large for one process.

    Raises:
        RunnerError: If the backbone or the task cannot be had.
        SearchSpaceError: If nothing fits the budget, or the backbone's family is not supported.
        LaunchError: If there is a cluster that does not take this machine in.
    """
    space = space_of(specification)
    task = prepared(specification)
    cluster = _cluster(specification)
    machine = this_machine(specification.fleet)
    if cluster is not None:
        machine = on_cluster(machine, specification.fleet, cluster)
    takes_steps = takes_steps and specification.fleet.worker.shards == 1
    speed = measured_speed(specification, task, space, machine) if takes_steps else None
    work = Workload(
        trials=specification.trials,
        steps=specification.training.steps,
        rungs=len(specification.rung_steps) - 1,
        examples=len(task.splits["validation"]),
        rung_examples=specification.rung_examples,
        workers=machine.workers,
        parameters=space.budget + len(task.labels) * (space.shape.width + 1),
    )
    return Check(
        specification=specification,
        data=data_facts(task, load_tokenizer(specification.backbone.name)),
        machine=machine,
        speed=speed,
        forecast=None if speed is None else forecast(work, speed),
        budget=space.budget,
        backbone_parameters=space.shape.parameters,
        workload=work,
        plan=outlook(space, opening_of(BegunSpecification.of(specification), task), trials=specification.trials),
        cluster=cluster,
    )


def _cluster(specification: Specification) -> ClusterFacts | None:
    """The cluster that a launch would use; None for a Ray of its own, or none."""
    address = None if specification.fleet.backend == "inline" else cluster_address()
    if address is None:
        return None
    backbone = Path(specification.backbone.name).expanduser()
    return cluster_facts(
        address, folder=specification.artefact_folder(), backbone=str(backbone.resolve()) if backbone.is_dir() else ""
    )
