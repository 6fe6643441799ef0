"""Options that several commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

DEFAULT_STORAGE = "sqlite:///deltaspace.db"
STORAGE_VARIABLE = "DELTASPACE_STORAGE"

Function = TypeVar("Function", bound=Callable[..., Any])


def storage_option(function: Function) -> Function:
    """``--storage URL`` of the database; from the environment when it is not given."""
    return click.option(
        "--storage",
        metavar="URL",
        envvar=STORAGE_VARIABLE,
        show_envvar=True,
        default=DEFAULT_STORAGE,
        show_default=True,
        help="Database: sqlite:///FILE or postgresql://…",
    )(function)


def json_option(function: Function) -> Function:
    """``--json`` instead of a table."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(function)


def backbone_option(function: Function) -> Function:
    """``--backbone NAME|FOLDER``; only its config.json is read."""
    return click.option(
        "--backbone",
        metavar="NAME|FOLDER",
        default="embedded",
        show_default=True,
        help="embedded, a folder with a config.json, or a name on the hub; no weights are read.",
    )(function)


def set_option(help_text: str) -> Callable[[Function], Function]:
    """A repeatable ``--set KEY=VALUE``."""

    def decorate(function: Function) -> Function:
        return click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help=help_text)(function)

    return decorate
