"""``deltaspace completion``."""

import click
from click.shell_completion import get_completion_class

from deltaspace.commands.help import examples

_PROGRAM, _VARIABLE = "deltaspace", "_DELTASPACE_COMPLETE"


@click.command(
    "completion",
    epilog=examples(
        "deltaspace completion bash >> ~/.bashrc",
        "deltaspace completion zsh >> ~/.zshrc",
        "deltaspace completion fish > ~/.config/fish/completions/deltaspace.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that lets a shell complete commands, options and names of studies.

    New shells have it once it stands where the examples put it; of bash, 4.4 or newer is needed. Studies are those of
    --storage, else of $DELTASPACE_STORAGE; of a database on a server none are offered.
    """
    shells = get_completion_class(shell)
    if shells is None:
        raise click.UsageError(f"this version of click must know {shell}; it does not. Upgrade click.")
    click.echo(shells(context.find_root().command, {}, _PROGRAM, _VARIABLE).source(), nl=False)
