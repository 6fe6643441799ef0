"""The installed command as a process: exit codes, streams, and how little is loaded."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.processes import PROGRAM, ROOT, printed_by, run_python

ROBERTA = str(ROOT / "tests" / "data" / "backbones" / "roberta_base")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["count", "bitfit", "--backbone", ROBERTA], 0), (["launch", "docstrings", "--budget", "1"], 2)],
)
def test_exit_code_reports_outcome_and_refusal_leaves_no_files(arguments: list[str], code: int, tmp_path: Path) -> None:
    done = run_python("-c", PROGRAM, *arguments, folder=tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (code == 0)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "methods", "--backbone", ROBERTA, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        printed = process.stderr.read()
    process.wait(timeout=60)
    assert b"Traceback" not in printed


INTERRUPTIBLE = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {PROGRAM}"
"""A shell that begins a process in the background has it ignore interruptions."""


def test_an_interruption_during_a_long_search_in_text_ends_at_once(sample_storage: str) -> None:
    sql = "SELECT instr(printf('%.*c', 90000000, 'a'), printf('%.*c', 40000000, 'a') || 'b')"
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "query", sql, "--storage", sample_storage],
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    asks = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        for _ in range(200):
            if asks.read_text():
                break
            time.sleep(0.1)
        time.sleep(1)  # the query runs
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, printed.lstrip()) == (130, "deltaspace: interrupted.\n")


DEEP = ("torch", "ray", "transformers", "optuna", "sqlalchemy")


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], (*DEEP, "pydantic", "rich", "yaml", "numpy")),
        (["version"], (*DEEP, "pydantic", "rich")),
        (["count", "mam_adapter", "--backbone", ROBERTA, "--json"], DEEP),
        (["space", "docstrings", "--set", f"backbone={ROBERTA}", "--draw", "1", "--json"], DEEP),
    ],
)
def test_command_loads_only_the_modules_it_needs(arguments: list[str], absent: tuple[str, ...]) -> None:
    script = (
        "import sys\n"
        "from deltaspace.commands.main import main\n"
        f"main({arguments!r})\n"
        f"print([name for name in {absent!r} if name in sys.modules], file=sys.stderr)"
    )
    done = run_python("-c", script)
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
    done = run_python("-c", script, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "deltaspace: interrupted.\n")


def test_entry_point_imports_no_other_module() -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules); import deltaspace.entry_point; "
        "print(sorted(set(sys.modules) - before))"
    )
    assert printed_by("-S", "-c", script, ROOT).strip() == "['deltaspace', 'deltaspace.entry_point']"


def test_an_interrupt_while_python_ends_prints_no_traceback() -> None:
    late = "import atexit, os, signal; atexit.register(os.kill, os.getpid(), signal.SIGINT); "
    done = run_python("-c", f"{late}signal.signal(signal.SIGINT, signal.default_int_handler); {PROGRAM}", "version")
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
