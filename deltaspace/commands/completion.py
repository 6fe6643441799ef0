"""``deltaspace completion``, and what the shell offers for arguments: studies, methods, study files."""

import click
from click.shell_completion import CompletionItem, get_completion_class

from deltaspace.commands.options import examples

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


def study_names(context: click.Context, _: click.Parameter, typed: str) -> list[str]:
    """Studies of the storage that is given or usual; none of a server, which may be far, and none after an error."""
    from studies.errors import StudiesError
    from studies.ledger.engine import StorageAddress
    from studies.ledger.ledger import Ledger
    from studies.storage import storage_url

    url = storage_url(context.params.get("storage"))
    try:
        if StorageAddress.parse(url).file is None:
            return []
        with Ledger.open(url, read_only=True) as ledger:
            names = [study.name for study in ledger.studies()]
    except StudiesError:
        return []
    return [name for name in names if name.startswith(typed) and name.isprintable()]


def method_names(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """The published methods."""
    from search_space.published import METHODS

    return [name for name in METHODS if name.startswith(typed)]


def methods_and_studies(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Both, methods first."""
    return [*method_names(context, parameter, typed), *study_names(context, parameter, typed)]


def study_files(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Files; the shell lists them."""
    return [CompletionItem(typed, type="file")]
