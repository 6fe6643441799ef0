"""Sections of a study file: the single place of every key, its default and its range."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, PlainValidator, TypeAdapter, model_validator
from pydantic.dataclasses import dataclass

from search_space.field_types import Text
from search_space.published.point import PublishedPoint
from search_space.space.options import read_published
from studies.errors import LaunchError
from studies.objectives import SizeMeasure
from studies.pruning.rungs import Rule
from studies.study_file.fields import (
    OWN_SAMPLERS,
    AutoOrCount,
    BackendName,
    Duration,
    LearnFrom,
    SamplerOption,
    Section,
    auto_or_one_gpu,
    score_first,
    whole_number,
)
from trial_runner.errors import RunnerError
from trial_runner.tasks import TASK_KINDS, Task, check_task
from trial_runner.tasks.task import KEYS_ARE_KNOWN


class Pruning(Section):
    """Steps and rules of comparing trials. Each next rung has twice the steps.

    The three published methods and the plain LoRA that are best at the first rung, and the task head alone, run to the
    end. A trial that predicts a constant, or whose loss has risen, stops at a rung where most others learn.

    Attributes:
        first_rung_steps: Steps of the first comparison; null never prunes. ``auto`` is a quarter of a full trial, but
            at least twice the warm-up, and the steps that train on 256 examples.
        rule: ``median`` stops a trial below the median of the others at a rung; ``none`` stops no trial.
        examples: Number of validation examples at a rung, the same for all trials; the last measurement uses all.
            ``auto`` is half as many as a trial trains on before the first rung, and at least 256, which takes a twelfth
            of the time of training, and a sixth in the shortest trials; or ``all``.
    """

    first_rung_steps: Annotated[Literal["auto"] | int | None, whole_number("auto", None)] = "auto"
    rule: Rule = Rule.MEDIAN
    examples: Annotated[Literal["auto", "all"] | int, whole_number("auto", "all")] = "auto"


SPACES: Mapping[str, Mapping[str, object]] = {
    "lora": {
        "attention_forms": ["lowrank"],
        "ffn_forms": ["lowrank"],
        "gates": ["add", "scale"],
        "size": [0.125, 1],
        "exportable": "peft",
        "lora_dropout": [0, 0.1],
    }
}
"""Sections ``space`` by the name that a study file can have in their place.

