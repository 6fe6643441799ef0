"""A hub of the tests' own: as much of its API as an upload needs, on this machine."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

TOKEN = "hf_of_the_tests"


class Hub(ThreadingHTTPServer):
    """Takes what is uploaded.

    Attributes:
        repositories: What each was made with.
        files: What each holds, by name of the repository and path.
        objects: What was uploaded apart, by hash, as large files are.
        refuses: Whether commits are refused.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.repositories: dict[str, dict[str, Any]] = {}
        self.files: dict[str, dict[str, bytes]] = {}
        self.objects: dict[str, bytes] = {}
        self.refuses = False


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        self.server.objects[self.path.rpartition("/")[2]] = self.body()
        self.say({})

    def do_GET(self) -> None:
        self.say({"error": "not there"}, 404)

    def do_POST(self) -> None:
        path, body = self.path, self.body()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.say({"error": "Invalid credentials"}, 401)
        elif path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization') or 'me'}/{asked['name']}"
            is_new = self.server.repositories.setdefault(name, asked) is asked
            self.server.files.setdefault(name, {})
            url = {"url": f"{self.server.url}/{name}", "name": name}
            self.say(url if is_new else {**url, "error": "You already created this model repo"}, 200 if is_new else 409)
        elif path == "/api/validate-yaml":
            self.say({"errors": [], "warnings": []})
        elif "/preupload/" in path:
            files = [
                {"path": one["path"], "uploadMode": mode(one["path"]), "shouldIgnore": False, "oid": None}
                for one in json.loads(body)["files"]
            ]
            self.say({"files": files})
        elif path.endswith("/info/lfs/objects/batch"):
            self.say({"transfer": "basic", "objects": [self.place(one) for one in json.loads(body)["objects"]]})
        elif "/commit/" in path:
            self.commit(path.removeprefix("/api/models/").partition("/commit/")[0], body)
        else:
            self.say({})

    def place(self, one: dict[str, Any]) -> dict[str, Any]:
        href = f"{self.server.url}/objects/{one['oid']}"
        return {**one, "actions": {"upload": {"href": href, "header": {}}}}

    def commit(self, name: str, body: bytes) -> None:
        if self.server.refuses:
            self.say({"error": "the quota is used up"}, 403)
            return
        for line in map(json.loads, body.decode().splitlines()):
            value = line["value"]
            if line["key"] == "file":
                self.server.files[name][value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                content = self.server.objects[value["oid"]]
                assert hashlib.sha256(content).hexdigest() == value["oid"]
                self.server.files[name][value["path"]] = content
        self.say({"success": True, "commitOid": "0" * 40, "commitUrl": f"{self.server.url}/{name}/commit/{'0' * 40}"})

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def say(self, answer: dict[str, Any], status: int = 200) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def mode(path: str) -> str:
    """As the hub decides it: weights are large files."""
    return "lfs" if path.endswith(".safetensors") else "regular"


@contextmanager
def stub_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that this process uploads to, in place of the real one."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
