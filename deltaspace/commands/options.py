"""Options that several commands share, their values, and messages and questions on the terminal."""

import sys
from collections.abc import Callable, Iterable, Mapping
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
"""Largest number of trials, rows or lines in an option: more is a typing error."""
MOST_SEEDS = 1_000
"""Largest number of repetitions."""
MOST_SEED = 2**63 - 1
"""Largest seed of random generators."""
_MOST_DIGITS = 18
"""Digits of the largest number that a database holds."""
TRIAL = "NUMBER|best"

FLEET = ("workers", "pack", "backend", "time_budget")
"""Options of resources and of the time budget."""
_KEYS = {
    "method": "space.methods",
    "steps": "training.steps",
    "batch_size": "training.batch_size",
    **{name: f"fleet.{name}" for name in FLEET},
}
"""Keys of a study file by the options of another name that set them."""

Function = TypeVar("Function", bound=Callable[..., Any])


def command(name: str, *examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a command with examples at the end of its help text, whose lines click leaves as they are."""
    return click.command(name, epilog=examples_text(*examples))


def examples_text(*lines: str) -> str:
    """Return the end of a help text."""
    return "\b\nexamples:\n" + "\n".join(f"  {line}" for line in lines)


def say(text: str, *, err: bool = False) -> None:
    """Print a line without the control characters that names in it may contain."""
    click.echo(visible(text), file=sys.stderr if err else sys.stdout)  # click itself writes UTF-8 where it is ASCII


def notice(text: str) -> None:
    """Print a line about a slow operation, on a terminal only."""
    if sys.stderr.isatty():
        say(text, err=True)


def ask(question: str, *, yes: bool) -> None:
    """Prompt the user for whether to go on.

    Raises:
        UsageError: If there is no terminal to prompt on.
        Abort: If the answer is no.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"{question} Say so with --yes.")
    click.confirm(visible(question), err=True, abort=True)


def reading(storage: str) -> "Ledger":
    """Return the storage, open for reading."""
    from studies.ledger.ledger import Ledger

    return Ledger.open(storage, read_only=True)


def writing(storage: str) -> "Ledger":
    """Return the storage, which must exist, open for writing."""
    from studies.ledger.ledger import Ledger

    return Ledger.open(storage, create=False)


def names_of(texts: Iterable[str]) -> list[str]:
    """Split lists of published methods; a point such as ``lora_qv:r=8,s=2`` has commas of its own."""
    names: list[str] = []
    for part in ",".join(texts).split(","):
        if names and "=" in part and ":" not in part:
            names[-1] += f",{part.strip()}"
        else:
            names.append(part.strip())
    return list(dict.fromkeys(names))


def published_point(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> "PublishedPoint | None":
    """Return the published method or point of an option; None without one.

    Raises:
        BadParameter: If there is none of the name, or several are given.
    """
    from search_space.published.point import PublishedPoint

    if len(texts) > 1:
        raise click.BadParameter(f"one method is taken; got {', '.join(texts)}.")
    try:
        return PublishedPoint(texts[0]) if texts else None
    except SearchSpaceError as error:
        raise click.BadParameter(str(error)) from None


def in_a_folder(_: click.Context, __: click.Parameter, file: Path | None) -> Path | None:
    """Return an output file after checking its folder, before anything is computed.

    Raises:
        BadParameter: If the folder does not exist.
    """
    if file is not None and not file.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {file.parent} for {file.name}. Make it, or name another file.")
    return file


def _overrides(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, object]:
    """Return values by key path of a study file."""
    if not texts:
        return {}
    from studies.study_file import parse_override

    return dict(map(parse_override, texts))


def _settings(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, float | str]:
    """Return hyper-parameters of a published method; a value that is not a number is a choice.

    Raises:
        SettingError: If one has another form.
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
    """Number of a trial, or ``best``."""

    name = TRIAL

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Convert a text.

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
    callback=lambda context, parameter, given: storage_url(given),
    help="Database: sqlite:///FILE or postgresql://…",
)
backbone_option = click.option(
    "--backbone",
    metavar="NAME|FOLDER",
    default="embedded",
    help="embedded, a folder with a config.json, or a name on the hub; no weights are read.",
)
against_option = click.option(
    "--against",
    metavar="METHOD",
    multiple=True,
    callback=published_point,
    help="The published method that is compared with.  [default: the best of the study]",
)
method_option = click.option(
    "--method",
    metavar="METHOD,…",
    multiple=True,
    callback=lambda context, parameter, given: names_of(given) if given else None,
    help="Tune published methods alone: learning rates, size and scale; repeatable.  [default: as in the study file]",
)
size_option = click.option(
    "--size",
    metavar="N|0.1%",
    help="Most stored parameters: a number, or a share of the backbone; the best of those that are small enough.",
)


def answer_options(function: Function) -> Function:
    """Add the options of commands that print answers from a storage: ``--storage`` and ``--json``."""
    return storage_option(json_option(function))


def seeds_option(default: int, help_text: str) -> Callable[[Function], Function]:
    """Return an option for the number of seeds."""
    seeds = click.IntRange(2, MOST_SEEDS)
    return click.option("--seeds", type=seeds, default=default, help=help_text)


def key_option(name: str, metavar: str, help_text: str) -> Callable[[Function], Function]:
    """Return an option that sets one key of the study file."""
    return click.option(name, metavar=metavar, help=f"{help_text}  [default: as in the study file]")


def override_option(help_text: str) -> Callable[[Function], Function]:
    """Return a repeatable ``--set KEY=VALUE`` of a study file; the command receives ``overrides`` by key."""
    return click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, callback=_overrides, help=help_text)


def setting_option(help_text: str) -> Callable[[Function], Function]:
    """Return a repeatable ``--set KEY=VALUE`` of a published method; the command receives ``settings`` by name."""
    return click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, callback=_settings, help=help_text)


def overridden(overrides: dict[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return overrides with the keys that have options of their own."""
    return overrides | {_KEYS.get(name, name): value for name, value in given.items() if value is not None}


def run_options(function: Function) -> Function:
    """Add the options of commands that run a study: ``--storage``, ``--take-over``, ``--quiet`` and ``--json``."""
    end = "If another launch runs it, end that one. Without, it is asked for on a terminal, refused elsewhere."
    function = click.option("--quiet", is_flag=True, help="Show no progress.")(json_option(function))
    return storage_option(click.option("--take-over", is_flag=True, help=end)(function))


def fleet_options(default: str, *, again: str, time: str) -> Callable[[Function], Function]:
    """Return the options of resources and of the time budget.

    Args:
        default: Source of the values that are not given.
        again: Command that continues the study.
        time: Source of the time budget that is not given.
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
    """Print the ending of a launch and the next command; return the exit code: 130 after a signal, else 0."""
    name = result.study.name
    say(f"{name}: {result.reason}.{advice} See 'deltaspace show {name}'.", err=True)
    return _EXIT_INTERRUPTED if result.is_interrupted else 0


def takes_over(name: str, storage: str, *, given: bool) -> bool:
    """Return whether to end another launch that runs a study: by the option, else by the user's answer."""
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
