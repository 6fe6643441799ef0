"""Binds an address and serves the dashboard until it is told to stop."""

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
"""Where it listens unless told otherwise; the next free one of `_TRIES` where that is taken."""

_TRIES = 20
_REQUEST_SECONDS = 10.0
"""A connection whose request is not whole by then is closed."""

_MOST_CONNECTIONS = 128
"""Of more, that is closed which has waited longest for its request to be whole."""

_ACCEPTED_AT_ONCE = 32


def bind_socket(policy: AccessPolicy, port: int | None) -> socket.socket:
    """A socket that listens.

    Args:
        port: None for the first free one from `PORT` on; 0 for any.

    Raises:
        DashboardError: If the address or the port cannot be had.
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
                f"{policy.host} port {one} cannot be had ({error.strerror or error}). Choose another with --port."
            ) from error
        listener.listen(128)
        return listener
    raise DashboardError("no port was given.")


def dashboard_url(policy: AccessPolicy, listener: socket.socket, path: str = "") -> str:
    """Return the address that a person opens on this network; a proxy's begins with its own origin."""
    host = f"[{policy.host}]" if ":" in policy.host else policy.host
    if policy.host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://{host}:{listener.getsockname()[1]}{policy.path_of(path)}"


class _TimedRequests(H11Protocol):
    """HTTP that bounds the time and the number of half-sent requests; uvicorn bounds only the time between requests."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(_REQUEST_SECONDS, transport.close)
        all_of_them = cast("set[_TimedRequests]", self.connections)
        there = [one for one in all_of_them if not one.transport.is_closing()]
        if len(there) > _MOST_CONNECTIONS:
            waiting = {one._deadline.when(): one for one in there if one._deadline is not None}
            waiting[min(waiting)].transport.close()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a request, or no longer."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(_REQUEST_SECONDS, self.transport.close)
        super().data_received(data)
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR):
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def create_server(storage: WatchedStorage, policy: AccessPolicy) -> uvicorn.Server:
    """A server that is not running yet; in a thread that is not the main one it leaves signals to others."""
    return uvicorn.Server(
        uvicorn.Config(
            Dashboard(storage).application(policy),
            loop="asyncio",  # not what happens to be installed
            http=_TimedRequests,
            log_config=None,  # uvicorn's would close the handlers of the process, and absl's its stream with it
            log_level="warning",
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
            backlog=_ACCEPTED_AT_ONCE,
        )
    )


def serve(url: str, policy: AccessPolicy, listener: socket.socket) -> None:
    """Serve a storage until Ctrl-C."""
    storage = WatchedStorage(url)
    try:
        create_server(storage, policy).run(sockets=[listener])
    finally:
        storage.close()


@contextmanager
def dashboard_process(url: str, *, port: int | None = None) -> Iterator[str]:
    """The address of a dashboard that another process serves, so that it costs a launch nothing.

    It ends with the context, and with this process, however that ends.

    Raises:
        DashboardError: If no port can be had, or it does not begin to serve.
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
    """Serve until the launch is over; Ctrl-C is the launch's matter."""
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
