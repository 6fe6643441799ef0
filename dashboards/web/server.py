"""HTTP server of the dashboard, in this process or in another one."""

import asyncio
import errno
import multiprocessing
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dashboards.errors import DashboardError
from dashboards.web.app import Dashboard
from dashboards.web.cache.storage import WatchedStorage
from dashboards.web.safety import AccessPolicy

PORT = 8088
"""Default port; where it is taken, the next free one of `_TRIES`."""

_TRIES = 20
REQUEST_SECONDS = 10.0
"""Time limit for a complete request; the connection is closed after it."""

MAX_CONNECTIONS = 128
"""Number of open connections above which the longest incomplete request is closed."""

_ACCEPTED_AT_ONCE = 32


def bind_socket(policy: AccessPolicy, port: int | None) -> socket.socket:
    """Return a listening socket.

    Args:
        port: None for the first free one from `PORT` on; 0 for any.

    Raises:
        DashboardError: If the address or the port cannot be bound.
    """
    ports = range(PORT, PORT + _TRIES) if port is None else (port,)
    family = socket.AF_INET6 if ":" in policy.host else socket.AF_INET
    for one in ports:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((policy.host, one))
        except OSError as error:
            listener.close()
            if error.errno == errno.EADDRINUSE and one != ports[-1]:
                continue
            raise DashboardError(
                f"cannot listen on {policy.host} port {one}: {error.strerror or error}. Choose another with --port."
            ) from error
        listener.listen(128)
        return listener
    raise DashboardError("no port was given.")


def dashboard_url(policy: AccessPolicy, listener: socket.socket, path: str = "") -> str:
    """Return the address that a browser on this network opens; behind a proxy the origin differs."""
    host = f"[{policy.host}]" if ":" in policy.host else policy.host
    if policy.host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://{host}:{listener.getsockname()[1]}{policy.path_of(path)}"


class _TimedRequests(H11Protocol):
    """HTTP with limits on the time and number of incomplete requests; uvicorn limits only the time between requests."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit of a request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(REQUEST_SECONDS, transport.close)
        connections = cast("set[_TimedRequests]", self.connections)
        open_ones = [one for one in connections if not one.transport.is_closing()]
        if len(open_ones) > MAX_CONNECTIONS:
            incomplete = {one._deadline.when(): one for one in open_ones if one._deadline is not None}
            incomplete[min(incomplete)].transport.close()

    def data_received(self, data: bytes) -> None:
        """Cancel the time limit once the request is complete."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.close)
        super().data_received(data)
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR):
            self._cancel_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def create_server(storage: WatchedStorage, policy: AccessPolicy) -> uvicorn.Server:
    """Return a server that does not run yet; outside of the main thread it installs no signal handlers."""
    return uvicorn.Server(
        uvicorn.Config(
            Dashboard(storage).application(policy),
            loop="asyncio",  # uvloop would be chosen where it is installed
            http=_TimedRequests,
            log_config=None,  # uvicorn's would close all handlers of the process, and absl's closes its stream
            log_level="warning",
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
            backlog=_ACCEPTED_AT_ONCE,
        )
    )


def serve(url: str, policy: AccessPolicy, listener: socket.socket, query_url: str = "") -> None:
    """Serve a storage until Ctrl-C."""
    storage = WatchedStorage(url, query_url)
    try:
        create_server(storage, policy).run(sockets=[listener])
    finally:
        storage.close()


@contextmanager
def dashboard_process(url: str, *, port: int | None = None) -> Iterator[str]:
    """Serve a dashboard from another process and yield its address, so that a launch loses no time to it.

    The process ends with the context, and with this process, even if that is killed.

    Raises:
        DashboardError: If no port is free.
    """
    listener = bind_socket(AccessPolicy(), port)
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_serve_until_parent_exits, args=(url, listener), daemon=True, name="dashboard")
    process.start()
    shown = dashboard_url(AccessPolicy(), listener)
    listener.close()
    try:
        yield shown
    finally:
        process.terminate()
        process.join()


def _serve_until_parent_exits(url: str, listener: socket.socket) -> None:
    """Serve until the launch ends; the launch alone handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    storage = WatchedStorage(url)
    server = create_server(storage, AccessPolicy())
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    parent: Any = multiprocessing.parent_process()
    parent.join()
    server.should_exit = True
    thread.join()
    storage.close()
