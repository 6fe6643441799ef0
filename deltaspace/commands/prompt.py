"""Asks before something that cannot be taken back."""

import sys

import click

from deltaspace.commands.options import Function
from studies.analysis.visible import visible


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
