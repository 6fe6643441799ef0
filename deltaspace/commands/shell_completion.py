"""Shell completion of studies, methods and study files."""

import click
from click.shell_completion import CompletionItem


def study_names(context: click.Context, _: click.Parameter, typed: str) -> list[str]:
    """Return the studies of the given or default storage; none of a server, which may be slow, or after an error."""
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
    """Return the published methods."""
    from search_space.published import METHODS

    return [name for name in METHODS if name.startswith(typed)]


def methods_and_studies(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Return methods, then studies."""
    return [*method_names(context, parameter, typed), *study_names(context, parameter, typed)]


def study_files(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the directive for the shell to list files."""
    return [CompletionItem(typed, type="file")]
