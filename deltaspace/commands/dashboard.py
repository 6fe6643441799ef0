"""``deltaspace dashboard``."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from deltaspace.commands.options import command, reading, say, storage_option
from deltaspace.commands.shell_completion import study_names


@command(
    "dashboard",
    "deltaspace dashboard --open",
    "deltaspace dashboard docstrings --export site",
    "DELTASPACE_TOKEN=the-secret-of-my-team deltaspace dashboard --host 192.168.1.7",
    "deltaspace dashboard --port 8392 --root-path /user/me/proxy/8392 --allow-origin https://hub.example",
)
@click.argument("study", required=False, shell_complete=study_names)
@storage_option
@click.option("--port", type=click.IntRange(min=0, max=65535), help="[default: the first free one from 8088 on]")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@click.option("--export", "folder", metavar="FOLDER", type=click.Path(path_type=Path), help="Write STUDY as files.")
@click.option("--host", metavar="ADDR", default="127.0.0.1", help="Another one needs a token.")
@click.option(
    "--token",
    metavar="T",
    default="",
    envvar="DELTASPACE_TOKEN",
    show_envvar=True,
    callback=lambda context, parameter, given: given.strip(),
    help="What everybody must know; the variable is safer, for processes are listed with their options.",
)
@click.option("--read-only", is_flag=True, help="Refuse notes, tags, requests to stop, renaming and deletion.")
@click.option("--root-path", metavar="PATH", default="", help="Path below which a proxy serves it.")
@click.option(
    "--allow-origin",
    "allowed_origins",
    metavar="ORIGIN",
    multiple=True,
    help="scheme://host[:port] of a proxy before it; repeatable.",
)
@click.option(
    "--query-storage",
    metavar="URL",
    default="",
    envvar="DELTASPACE_QUERY_STORAGE",
    show_envvar=True,
    help="The same database for the query page, with a role that only reads.",
)
def dashboard(
    study: str | None,
    storage: str,
    port: int | None,
    opens: bool,
    folder: Path | None,
    query_storage: str,
    **access: Any,
) -> None:
    """Show the studies of a storage in the browser, also while they run.

    Nobody but this machine reaches it unless an address and a token are given. Who reaches it may write notes and tags,
    and stop what runs, unless it is --read-only. Ctrl-C ends it. Behind a proxy it needs --root-path
    and --allow-origin, as in the last example.
    """
    _check_installed()
    from dashboards.web.folder import export_study
    from dashboards.web.safety import AccessPolicy
    from dashboards.web.server import bind_socket, dashboard_url, serve

    if folder is not None:
        if study is None:
            raise click.UsageError("--export must have a study; got none. Name it before the option.")
        written = export_study(storage, study, folder)
        say(f"wrote {written:,} files to {folder}; show them with: python -m http.server -d {folder}", err=True)
        return
    policy = AccessPolicy(**access)
    path = "" if study is None else _path_of(storage, study)
    listener = bind_socket(policy, port)
    shown = dashboard_url(policy, listener, path)
    say(shown)
    for origin in policy.allowed_origins:
        say(f"behind the proxy: {origin}{policy.path_of(path)}", err=True)
    say("Ctrl-C ends it.", err=True)
    if opens:
        import webbrowser

        webbrowser.open(shown)
    serve(storage, policy, listener, query_storage)


@contextmanager
def dashboard_during(storage: str, *, is_wanted: bool) -> Iterator[None]:
    """Serve the dashboard in a process of its own for the time of a launch, and print its address.

    Raises:
        DashboardError: If it is not installed, or no port is free.
    """
    if not is_wanted:
        yield
        return
    _check_installed()
    from dashboards.web.server import dashboard_process

    with dashboard_process(storage) as shown:
        say(f"dashboard: {shown} (later: deltaspace dashboard)", err=True)
        yield


def _path_of(storage: str, study: str) -> str:
    """Return the path of the pages of a study."""
    with reading(storage) as ledger:
        return f"studies/{ledger.study(study).id}/"


def _check_installed() -> None:
    """Refuse to run without the dashboard's packages; the message has the command that installs them."""
    from dashboards.errors import DashboardError

    missing = [name for name in ("starlette", "uvicorn", "plotly") if find_spec(name) is None]
    if missing:
        raise DashboardError(
            f"the dashboard needs {', '.join(missing)}; not installed. Run: pip install 'deltaspace[dashboard]'"
        )