``lora`` is a sweep of LoRA: targets, rank, scale, learning rate and dropout.
"""


def named_space(given: object) -> object:
    """Return the section of a name; anything else unchanged.

    Raises:
        ValueError: If it is a text and no such name.
    """
    if not isinstance(given, str):
        return given
    if given not in SPACES:
        raise ValueError(f"must be a mapping of keys to values, or {' or '.join(SPACES)}")
    return dict(SPACES[given])


class SearchSection(Section):
    """Sampler, objectives and initial design.

    Attributes:
        objectives: ``[score]``, or with ``parameters`` or ``extra_flops`` to minimize: then sizes are
            searched, rungs compare a trial with those that are no larger, and the result is a front.
        published: Published methods that are tried first: ``compared`` (those of the papers' comparison), ``all``,
            ``none``, or a list. A method is resized to the budget; a point such as ``lora_qv:s=4`` has fixed
            hyper-parameters, and one that fixes a size keeps it. With ``space.methods`` these are tried first instead,
            unless it is ``none``.
        sampler: ``factored``, ``tpe``, ``random``, ``nsga2``, ``gp``, ``qmc``, one of an installed package, or
            one of Optuna as ``module:Class``, such as ``optuna.samplers:TPESampler``. Arguments of such a class
            stand beside it: ``{class: optuna.samplers:TPESampler, group: true}``; its seed is given.
        learn_from: Earlier studies of the storage from which the sampler ``factored`` learns when the study is begun:
            ``none``, a list of names, or ``auto`` for those on a backbone of the same family with a metric of the same
            kind. Their best configurations come first, in place of the weakest published methods unless those are
            listed one by one, and rates are drawn near their best ones.
        replicates: Number of the last trials that train the best of the others again with other seeds. ``auto``
            is 12 from 96 trials on, 40 from 320 on, and none below; up to three early ones come beside them.
    """

    sampler: SamplerOption = "factored"
    objectives: Annotated[tuple[SizeMeasure, ...], AfterValidator(score_first)] = (SizeMeasure.SCORE,)
    published: Annotated[str | tuple[PublishedPoint, ...], PlainValidator(read_published)] = "compared"
    learn_from: LearnFrom = "none"
    replicates: Annotated[Literal["auto"] | int, whole_number("auto", least=0)] = "auto"

    @model_validator(mode="after")
    def _check_the_sampler(self) -> Self:
        if not isinstance(self.sampler, str) or ":" in self.sampler:
            from studies.search.samplers import sampler_of  # loads optuna

            try:
                sampler_of(self.sampler)
            except LaunchError as error:
                raise ValueError(str(error)) from error
        if self.learn_from != "none" and self.sampler in OWN_SAMPLERS and self.sampler != "factored":
            raise ValueError(f"must learn from no earlier study unless the sampler is factored; got {self.sampler}")
        return self


class Worker(Section):
    """Resources of each worker.

    Attributes:
        gpus: GPUs of each worker, or of each of its shards, 0 or 1; ``auto`` is one if the machines have any.
        cpus: Cores of each worker; ``auto`` is an equal share.
        accelerator: Kind of GPU for the workers, as Ray names it; null for any.
        shards: GPUs of a worker that share one backbone.
    """

    gpus: Annotated[Literal["auto"] | int, BeforeValidator(auto_or_one_gpu)] = "auto"
    cpus: AutoOrCount = "auto"
    accelerator: Text | None = None
    shards: Annotated[int, whole_number()] = 1


class Fleet(Section):
    """Resources of a launch. It may differ from launch to launch.

    Attributes:
        backend: ``ray``, or ``inline`` for one process.
        workers: Number of workers; ``auto`` is one per GPU, else one per core.
        pack: Number of trials that a worker trains in one pass; ``auto`` is as many as a GPU's memory holds, and
            one on a CPU, where packs gain nothing.
        time_budget: Seconds after which no more trials begin and the running ones are laid aside.
        worker: Resources of each worker: ``gpus``, 0 or 1 for it or for each of its shards, where ``auto`` is one if
            there are any and 1 asks a cluster that grows for nodes with GPUs; ``cpus``, its cores, ``auto`` an equal
            share; ``accelerator``, the kind of GPU as Ray names it (``ray status -v``), null for any; ``shards``, GPUs
            that share one backbone too large for each alone, each with its own number as ``pack``.
        artefacts: Folder of the snapshots; null is ``deltaspace-artefacts`` in the working directory.
    """

    backend: BackendName = "ray"
    workers: AutoOrCount = "auto"
    pack: AutoOrCount = "auto"
    time_budget: Duration = None
    worker: Worker = Worker()
    artefacts: Text | None = None


def _kind(name: object) -> object:
    if not isinstance(name, str) or name not in TASK_KINDS:
        *others, last = (repr(kind) for kind in TASK_KINDS)
        raise ValueError(f"must be {', '.join(others)} or {last}")
    return name


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class TaskSection(Task):
    """Task of the study; the default metric is the first of its kind."""

    kind: Annotated[str, BeforeValidator(_kind)] = "classification"

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        kind = given.get("kind")
        if given.get("metric") is None and isinstance(kind, str) and kind in TASK_KINDS:
            return {**given, "metric": TASK_KINDS[kind].metrics[0]}
        return given

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        try:
            check_task(self)
        except RunnerError as error:
            raise ValueError(str(error).rstrip(".")) from error
        return self


def task_from_json(stored: object) -> Task:
    """Return the task of a stored study file.

    Raises:
        ValidationError: If it has keys or values that this release does not know.
    """
    task: Task = TypeAdapter(TaskSection).validate_python(stored)
    return task
