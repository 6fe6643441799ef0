"""Resource plan of a study on GPUs, for the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from dashboards.terminal.checks import bytes_text
from dashboards.terminal.layout import plain_table, terminal_text
from studies.resource_estimates.memory_plan import ResourcePlan


@dataclass(frozen=True, slots=True)
class PlanView:
    """A resource plan whose `str` is its terminal output."""

    plan: ResourcePlan

    def __str__(self) -> str:
        """Return the terminal output."""
        return terminal_text(plan_renderable(self.plan))


def plan_renderable(found: ResourcePlan) -> RenderableType:
    """Return a row per kind of GPU, and advice where the study does not fit."""
    study = found.specification
    training = study.training
    heads = (
        Text(f"{study.name} on {study.backbone}", style="bold"),
        Text(
            f"{bytes_text(found.weights.all_bytes)} of weights; "
            f"{training.examples_of(found.tokens)} texts of {found.tokens} tokens a step; "
            f"{study.trials:,} trials of {training.steps:,} steps"
        ),
        Text(),
    )
    columns = ("pack", "memory", "a trial", "checkpointing", "micro batch", "measured")
    table = plain_table("GPU", *columns, right=columns)
    for one in found.devices:
        table.add_row(
            one.gpu.name,
            f"{'' if one.shards == 1 else f'{one.shards} x '}{one.slots}{'' if one.fits else ' !'}",
            bytes_text(one.used_bytes),
            bytes_text(one.trial_bytes),
            "yes" if one.checkpointing else "no",
            str(one.micro_batch or "whole"),
            str(one.evaluated),
        )
    return Group(*heads, table, *(Text(line) for line in _notes(found)))


def _notes(found: ResourcePlan) -> Iterator[str]:
    yield ""
    yield "measured: examples that a trial evaluates at a time, generation included."
    for one in found.devices:
        if not one.fits:
            yield f"! It does not fit {one.gpu.name}. {'; '.join(one.advice)}."
    weights = found.weights
    if weights.shards > 1:
        yield (
            f"Each of {weights.shards} GPUs has {bytes_text(weights.held_bytes)} of weights and a pack of its own; "
            f"{bytes_text(weights.gathered_bytes)} of blocks come to it in a pass forth and back."
        )
