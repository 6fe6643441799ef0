"""A Ray cluster of several nodes on this machine: each a ``ray start`` of its own that can be killed like a machine."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from support.killed_study import TESTS, LaunchedStudy, children

from studies.ledger.ledger import Ledger

_RAY = str(Path(sys.executable).with_name("ray"))
_START_SECONDS = 180.0
_LOOK_SECONDS = 0.1
_QUICK_DEATH = {"health_check_period_ms": 500, "health_check_timeout_ms": 2000, "health_check_failure_threshold": 3}
# ports of workers are drawn by the system: else clusters of tests that run at once take them from one range
_SMALL = [
    "--disable-usage-stats",
    "--object-store-memory=80000000",
    "--block",
    "--min-worker-port=0",
    "--max-worker-port=0",
]
_TOO_SLOW = "timed out during startup"
_READY = "This command will now block"


def has_own_disks() -> bool:
    """Return whether nodes can have file systems of their own here."""
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


@dataclass
class Node:
    """One node, with all of its processes."""

    process: subprocess.Popen[bytes]
    log: Path
    is_plain: bool

    @property
    def pids(self) -> list[int]:
        """Its processes."""
        return [self.process.pid, *(pid for pid, _ in children(self.process.pid))]

    def workers(self) -> list[int]:
        """Process ids of the study's workers on it."""
        found = children(self.process.pid)
        return [pid for pid, command in found if command.startswith("ray::") and "Trainable" in command]

    @property
    def key(self) -> str:
        """As Ray names it."""
        command = next(command for _, command in children(self.process.pid) if "/raylet " in command)
        return command.partition("--node_id=")[2].split()[0]

    def kill(self) -> None:
        """End it as a machine ends whose plug is pulled."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Cluster:
    """Nodes that come and go; the first, the head, stays.

    Attributes:
        folder: Folder of the logs.
        settings: Environment variables of the nodes and of launches on them.
    """

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    address: str = ""

    def start(self, *, cpus: int = 1) -> None:
        """Start the head."""
        token = self.folder / "token"
        token.write_text(secrets.token_hex(32))
        self.settings = {
            "RAY_worker_niceness": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            **self.settings,
        }
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        system = f"--system-config={json.dumps(_QUICK_DEATH)}"
        self._add(["--head", f"--port={port}", "--include-dashboard=false", system], cpus=cpus)
        self.settings["RAY_ADDRESS"] = self.address

    def add(self, *, cpus: int = 1, gpus: int = 0, hidden: Path | None = None, **settings: str) -> Node:
        """Start another node.

        Args:
            hidden: A folder in whose place the node sees an empty disk of its own.
            settings: Environment variables of the node.
        """
        return self._add([f"--address={self.address}"], cpus=cpus, gpus=gpus, hidden=hidden, settings=settings)

    def any_other(self) -> Node:
        """Return a plain node beside the head, a new one only if there is none."""
        left = [node for node in self.nodes[1:] if node.is_plain and node.process.poll() is None]
        return left[0] if left else self.add()

    def drain(self, node: Node, seconds: int = 300) -> None:
        """Announce to a node that its machine will leave."""
        subprocess.run(
            [
                *(_RAY, "drain-node", f"--address={self.address}", f"--node-id={node.key}"),
                *("--reason=DRAIN_NODE_REASON_PREEMPTION", "--reason-message=spot"),
                f"--deadline-remaining-seconds={seconds}",
            ],
            env=os.environ | self.settings,
            check=True,
            capture_output=True,
        )

    def stop(self) -> None:
        """Leave no process behind."""
        for node in self.nodes:
            node.kill()

    def _add(
        self,
        arguments: list[str],
        *,
        cpus: int,
        gpus: int = 0,
        hidden: Path | None = None,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> Node:
        command = [_RAY, "start", *arguments, *_SMALL]
        command += [f"--num-cpus={cpus}", f"--num-gpus={gpus}", "--node-ip-address=127.0.0.1"]
        if hidden is not None:
            script = f'mount -t tmpfs none "{hidden}" && exec "$0" "$@"'
            command = ["unshare", "--mount", "sh", "-c", script, *command]
        log = self.folder / f"node-{len(self.nodes)}.log"
        paths = os.pathsep.join([str(TESTS.parent), str(TESTS)])
        environment = os.environ | self.settings | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"} | dict(settings)
        environment.pop("RAY_ADDRESS", None)
        is_plain = not gpus and hidden is None and not settings
        until = time.monotonic() + _START_SECONDS
        while True:
            with log.open("wb") as file:
                process = subprocess.Popen(command, stdout=file, stderr=file, env=environment, start_new_session=True)
            node = Node(process, log, is_plain=is_plain)
            self.nodes.append(node)
            while process.poll() is None and _READY not in log.read_text():
                assert time.monotonic() < until, log.read_text()
                time.sleep(_LOOK_SECONDS)
            if process.poll() is None:
                return node
            self.nodes.pop()
            assert _TOO_SLOW in log.read_text(), log.read_text()  # Ray gives a busy machine 30 seconds


def is_under_way(study: LaunchedStudy, workers: int) -> bool:
    """Return whether this number of workers hold trials, each of which has a snapshot."""
    if not study.recorded():
        return False
    with Ledger.open(study.url, read_only=True) as ledger:
        key = ledger.study("trivial").id
        held = [attempt for attempt in ledger.attempts(key) if attempt.ended_at is None]
        kept = {artefact.trial for artefact in ledger.artefacts(key)}
    return len({attempt.worker for attempt in held}) == workers and all(attempt.trial in kept for attempt in held)
