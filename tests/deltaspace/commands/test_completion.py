"""Shell completion: the scripts, and the words that they get for half a line."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest
from support.processes import PROGRAM, ROOT

from deltaspace.commands.main import COMMANDS, main

Offered = Callable[..., list[str]]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sample_storage: str) -> Offered:
    """Return the completions of bash for the last of some words, on the sample storage."""
    monkeypatch.setenv("DELTASPACE_STORAGE", sample_storage)
    monkeypatch.setenv("_DELTASPACE_COMPLETE", "bash_complete")

    def complete(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(["deltaspace", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit) as ended:
            main([])
        printed = capsys.readouterr()
        assert (ended.value.code, printed.err) == (0, "")
        return printed.out.split()

    return complete


def test_commands_are_offered_by_their_beginning(offered):
    assert offered("de") == ["plain,delete", "plain,describe"]
    assert offered("") == [f"plain,{name}" for name in COMMANDS]
    assert offered("--ver") == ["plain,--version"]


@pytest.mark.parametrize("command", ["show", "best", "confirm", "export", "delete", "discover", "dashboard", "verify"])
def test_studies_of_the_storage_are_offered(offered, command):
    assert offered(command, "") == offered(command, "sam") == ["plain,sample"]
    assert offered(command, "z") == []


def test_another_storage_has_other_studies_and_none_is_an_error(offered, tmp_path, monkeypatch, sample_storage):
    absent = tmp_path / "absent.db"
    assert offered("show", "--storage", f"sqlite:///{absent}", "") == []
    assert not absent.exists()
    assert offered("show", "--storage", "nonsense", "") == []
    assert offered("show", "--storage", "postgresql://nobody:secret@192.0.2.1/none", "") == []
    monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{absent}")
    assert offered("show", "--storage", sample_storage, "") == ["plain,sample"]


def test_completion_creates_no_files_and_prints_no_errors(offered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert offered("launch", "docstrings", "--log", "events.jsonl", "--qui") == ["plain,--quiet"]
    assert list(tmp_path.iterdir()) == []
    offered("no-such-command", "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_with_the_script(tmp_path):
    program = tmp_path / "deltaspace"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{PROGRAM}" "$@"\n')
    program.chmod(0o755)
    line = "COMP_WORDS=(deltaspace arch); COMP_CWORD=1; _deltaspace_completion deltaspace; echo ${COMPREPLY[@]}"
    script = 'eval "$(_DELTASPACE_COMPLETE=bash_source deltaspace)"'
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{line}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
    )
    assert (done.stdout.strip(), done.stderr) == ("archive", "")
