"""Launches in processes that are forked after all imports, which makes their start cheap."""

import importlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path


class ForkedLaunch:
    """Launch with the methods of `subprocess.Popen`."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process
        self.pid: int = process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("launch", timeout or 0.0)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()


def start_forked(arguments: Sequence[str], log: Path, main: str = "support.trivial_launch.main") -> ForkedLaunch:
    """Start a function with arguments of a command line in a new process group."""
    log.touch()
    process = _context().Process(target=_launch, args=(main, list(arguments), str(log)))
    process.start()
    return ForkedLaunch(process)


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.trivial_launch"])
    return context


def _launch(main: str, arguments: list[str], log: str) -> None:
    os.setsid()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(file, stream)
    module, _, name = main.rpartition(".")
    sys.argv = [name, *arguments]
    sys.exit(getattr(importlib.import_module(module), name)())
