"""``deltaspace launch``."""

import os
import shlex
import sys
from typing import IO, TYPE_CHECKING, Any, TextIO

import click

from deltaspace.commands import options
from deltaspace.commands.dashboard import dashboard_during
from deltaspace.commands.options import command, ended, notice, overridden, reading, say, takes_over
from deltaspace.commands.output import answer
from deltaspace.commands.shell_completion import study_files
from search_space.errors import SearchSpaceError
from studies.errors import StudiesError
from trial_runner.errors import RunnerError

if TYPE_CHECKING:
    from studies.launch.execution import LaunchResult
    from studies.runtime.progress import Progress

_ROWS = 20
_EXIT_MISUSED = 2


class _AppendedFile(click.File):
    """A file that is opened at once, but not made while a shell completes the rest of the line."""

    def convert(
        self, value: "str | os.PathLike[str] | IO[Any]", param: click.Parameter | None, ctx: click.Context | None
    ) -> "IO[Any]":
        """Open it."""
        if ctx is not None and ctx.resilient_parsing:
            self.fail("it is opened when the command runs.", param, ctx)
        return super().convert(value, param, ctx)


@command(
    "launch",
    "deltaspace launch docstrings",
    "deltaspace launch study.yaml --trials 100 --budget 1% --time-budget 30m",
    "deltaspace launch reviews --trials 200",
    "deltaspace launch docstrings --quiet --log docstrings.jsonl",
    "deltaspace launch sst2 --set task.folder=./data/sst2 --set training.steps=400",
)
@click.argument("study", metavar="STUDY", shell_complete=study_files)
@options.key_option("--trials", "N", "Trials in all.")
@options.key_option("--budget", "SHARE|N", "Share of the backbone, or number of parameters.")
@options.key_option("--space", "lora", "Sweep LoRA alone: targets, rank, scale, learning rate, dropout.")
@options.method_option
@options.key_option("--seed", "N", "Everything random derives from it.")
@options.fleet_options("as in the study file", again="launching", time="as in the study file")
@options.override_option("Any other key of the study file, such as training.steps=300; repeatable.")
@click.option(
    "--observe",
    "observed",
    metavar="NAME",
    multiple=True,
    help="Report every trial to tensorboard, mlflow, wandb or trackio, or to an Observer module:name; repeatable.",
)
@options.run_options
@click.option(
    "--log",
    type=_AppendedFile("a", encoding="utf-8", lazy=False),
    metavar="FILE",
    help="Append what happens to a file, a line of JSON per event.",
)
@click.option("--dashboard", "has_dashboard", is_flag=True, help="Show it in the browser while it runs.")
def launch(  # noqa: PLR0913 - one argument per option
    study: str,
    overrides: dict[str, object],
    storage: str,
    take_over: bool,
    observed: tuple[str, ...],
    quiet: bool,
    log: TextIO | None,
    has_dashboard: bool,
    as_json: bool,
    **given: str | None,
) -> int:
    """Launch a study, or continue it.

    STUDY is a study file, the name of a shipped example (docstrings, sst2), or that of a study in the storage, which
    goes on with its recorded settings. A study that was stopped, by a crash, Ctrl-C or its time budget, goes on where
    it was. At the end the published methods, resized to the same budget, stand beside what was discovered.
    """
    if not quiet:
        notice("reading the study and its data …")

    from dashboards.terminal.events import EventLog
    from dashboards.terminal.observers import progress_view
    from studies.analysis.visible import announce
    from studies.launch.study_creation import requested

    specification = requested(study, overridden(overrides, given), storage)

    from studies.launch.launch import launch
    from studies.observer import named_observer
    from studies.trackers import TRACKERS

    has_begun, events = False, EventLog(log)
    take_over = takes_over(specification.name, storage, given=take_over)
    with dashboard_during(storage, is_wanted=has_dashboard), progress_view(sys.stderr, quiet=quiet) as show_progress:

        def observe(progress: "Progress") -> None:
            nonlocal has_begun
            has_begun = True
            show_progress(progress)
            events(progress)

        try:
            result = launch(
                specification,
                storage_url=storage,
                observer=observe,
                announce=None if quiet else announce,
                take_over=take_over,
                observers=[named_observer(name, TRACKERS) for name in observed],
            )
        except (SearchSpaceError, RunnerError, StudiesError) as error:
            events.end(specification.name, str(error), finished=False)
            if has_begun:
                raise
            say(f"deltaspace: {error}", err=True)
            return _EXIT_MISUSED
    events.end(result.study.name, result.reason, finished=result.finished)
    for line in result.observer_errors:
        say(line, err=True)
    return _report(result, storage, as_json=as_json)


def _report(result: "LaunchResult", storage: str, *, as_json: bool) -> int:
    """Print the leaderboard to stdout, and the ending of the launch to stderr."""
    from dashboards.terminal.tables import leaderboard_table
    from studies.analysis.leaderboard import leaderboard
    from studies.analysis.ranks import ranking_of
    from studies.analysis.verdict import closing

    name = result.study.name
    with reading(storage) as ledger:
        board = leaderboard(ledger, name, top=_ROWS)
        expected = closing(ranking_of(ledger, result.study), result.study.metric) if result.finished else ""
    told = {"study": name, "finished": result.finished, "reason": result.reason}
    answer(board, leaderboard_table, as_json=as_json, entries=lambda board: {**told, "leaderboard": board})
    if expected and not as_json:
        say(expected)
    again = f"deltaspace launch {shlex.quote(name)}"
    return ended(result, f" For more: {again} --trials N." if result.finished else f" To continue: {again}.")
