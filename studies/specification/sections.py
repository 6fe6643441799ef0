"""The sections of a study file. Every key, its default and its range stand here and nowhere else."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic.dataclasses import dataclass

from search_space.checked import Text, Whole
from search_space.space.options import SpaceOptions
from studies.errors import LaunchError
from studies.search.factored.hyperparameters import PriorsOf
from studies.search.lessons import Lessons
from studies.search.objectives import SMALLEST_SHARE, Objective, SizeGoal
from studies.search.opening import Opening
from studies.search.rungs import Rule
from studies.specification.fields import (
    OWN_SAMPLERS,
    BackendName,
    Duration,
    LearnFrom,
    SamplerName,
    Section,
    auto_all_or_count,
    auto_count_or_none,
    auto_count_or_zero,
    auto_or_count,
    auto_or_one_gpu,
    count_from_one,
    score_first,
)
from studies.specification.made_table import MadeTable
from trial_runner.tasks.task import KEYS_ARE_KNOWN


class Pruning(Section):
    """When trials are compared, and how many go on (asynchronous successive halving).

    Attributes:
        first_rung_steps: Steps of the first comparison; null never prunes. ``auto`` is a quarter of a full trial, but
            never less than twice the warm-up.
        reduction: Each next rung has so many times the steps.
        rule: ``chance`` stops a trial that is unlikely, by the model that estimates, to be better than the best
            published method, or where there is none than the best other trial; ``significance`` one that others,
            protected ones not counted, are better than by more than the noise of the validation examples; ``none``
            none.
        protect_published: Which published methods run to the end whatever the rungs say: ``best`` are the three best at
            the first rung and the task head alone; true is all of them, false none.
        examples: How many validation examples are measured at a rung, the same for all trials; the last measurement is
            of all. ``auto`` is half as many as a trial learns from before the first rung, and at least 256, which takes
            less than a tenth of the time; or ``all``.
        stop_collapsed: Whether a trial stops at a rung where it predicts a constant, or its loss has risen, while most
            others learn; published methods too, but not the task head alone.
    """

    first_rung_steps: Annotated[Literal["auto"] | int | None, BeforeValidator(auto_count_or_none)] = "auto"
    reduction: Annotated[Whole, Field(ge=2)] = 2
    rule: Rule = Rule.CHANCE
    protect_published: bool | Literal["best"] = "best"
    examples: Annotated[Literal["auto", "all"] | int, BeforeValidator(auto_all_or_count)] = "auto"
    stop_collapsed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, config=KEYS_ARE_KNOWN)
class Search(SpaceOptions):
    """What may be proposed, and who proposes.

    Attributes:
        objectives: ``[score]``, or ``parameters`` or ``extra_flops`` beside it, which are to be small: then sizes are
            searched, rungs compare a trial with those that are no larger, and what is found is a front.
        sampler: ``factored``, ``tpe``, ``random``, ``nsga2``, ``gp``, ``qmc``, one that an installed package adds, or
            any of Optuna's as ``module:Class``, such as ``optuna.samplers:TPESampler``.
        sampler_options: What a sampler that is named as ``module:Class`` is made with, its seed aside.
        replicates: How many of the trials, the last ones, train the best of the others again with other seeds. ``auto``
            is 12 from 96 trials on, 40 from 320 on, and none below.
        replicates_rival: Whether the best published method is trained again beside them where they are all discoveries,
            for how much better a discovery is can be no surer than what it is compared with.
        hears_losses: Whether the model of the sampler ``factored``, and with it every estimate, hears the validation
            loss beside the score: it is less noisy, and of two trials it tells better which will be right more often.
        priors: What the model expects before anything was tried: as trials of ``one_task`` say, or of ``three_tasks``,
            which foretold held-out trials better and know the luck that a loss shares with the score that is read with
            it; or these ``with_pace``, which know as well that the earlier a reading is, the less it foretells.
        learn_from: Earlier studies of the storage that the sampler ``factored`` learns from when the study is begun:
            ``none``, a list of names, or ``auto`` for those on a backbone of the same family with a metric of the same
            kind. Their best configurations come first, in the places of the weakest published methods unless those are
            listed one by one, and rates are drawn where theirs were best.
        lessons: What was learned, which the launch that begins the study writes; continuing it changes nothing in it,
            whatever has become of the earlier studies.
        made_table: Which table of ports was made of a backbone of no family, which the launch that begins the study
            writes; with another it is neither continued, nor confirmed, nor exported.
    """

    objectives: Annotated[tuple[Objective, ...], AfterValidator(score_first)] = (Objective.SCORE,)
    sampler: SamplerName = "factored"
    sampler_options: dict[str, Any] = Field(default_factory=dict)
    hears_losses: bool = True
    priors: PriorsOf = PriorsOf.WITH_PACE
    learn_from: LearnFrom = "none"
    lessons: Lessons | None = None
    made_table: MadeTable | None = None
    replicates: Annotated[Literal["auto"] | int, BeforeValidator(auto_count_or_zero)] = "auto"
    replicates_rival: bool = True

    @model_validator(mode="after")
    def _search_sizes(self) -> Self:
        if len(self.objectives) > 1 and self.size is None:
            object.__setattr__(self, "size", (SMALLEST_SHARE, 1.0))
        if Objective.EXTRA_FLOPS in self.objectives and self.mergeable:
            raise ValueError("must leave extra FLOPs to be few where they are an objective; what is mergeable has none")
        return self

    def goal(self, budget: int) -> SizeGoal | None:
        """What is to be small under a budget of parameters; None where only the score counts."""
        if len(self.objectives) == 1:
            return None
        return SizeGoal.of(
            self.objectives[1], budget=budget, smallest_share=self.sizes[0], max_extra_flops=self.max_extra_flops
        )

    @model_validator(mode="after")
    def _check_something_is_left(self) -> Self:
        if not self.attention_forms and not self.ffn_forms and not self.published_points:
            raise ValueError(
                "must leave something to search; got no form at attention, none at the FFN and no published method"
            )
        return self

    @model_validator(mode="after")
    def _check_the_sampler(self) -> Self:
        if ":" in self.sampler or self.sampler_options:
            from studies.search.samplers import sampler_of  # loads optuna

            try:
                sampler_of(self.sampler, self.sampler_options)
            except LaunchError as error:
                raise ValueError(str(error)) from error
        return self

    @model_validator(mode="after")
    def _check_who_learns(self) -> Self:
        if self.learn_from != "none" and self.sampler in OWN_SAMPLERS and self.sampler != "factored":
            raise ValueError(f"must learn from no earlier study unless the sampler is factored; got {self.sampler}")
        return self

    @property
    def opening(self) -> Opening:
        """How a study begins."""
        lessons = self.lessons or Lessons()
        return Opening(
            published=tuple(point for point in self.published_points if point not in lessons.replaced),
            lessons=lessons,
        )

    @property
    def replaceable(self) -> tuple[str, ...]:
        """The published methods that may make room for what was learned: those that nobody has listed."""
        return self.published_points if isinstance(self.published, str) else ()


class Fleet(Section):
    """Who does the work. May differ from launch to launch.

    Attributes:
        backend: ``ray``, or ``inline`` for one process.
        workers: ``auto`` is one per GPU, else one per core.
        pack: Trials that a worker trains in one pass; ``auto`` is as many as its memory holds.
        time_budget: Seconds after which no more trials begin and the running ones are laid aside.
        gpus: Of each worker, or of each of its shards, 0 or 1; ``auto`` is one where the machines have any. On a
            cluster that grows by what is asked for, 1 asks for nodes with GPUs that are not there yet.
        cpus: Cores of each worker; ``auto`` is as many as every worker can have.
        accelerator: The kind of GPU that workers are placed on, as Ray names it (``ray status -v``); null for any.
        shards: GPUs of a worker that share one backbone, which may be too large for each alone: a part of every block
            is held by each, and the block put together while it computes. Each has a ``pack`` of its own, a number.
        snapshot_every: Seconds between two measurements after which trials are snapshot, so that no more is lost with
            a machine; null for at measurements only.
        stuck_after: Seconds without any progress after which a worker is replaced, such as those in which a backbone is
            loaded or a validation split measured once; null for never.
        artefacts: Folder of the snapshots; null is ``deltaspace-artefacts`` in the working directory.
    """

    backend: BackendName = "ray"
    workers: Annotated[Literal["auto"] | int, BeforeValidator(auto_or_count)] = "auto"
    pack: Annotated[Literal["auto"] | int, BeforeValidator(auto_or_count)] = "auto"
    time_budget: Duration = None
    gpus: Annotated[Literal["auto"] | int, BeforeValidator(auto_or_one_gpu)] = "auto"
    cpus: Annotated[Literal["auto"] | int, BeforeValidator(auto_or_count)] = "auto"
    accelerator: Text | None = None
    shards: Annotated[int, BeforeValidator(count_from_one)] = 1
    snapshot_every: Duration = 600.0
    stuck_after: Duration = 3600.0
    artefacts: Text | None = None
