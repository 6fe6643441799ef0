"""``deltaspace d90``."""

import sys
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import click

from deltaspace.commands.help import examples
from deltaspace.commands.launch import exit_code
from deltaspace.commands.messages import say
from deltaspace.commands.options import (
    MOST_SEEDS,
    run_options,
    set_option,
    takes_over,
)
from deltaspace.commands.shell_arguments import study_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from studies.intrinsic import Dimension, Sweep
    from studies.launch.execution import LaunchResult
    from studies.study_file import Specification


_MOST_DIGITS, _MOST_SHOWN = 12, 60


def _whole_numbers(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip().replace("_", "") for part in text.split(",")]
    if not all(part.isdecimal() and len(part) <= _MOST_DIGITS and int(part) >= 1 for part in parts):
        got = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
        raise click.BadParameter(
            f"must be whole numbers from 1, of at most {_MOST_DIGITS} digits, separated by commas; got {got!r}"
        )
    return tuple(int(part) for part in parts)


@click.command(
    "d90",
    epilog=examples(
        "deltaspace d90 docstrings",
        "deltaspace d90 study.yaml --method intrinsic_did --dimensions 100,1000,10000",
        "deltaspace d90 docstrings --tries 3 --seeds 3",
        "deltaspace d90 sst2 --set task.folder=./data/sst2 --tries 3 --json",
    ),
)
@click.argument("study", metavar="STUDY.yaml", shell_complete=study_files)
@click.option(
    "--method",
    type=click.Choice(["intrinsic_said", "intrinsic_did"]),
    default="intrinsic_said",
    show_default=True,
    help="With one more factor per tensor (SAID) or without (DID).",
)
@click.option(
    "--fraction",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.9,
    show_default=True,
    help="Share of the score of full fine-tuning that a dimension must reach.",
)
@click.option(
    "--dimensions",
    metavar="N,N,…",
    default="10,30,100,300,1000,3000,10000",
    show_default=True,
    callback=_whole_numbers,
    help="Dimensions to try; those that the backbone does not allow are left out.",
)
@click.option(
    "--tries",
    type=click.IntRange(1, MOST_SEEDS),
    default=1,
    show_default=True,
    help="Studies of the sweep, each with a seed and learning rates of its own; the best score of a point counts.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, MOST_SEEDS),
    default=1,
    show_default=True,
    help="Repeat all tries so often: d90 of the mean scores, ± between seeds, and d90 of each seed.",
)
@set_option("Any key of the study file, such as training.steps=300; repeatable.")
@run_options
def command(  # noqa: PLR0913 - one argument per option
    study: str,
    method: str,
    fraction: float,
    dimensions: tuple[int, ...],
    tries: int,
    seeds: int,
    settings: tuple[str, ...],
    storage: str,
    take_over: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Find the intrinsic dimension of a study's task.

    It is the smallest dimension of a random subspace in which training reaches 90% of the score of full fine-tuning.

    STUDY.yaml is a study file or the name of a shipped example; of it the backbone, the task, the training, the
    learning rates and the fleet are taken. The trials, full fine-tuning and one per dimension, are a study of their
    own, NAME-d90-said or NAME-d90-did. Calling the command again continues what was stopped; of what is finished it
    only prints the result.
    """
    from deltaspace.commands.output import echo_json, show
    from deltaspace.descriptions import shape_of
    from studies.intrinsic import Sweep, dimension_of, mean_dimension, sweep_of
    from studies.ledger.ledger import Ledger
    from studies.study_file import parse_override, specification_of

    overrides = dict(parse_override(setting) for setting in settings)
    specification = specification_of(study, overrides)
    sweep = Sweep.on(shape_of(specification.backbone.name), method, dimensions)
    attempts = range(1, seeds * tries + 1)
    sweeps = [sweep_of(specification, sweep, attempt=attempt) for attempt in attempts]
    results = _launched(sweeps, storage, take_over=take_over, quiet=quiet)
    with Ledger.open(storage, read_only=True) as ledger:
        trials = [ledger.trials(result.study.id) for result in results]
        examples = ledger.example_counts(results[0].study.id)
    noise = _noise(specification.task.metric, None if examples is None else examples.whole)
    by_seed = [
        dimension_of(chain(*trials[first : first + tries]), sweep, fraction=fraction, tries=tries, noise=noise)
        for first in range(0, len(trials), tries)
    ]
    is_finished = len(results) == len(sweeps) and all(result.finished for result in results)
    outcome = mean_dimension(by_seed, noise=noise)
    if as_json:
        names = [result.study.name for result in results]
        left_out = {str(dimension): why for dimension, why in sweep.left_out}
        found = {"d90": outcome.dimension, "finished": is_finished, "studies": names, "left_out": left_out}
        echo_json({**found, "metric": specification.task.metric, "outcome": outcome, "seeds": by_seed})
    else:
        show(_table(outcome, by_seed, sweep, specification.task.metric))
    last = results[-1]
    say(f"{last.study.name}: {last.reason}. See 'deltaspace show {last.study.name}'.", err=True)
    return exit_code(last)


def _noise(metric: str, examples_measured: int | None) -> "Callable[[float], float]":
    """How far two scores may be apart by luck: by 95% confidence, where the score is a share of known examples."""
    from studies.intrinsic import usual_noise
    from studies.resource_estimates.noise import is_share, smallest_difference

    if examples_measured is None or not is_share(metric):
        return usual_noise
    return partial(smallest_difference, examples_measured)


def _launched(sweeps: "list[Specification]", storage: str, *, take_over: bool, quiet: bool) -> "list[LaunchResult]":
    """Run the studies one after another, up to the first that does not come to its end."""
    from dashboards.terminal.observers import progress_view
    from studies.launch.launch import launch

    results: list[LaunchResult] = []
    for specification in sweeps:
        is_taken = takes_over(specification.name, storage, given=take_over)
        with progress_view(sys.stderr, quiet=quiet) as observe:
            results.append(launch(specification, storage_url=storage, observer=observe, take_over=is_taken))
        if not results[-1].finished:
            break
    return results


def _table(outcome: "Dimension", by_seed: "Sequence[Dimension]", sweep: "Sweep", metric: str) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from dashboards.terminal.layout import plain_table

    table = plain_table()
    table.add_column("dimension", justify="right")
    spread = ("±",) if len(by_seed) > 1 else ()
    for name in (metric, *spread, "of full", "trials", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for point in (outcome.full, *outcome.points):
        deviation = "-" if point.deviation is None else f"{point.deviation:.4f}"
        table.add_row(
            "full fine-tuning" if point.dimension is None else f"{point.dimension:,}",
            "-" if point.score is None else f"{point.score:.4f}",
            *(deviation for _ in spread),
            "-" if point.fraction_of_full is None else f"{point.fraction_of_full:.1%}",
            str(point.trials),
            str(point.failed),
            style="bold" if point.dimension is not None and point.dimension == outcome.dimension else None,
        )
    left_out = [Text(f"left out {dimension:,}: {why}", "dim") for dimension, why in sweep.left_out]
    seeds = [Text(_of_each(by_seed))] if spread else []
    falls = [Text(line, "yellow") for line in _not_monotone(outcome)]
    return Group(table, *left_out, Text(), Text(_sentence(outcome)), *seeds, *falls)


def _of_each(by_seed: "Sequence[Dimension]") -> str:
    """The dimension of each seed."""
    found = [
        "not known"
        if one.threshold is None
        else f"above {one.points[-1].dimension:,}"
        if one.dimension is None
        else f"{one.dimension:,}"
        for one in by_seed
    ]
    return f"By mean scores; the {len(by_seed)} seeds alone: {'; '.join(found)} (± is between seeds)."


def _not_monotone(outcome: "Dimension") -> list[str]:
    """What is said where more dimensions scored less."""
    falls = [
        f"{fall.dimension:,} scored {fall.by:.4f} less than {fall.below:,} (noise: {fall.noise:.4f})"
        for fall in outcome.falls
    ]
    if not falls:
        return []
    advice = "Train longer, or take more --tries or --seeds, before you trust it."
    return [f"The curve is not monotone: {'; '.join(falls)}. {advice}"]


def _sentence(outcome: "Dimension") -> str:
    """The result in words."""
    name = f"d{100 * outcome.fraction:g} of {outcome.method}"
    if outcome.threshold is None:
        return f"{name}: not known, because full fine-tuning has no positive score yet."
    wanted = f"{outcome.fraction:.0%} of full fine-tuning ({outcome.threshold:.4f})"
    so_far = "" if outcome.is_final else " so far"
    if outcome.dimension is None:
        return f"{name}: above {outcome.points[-1].dimension:,}{so_far}; no dimension reached {wanted}."
    return f"{name}: {outcome.dimension:,}{so_far}, the smallest dimension that reached {wanted}."
