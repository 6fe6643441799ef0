"""The installed command as a process: exit codes, streams, and how little is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROBERTA = str(Path(__file__).parents[2] / "data" / "backbones" / "roberta_base")


def run(*arguments: str, folder: Path, **kwargs: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    environment.pop("DELTASPACE_STORAGE", None)
    script = "import sys; from deltaspace.entry_point import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["count", "bitfit", "--backbone", ROBERTA], 0),
        (["show", "docstrings"], 2),
        (["launch", "nowhere.yaml"], 2),
        (["launch", "docstrings", "--budget", "1"], 2),
        (["nonsense"], 2),
    ],
)
def test_the_exit_code_says_how_it_went_and_nothing_is_a_traceback(
    arguments: list[str], code: int, tmp_path: Path
) -> None:
    done = run(*arguments, folder=tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (code == 0)


def test_a_refused_launch_leaves_nothing_behind(tmp_path: Path) -> None:
    assert run("launch", "docstrings", "--budget", "1", folder=tmp_path).returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    script = "import sys; from deltaspace.entry_point import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "methods", "--backbone", ROBERTA, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        said = process.stderr.read()
    process.wait(timeout=60)
    assert b"Traceback" not in said


def test_help_loads_nothing_that_takes_long() -> None:
    script = (
        "import sys\n"
        "from deltaspace.commands.main import main\n"
        "main(['--help'])\n"
        "slow = ('torch', 'ray', 'transformers', 'optuna', 'pydantic', 'sqlalchemy', 'rich', 'yaml', 'numpy')\n"
        "print([name for name in slow if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_counting_loads_neither_torch_nor_the_database(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from deltaspace.commands.main import main\n"
        f"main(['count', 'mam_adapter', '--backbone', {ROBERTA!r}, '--json'])\n"
        "slow = ('torch', 'ray', 'transformers', 'optuna', 'sqlalchemy')\n"
        "print([name for name in slow if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_an_interrupt_while_modules_are_imported_is_one_line_too(tmp_path: Path) -> None:
    script = """
import sys
class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from deltaspace.entry_point import main
sys.exit(main())
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "deltaspace: interrupted.\n")
