"""Lines that commands say."""

import click

from studies.analysis.visible import visible


def say(text: str, *, err: bool = False) -> None:
    """Print a line; whatever a name in it holds, the terminal does not obey it."""
    click.echo(visible(text), err=err)
