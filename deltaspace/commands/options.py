"""What several commands share: options, how their texts are read, what is said and asked."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from search_space.errors import SearchSpaceError, SettingError
from studies.analysis.visible import visible
from studies.storage import DEFAULT_STORAGE, STORAGE_VARIABLE, storage_url

_EXIT_INTERRUPTED = 130
_FORMATS = ("table", "markdown", "csv", "tsv", "json")

if TYPE_CHECKING:
    from search_space.published.point import PublishedPoint
    from studies.launch.execution import LaunchResult

Function = TypeVar("Function", bound=Callable[..., Any])


def say(text: str, *, err: bool = False) -> None:
    """Print a line; whatever a name in it holds, the terminal does not obey it."""
    click.echo(visible(text), err=err)


def notice(text: str) -> None:
    """Say to someone at a terminal what takes its time now; a program is not told."""
    if sys.stderr.isatty():
        say(text, err=True)


def examples(*lines: str) -> str:
    """The examples at the end of a help text; click leaves the lines as they are."""
    return "\b\nexamples:\n" + "\n".join(f"  {line}" for line in lines)


def yes_option(function: Function) -> Function:
    """``--yes``: do not ask."""
    return click.option("--yes", is_flag=True, help="Do not ask.")(function)


def ask(question: str, *, yes: bool) -> None:
    """Go on only if the user wants it.

    Raises:
        UsageError: If nobody can be asked.
        Abort: If the user does not want it.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"{question} Say so with --yes.")
    click.confirm(visible(question), err=True, abort=True)


def storage_option(function: Function) -> Function:
    """``--storage URL`` of the database; from the environment when it is not given."""
    return click.option(
        "--storage",
        metavar="URL",
        envvar=STORAGE_VARIABLE,
        show_envvar=True,
        default=DEFAULT_STORAGE,
        show_default=True,
        callback=lambda context, parameter, given: storage_url(given),
        help="Database: sqlite:///FILE or postgresql://…",
    )(function)


def json_option(function: Function) -> Function:
    """``--json`` instead of a table."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(function)


def table_options(function: Function) -> Function:
    """``--columns`` and ``--fmt`` of a command that answers with a table."""
    columns = click.option("--columns", metavar="NAME,…", help="Print these columns, in this order, and nothing else.")
    form = click.option(
        "--fmt",
        type=click.Choice(_FORMATS),
        help="Print all rows as plain columns, Markdown, CSV, TSV or JSON.  [default: as the terminal can show it]",
    )
    return columns(form(function))


def backbone_option(function: Function) -> Function:
    """``--backbone NAME|FOLDER``; only its config.json is read."""
    return click.option(
        "--backbone",
        metavar="NAME|FOLDER",
        default="embedded",
        show_default=True,
        help="embedded, a folder with a config.json, or a name on the hub; no weights are read.",
    )(function)


def in_a_folder(_: click.Context, __: click.Parameter, file: Path | None) -> Path | None:
    """A file that is to be written, if its folder is there: before anything is computed for it.

    Raises:
        BadParameter: If it is not.
    """
    if file is not None and not file.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {file.parent} for {file.name}. Make it, or name another file.")
    return file


def published_point(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> "PublishedPoint | None":
    """The published method, or point of it, that an option names; None without.

    Raises:
        BadParameter: If there is none of the name, or it is given twice.
    """
    from search_space.published.point import PublishedPoint

    if len(texts) > 1:
        raise click.BadParameter(f"one method is taken; got {', '.join(texts)}.")
    try:
        return PublishedPoint(texts[0]) if texts else None
    except SearchSpaceError as error:
        raise click.BadParameter(str(error)) from None


def against_option(function: Function) -> Function:
    """``--against METHOD`` of the question what differs from it."""
    return click.option(
        "--against",
        metavar="METHOD",
        multiple=True,
        callback=published_point,
        help="The published method that the winner is compared with.  [default: mam_adapter]",
    )(function)


def size_option(function: Function) -> Function:
    """``--size N|0.1%``: the most parameters of what is taken."""
    return click.option(
        "--size",
        metavar="N|0.1%",
        help="Most stored parameters: a number, or a share of the backbone; the best of those that are small enough.",
    )(function)


TRIAL = "NUMBER|best"

MOST_NUMBER = 1_000_000
"""Of trials, rows or lines in an option: more is a slip."""
MOST_SEEDS = 1_000
"""Of repetitions, and of what is repeated."""
MOST_SEED = 2**63 - 1
"""What generators of random numbers take."""


_MOST_DIGITS = 18
"""As many as a database can hold, and nobody has so many trials."""


class TrialNumber(click.ParamType[int | str]):
    """The number of a trial, or ``best``."""

    name = TRIAL

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Read it.

        Raises:
            BadParameter: If it is neither.
        """
        if value == "best" or isinstance(value, int):
            return value
        if not str(value).isdecimal() or len(str(value)) > _MOST_DIGITS:
            self.fail(f"a trial is a number or 'best'; got {str(value)[:60]!r}.", param, ctx)
        return int(str(value))


