"""Command line ``deltaspace COMMAND``. The module of a command is imported when the command is called."""

import difflib
import importlib
import sys
from collections.abc import Sequence

import click

from dashboards.errors import DashboardError
from deltaspace.commands.options import examples_text, say
from deltaspace.commands.output import never_fail_to_encode
from search_space.errors import CodecError, SearchSpaceError
from studies.errors import StudiesError, StudyHeldError
from trial_runner.errors import RunnerError, panics_as_errors
from trial_runner.silence import quiet_quantizers

COMMANDS: dict[str, str] = {
    **dict.fromkeys(("init", "check", "plan"), "startup"),
    "launch": "launch",
    **dict.fromkeys(("studies", "show", "best", "trial", "discover"), "results"),
    "query": "query",
    "dashboard": "dashboard",
    **dict.fromkeys(("confirm", "ablate"), "confirmation"),
    "report": "results",
    "verify": "maintenance",
    "export": "export",
    **dict.fromkeys(("train", "predict"), "training"),
    **dict.fromkeys(("methods", "count", "space"), "design_space"),
    **dict.fromkeys(("rename", "delete", "archive", "backup", "merge"), "maintenance"),
    "describe": "design_space",
    "version": "version",
}
"""Name and module of every command; the first line of its help is its summary."""

_EXIT_FAILED, _EXIT_MISUSED, _EXIT_INTERRUPTED = 1, 2, 130


class _LazyGroup(click.Group):
    """Group of commands that are imported one at a time, when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found = vars(importlib.import_module(f"deltaspace.commands.{COMMANDS[cmd_name]}")).values()
        return next(one for one in found if isinstance(one, click.Command) and one.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        helps = {name: getattr(self.get_command(ctx, name), "help", None) or "" for name in COMMANDS}
        with formatter.section("Commands"):
            formatter.write_dl([(name, text.partition("\n")[0]) for name, text in helps.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"commands: {', '.join(COMMANDS)}."
            raise click.UsageError(f"no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog=examples_text("deltaspace launch docstrings", "deltaspace show docstrings --top 10", "deltaspace methods"),
)
@click.version_option(package_name="deltaspace")
def cli() -> None:
    """Search the design space of parameter-efficient fine-tuning under a budget of parameters."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0 done, 1 failed, 2 misused, 130 interrupted.

    Errors for users, and errors of the system about a file, become one line on stderr. Any other exception is a bug and
    keeps its traceback.
    """
    never_fail_to_encode()
    try:
        with quiet_quantizers(), panics_as_errors():
            outcome = cli.main(args=arguments, prog_name="deltaspace", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        say("deltaspace: interrupted.", err=True)
        return _EXIT_INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show(sys.stderr)
        return _EXIT_MISUSED
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "deltaspace"
        advice = f"See '{where} --help'."
        if error.ctx is not None:
            error.ctx.close()  # a file that an option before the wrong one has opened
        return _fail(f"{_sentence(error.format_message())} {advice}", error.exit_code)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except (SearchSpaceError, RunnerError, StudiesError, DashboardError) as error:
        return _fail(str(error), _EXIT_MISUSED if _is_misuse(error) else _EXIT_FAILED)
    except OSError as error:
        if error.filename is None:
            raise
        return _fail(f"{error.filename} cannot be used: {error.strerror}.", _EXIT_FAILED)
    return outcome if isinstance(outcome, int) else 0


def _is_misuse(error: Exception) -> bool:
    """Return whether an error is about the request: an unknown name, an invalid value or input."""
    return isinstance(error, KeyError | ValueError | StudyHeldError) and not isinstance(error, CodecError)


def _fail(message: str, code: int) -> int:
    say(f"deltaspace: {message}", err=True)
    return code


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."
