"""What several commands share: options, how their texts are read, what is said and asked."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from deltaspace.commands.shell_completion import study_names
from search_space.errors import SearchSpaceError, SettingError
from studies.analysis.visible import visible
from studies.storage import DEFAULT_STORAGE, STORAGE_VARIABLE, storage_url

if TYPE_CHECKING:
    from search_space.published.point import PublishedPoint
    from studies.launch.execution import LaunchResult
    from studies.ledger.ledger import Ledger

_EXIT_INTERRUPTED = 130
MOST_NUMBER = 1_000_000
"""Of trials, rows or lines in an option: more is a slip."""
MOST_SEEDS = 1_000
"""Of repetitions, and of what is repeated."""
MOST_SEED = 2**63 - 1
"""What generators of random numbers take."""
_MOST_DIGITS = 18
"""As many as a database can hold, and nobody has so many trials."""
TRIAL = "NUMBER|best"

_FLEET = ("workers", "pack", "backend", "time_budget")
_KEYS = {"steps": "training.steps", "batch_size": "training.batch_size", **{name: f"fleet.{name}" for name in _FLEET}}
"""Keys of a study file by the options that set them, where they are called otherwise."""

Function = TypeVar("Function", bound=Callable[..., Any])


def command(name: str, *examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with examples at the end of its help text, whose lines click leaves as they are."""
    return click.command(name, epilog=examples_text(*examples))


def examples_text(*lines: str) -> str:
    """The end of a help text."""
    return "\b\nexamples:\n" + "\n".join(f"  {line}" for line in lines)


def say(text: str, *, err: bool = False) -> None:
    """Print a line; whatever a name in it holds, the terminal does not obey it."""
    click.echo(visible(text), file=sys.stderr if err else sys.stdout)  # click itself writes UTF-8 where it is ASCII


def notice(text: str) -> None:
    """Say to someone at a terminal what takes its time now; a program is not told."""
    if sys.stderr.isatty():
        say(text, err=True)


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


def reading(storage: str) -> "Ledger":
    """The open storage, to be read."""
    from studies.ledger.ledger import Ledger

    return Ledger.open(storage, read_only=True)


def writing(storage: str) -> "Ledger":
    """The open storage, which must be there, to be changed."""
    from studies.ledger.ledger import Ledger

    return Ledger.open(storage, create=False)


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


def in_a_folder(_: click.Context, __: click.Parameter, file: Path | None) -> Path | None:
    """A file that is to be written, if its folder is there: before anything is computed for it.

    Raises:
        BadParameter: If it is not.
    """
    if file is not None and not file.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {file.parent} for {file.name}. Make it, or name another file.")
    return file


def _overrides(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, object]:
    """Keys of a study file with their values."""
    if not texts:
        return {}
    from studies.study_file import parse_override

    return dict(map(parse_override, texts))


def _settings(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, float | str]:
    """Hyper-parameters of a published method; what is no number is a choice.

    Raises:
        SettingError: If one has no such form.
    """
    from search_space.published.point import parse_setting

    values: dict[str, float | str] = {}
    for setting in texts:
        key, text = (part.strip() for part in setting.partition("=")[::2])
        if not (key and text):
            raise SettingError(f"a setting must look like r=64; got {setting!r}.")
        values[key] = parse_setting(text)
    return values


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


study_argument = click.argument("study", shell_complete=study_names)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
storage_option = click.option(
    "--storage",
    metavar="URL",
    envvar=STORAGE_VARIABLE,
    show_envvar=True,
    default=DEFAULT_STORAGE,
    show_default=True,
    callback=lambda context, parameter, given: storage_url(given),
    help="Database: sqlite:///FILE or postgresql://…",
)
backbone_option = click.option(
    "--backbone",
    metavar="NAME|FOLDER",
    default="embedded",
    show_default=True,
    help="embedded, a folder with a config.json, or a name on the hub; no weights are read.",
)
against_option = click.option(
    "--against",
    metavar="METHOD",
    multiple=True,
    callback=published_point,
    help="The published method that is compared with.  [default: the best of the study]",
)
size_option = click.option(
    "--size",
    metavar="N|0.1%",
    help="Most stored parameters: a number, or a share of the backbone; the best of those that are small enough.",
)


def answer_options(function: Function) -> Function:
    """What a command takes that answers from a storage: ``--storage`` and ``--json``."""
    return storage_option(json_option(function))


def seeds_option(default: int, help_text: str) -> Callable[[Function], Function]:
    """How often something is trained, with a seed of its own each time."""
    seeds = click.IntRange(2, MOST_SEEDS)
    return click.option("--seeds", type=seeds, default=default, show_default=True, help=help_text)


def key_option(name: str, metavar: str, help_text: str) -> Callable[[Function], Function]:
    """A key of the study file that has an option of its own."""
    return click.option(name, metavar=metavar, help=f"{help_text}  [default: as in the study file]")


def override_option(help_text: str) -> Callable[[Function], Function]:
    """A repeatable ``--set KEY=VALUE`` of a study file; the command gets ``overrides`` by key."""
    return click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, callback=_overrides, help=help_text)


def setting_option(help_text: str) -> Callable[[Function], Function]:
    """A repeatable ``--set KEY=VALUE`` of a published method; the command gets ``settings`` by name."""
    return click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, callback=_settings, help=help_text)


def overridden(overrides: dict[str, object], given: Mapping[str, str | None]) -> dict[str, object]:
    """Keys of a study file, with those that options of their own have set."""
    return overrides | {_KEYS.get(name, name): value for name, value in given.items() if value is not None}


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
    from studies.runtime.workload import running_launch

    try:
        with reading(storage) as ledger:
            present = running_launch(name, ledger)
    except StudiesError:
        return False  # said when it is opened for writing
    if present is None:
        return False
    question = f"'{name}' is run by {present.words}. End that launch and go on here, or leave it alone?"
    answer = click.prompt(visible(question), type=click.Choice(["end", "leave"]), default="leave", err=True)
    return bool(answer == "end")
