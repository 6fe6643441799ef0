"""Check of a study before its launch, for the terminal: data, cost of a trial, warnings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dashboards.terminal.layout import terminal_text
from dashboards.terminal.text import duration_text
from studies.analysis.visible import visible
from studies.preflight import Check

_LISTED_LABELS = 8
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class CheckView:
    """A check whose `str` is its terminal output."""

    check: Check

    def __str__(self) -> str:
        """Return the terminal output."""
        return terminal_text(check_renderable(self.check))


def check_renderable(found: Check) -> RenderableType:
    """Return a check as a renderable; long lines wrap within their column."""
    study = found.specification
    parts: list[RenderableType] = [Text(f"{study.name} on {study.backbone}", style="bold")]
    for title, rows in (("data", _data_rows), ("trials", _trial_rows), ("machine", _machine_rows)):
        parts += [Text(), Text(title, style="bold"), grid(rows(found))]
    if found.warnings:
        lines = grid(("!", line) for line in found.warnings)
        parts += [Text(), Text("look at this first", style="bold yellow"), lines]
    return Group(*parts)


def grid(rows: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names and texts; long texts wrap within their column."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, said in rows:
        grid.add_row(Text(f"  {name}", style="" if name == "!" else "dim"), Text(said))
    return grid


def bytes_text(count: float) -> str:
    """Return a size in the unit with one to three digits before the point."""
    unit = 0
    while count >= 999.5 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g} {_UNITS[unit]}"


def _data_rows(found: Check) -> Iterator[tuple[str, str]]:
    data, task = found.data, found.specification.task
    place = task.folder or task.title
    yield "task", f"{task.kind} from {place}, by {data.metric}"
    for split, count in data.examples.items():
        labels = data.labels.get(split, {})
        yield split, f"{count:,} examples{': ' if labels else ''}{_label_text(labels, count)}"
    if data.constant_score is not None:
        yield "constant prediction", f"{data.metric} {data.constant_score:.4f} on validation"
    for sample in data.samples:
        yield "is read as", visible(sample)
    small = (line for line in data.losses if line not in data.warnings)
    for note in (*small, *data.notes):
        split, _, said = note.partition(": ")
        yield split, said


def _label_text(labels: Mapping[str, int], count: int) -> str:
    if not labels:
        return ""
    if len(labels) <= _LISTED_LABELS:
        return ", ".join(f"{name} {number / count:.0%}" for name, number in labels.items())
    numbers = labels.values()
    return f"{len(labels)} labels with {min(numbers):,} to {max(numbers):,} each"


def _trial_rows(found: Check) -> Iterator[tuple[str, str]]:
    study, training = found.specification, found.specification.training
    yield "budget", f"{found.budget:,} of the backbone's {found.backbone_parameters:,} parameters"
    rungs = ", ".join(str(step) for step in study.rung_steps[:-1])
    compared = f", compared after {rungs}" if rungs else ""
    passes = training.steps * training.batch_size / found.data.examples["train"]
    most = "" if training.batch_tokens is None else "at most "
    yield "trials", f"{study.trials:,} of {training.steps:,} steps{compared}; {most}{passes:.1f} passes over train"
    if study.fleet.worker.shards > 1:
        yield "a step", "not timed, since the backbone is sharded: deltaspace plan reckons it"
    if found.speed is None or found.forecast is None:
        return
    speed, expected = found.speed, found.forecast
    yield "memory", f"{bytes_text(speed.slot_bytes)} a trial beside {bytes_text(speed.backbone_bytes)} of backbone"
    several = "unlike ones go one after another" if speed.slots > 1 else "several win nothing"
    alone = f"; {several} on a CPU where a step is as large as here" if speed.is_alone else ""
    yield "pack", f"{speed.slots} trial{'s' * (speed.slots > 1)} in one pass of a worker, {speed.precision}{alone}"
    yield "a step", f"{1000 * speed.step_seconds:.1f} ms of one trial in its pack ({speed.steps} were timed)"
    yield "a trial", f"{duration_text(expected.trial_seconds)}, {expected.measuring_share:.0%} of it measuring"
    yield "the study", f"{duration_text(expected.most_seconds)} if no trial is pruned; pruning makes it shorter"
    yield "disk", f"about {bytes_text(expected.disk_bytes)}"


def _machine_rows(found: Check) -> Iterator[tuple[str, str]]:
    machine = found.machine
    gpus = ", ".join(f"{name} ({bytes_text(size)})" for name, size in machine.gpus) or "no GPU"
    yield "computes on" if found.cluster is None else "this machine", f"{machine.cores} cores, {gpus}"
    if found.cluster is not None:
        nodes = [one.node for one in found.cluster.nodes]
        cores, count = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
        kinds = ", ".join(sorted({kind for node in nodes for kind in node.accelerators}))
        yield "cluster", f"{len(nodes)} nodes with {cores} cores and {count} GPUs{f' ({kinds})' if kinds else ''}"
    yield "workers", f"{machine.workers}, {machine.threads} thread{'s' * (machine.threads > 1)} each; {machine.fleet}"
    shards = found.specification.fleet.worker.shards
    if shards > 1:
        yield "shards", f"{shards} of each worker share one backbone, with a pack each"
    if found.specification.fleet.time_budget is not None:
        yield "time budget", duration_text(found.specification.fleet.time_budget)
