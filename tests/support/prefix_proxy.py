"""A reverse proxy on loopback that serves another server below a prefix."""

import http.client
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_HOP_HEADERS = ("connection", "content-length", "transfer-encoding", "host")


@contextmanager
def prefix_proxy(target: str, prefix: str, *, strips: bool) -> Iterator[str]:
    """Yield the origin of a proxy.

    Args:
        target: Host and port of the server behind it.
        prefix: Path below which it serves.
        strips: Whether it removes the prefix and sends the target's `Host`, as jupyter-server-proxy does; an ingress
            keeps both.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def _forward(self) -> None:
            if self.path != prefix and not self.path.startswith((f"{prefix}/", f"{prefix}?")):
                self.send_error(502, "outside of the prefix")
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_HEADERS}
            headers["Host"] = target if strips else self.headers["Host"]
            path = (self.path[len(prefix) :] or "/") if strips else self.path
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            link = http.client.HTTPConnection(target, timeout=30)
            try:
                link.request(self.command, path, body or None, headers)
                answer = link.getresponse()
                content = answer.read()
            finally:
                link.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP_HEADERS:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _forward  # noqa: N815

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
