"""Looks a study over before it is launched: data, noise, speed, size, machine; nothing is recorded."""

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
"""Of a trained number in the file of a trial, running or ended: itself and two moments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What to expect of a study.

    Attributes:
        trial_seconds: Of a full trial in its pack.
        most_seconds: Of the study if no trial is pruned; the start of the workers is not in it.
        measuring_share: Of that, what goes into measuring.
        disk_bytes: Of the files of all trials, each as large as the budget allows.
    """

    trial_seconds: float
    most_seconds: float
    measuring_share: float
    disk_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What is known of a study before it is launched.

    Attributes:
        speed: What trials take; None if no step was taken.
        forecast: The same of the study; None without.
        budget: Most stored parameters of a trial.
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
    plan: tuple[str, ...]
    cluster: ClusterFacts | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may spoil the study, a line each; none if all is well."""
        noise = noise_warning(self.data)
        nodes = () if self.cluster is None else self.cluster.warnings
        gpus = len(self.machine.gpus) if self.cluster is None else sum(one.node.gpus for one in self.cluster.nodes)
        lacking = gpu_warning(self.specification.fleet, gpus)
        return (*self.data.warnings, *filter(None, (noise,)), *self.plan, *nodes, *filter(None, (lacking,)))


def check(specification: Specification, *, takes_steps: bool = True) -> Check:
    """Look a study over.

    Args:
        specification: The study.
        takes_steps: Whether some trials are trained for a few seconds, which tells time and memory; none are of a
            backbone that is sharded, since it may be too large for one process.

    Raises:
        RunnerError: If the backbone or the task cannot be had.
        SearchSpaceError: If nothing fits the budget, or the backbone's family is not supported.
        LaunchError: If there is a cluster that does not take this machine in, or no GPU for one process that needs it.
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
    """What a study takes if every trial runs to its end.

    Args:
        specification: The study.
        speed: Of a trial.
        workers: That share the trials.
        examples: Of the validation split.
        parameters: Most that a trial trains, its task head among them.
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
    """The cluster that a launch would use; None for a Ray of its own, or none."""
    address = None if specification.fleet.backend == "inline" else cluster_address()
    if address is None:
        return None
    backbone = expanded(specification.backbone.name)
    return cluster_facts(
        address, folder=specification.artefact_folder(), backbone=str(backbone.resolve()) if backbone.is_dir() else ""
    )