def run_options(function: Function) -> Function:
    """What every command that runs a study takes: ``--storage``, ``--take-over``, ``--quiet`` and ``--json``."""
    end = "If another launch runs it, end that one. Without, it is asked for on a terminal, refused elsewhere."
    function = click.option("--quiet", is_flag=True, help="Show no progress.")(json_option(function))
    return storage_option(click.option("--take-over", is_flag=True, help=end)(function))


def fleet_options(default: str, *, again: str, time: str) -> Callable[[Function], Function]:
    """Who does the work, and for how long.

    Args:
        default: Where the values are from else.
        again: What continues a study.
        time: Where the time is from else.
    """
    options = {
        "workers": ("N|auto", f"Worker processes; auto is one per GPU, else per core.  [default: {default}]"),
        "pack": ("N|auto", f"Trials that a worker trains in one pass; auto is as many as fit.  [default: {default}]"),
        "backend": ("ray|inline", f"inline is one worker in this process.  [default: {default}]"),
        "time-budget": ("TIME", f"Stop after 90s, 5m or 1h30m; {again} again continues.  [default: {time}]"),
    }

    def decorate(function: Function) -> Function:
        for name, (form, told) in reversed(options.items()):
            function = click.option(f"--{name}", metavar=form, help=told)(function)
        return function

    return decorate


def ended(result: "LaunchResult", advice: str) -> int:
    """Say how a launch ended, and what to do; return the exit code: 130 for one that a signal ended, else 0."""
    name = result.study.name
    say(f"{name}: {result.reason}.{advice} See 'deltaspace show {name}'.", err=True)
    return _EXIT_INTERRUPTED if result.is_interrupted else 0


def takes_over(name: str, storage: str, *, given: bool) -> bool:
    """Whether another launch that runs a study is ended: as the option says, else as the user says on a terminal."""
    if given or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return given
    from studies.errors import StudiesError
    from studies.ledger.ledger import Ledger
    from studies.runtime.workload import running_launch

    try:
        with Ledger.open(storage, read_only=True) as ledger:
            present = running_launch(name, ledger)
    except StudiesError:
        return False  # said when it is opened for writing
    question = "'{}' is run by {}. End that launch and go on here, or leave it alone?"
    if present is None:
        return False
    text = visible(question.format(name, present.words))
    return bool(click.prompt(text, type=click.Choice(["end", "leave"]), default="leave", err=True) == "end")


def set_option(help_text: str) -> Callable[[Function], Function]:
    """A repeatable ``--set KEY=VALUE``."""

    def decorate(function: Function) -> Function:
        return click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help=help_text)(function)

    return decorate


def parse_settings(settings: Sequence[str]) -> dict[str, float | str]:
    """Hyper-parameters of a published method from ``KEY=VALUE`` texts; what is no number is a choice.

    Raises:
        SettingError: If one has no such form.
    """
    from search_space.published.point import number_or_text

    values: dict[str, float | str] = {}
    for setting in settings:
        key, _, text = (part.strip() for part in setting.partition("="))
        if not (key and text):
            raise SettingError(f"a setting must look like r=64; got {setting!r}.")
        values[key] = number_or_text(text)
    return values
