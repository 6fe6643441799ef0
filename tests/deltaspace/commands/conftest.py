"""Command lines, run in this process."""

from collections.abc import Callable

import pytest

from deltaspace.commands.main import main


@pytest.fixture
def ran(capsys) -> Callable[..., tuple[int, str, str]]:
    """Run a command line; return its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        return (main(arguments), *capsys.readouterr())

    return run


@pytest.fixture
def printed(ran) -> Callable[..., str]:
    """Run a command line that must succeed without messages; return its output."""

    def run(*arguments: str) -> str:
        code, out, err = ran(*arguments)
        assert (code, err) == (0, "")
        return out

    return run
