"""A folder that is there whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from trial_runner.errors import ExportError
from trial_runner.files import abandoned, check_all_regular, check_regular, new_folder, unfinished, whole_file

WEIGHTS = save({"weight": torch.arange(6.0)})


def test_written_folder_exists(tmp_path):
    with new_folder(tmp_path / "export") as place:
        (place / "model.safetensors").write_bytes(WEIGHTS)
        (place / "facts.json").write_text("{}")
    assert sorted(path.name for path in (tmp_path / "export").iterdir()) == ["facts.json", "model.safetensors"]


@pytest.mark.parametrize(
    ("name", "content"), [("model.safetensors", WEIGHTS[:-4]), ("model.safetensors", b""), ("facts.json", b'{"a":')]
)
def test_unreadable_folder_is_no_export(tmp_path, name, content):
    with (
        pytest.raises(ExportError, match=f": {name} does not hold what was written. Choose another place"),
        new_folder(tmp_path / "export") as place,
    ):
        (place / name).write_bytes(content)
    assert list(tmp_path.iterdir()) == []


def test_folder_of_reused_pid_is_left_alone(tmp_path):
    other = tmp_path / f".export.{os.getpid()}.tmp"  # in another container, on a shared disk
    (other / "half").mkdir(parents=True)
    with new_folder(tmp_path / "export"):
        pass
    assert (other / "half").is_dir()


def test_copied_files_have_the_modes_of_their_folder(tmp_path):
    umask = os.umask(0o027)
    try:
        with new_folder(tmp_path / "export") as place:
            (place / "copied").mkdir(mode=0o500)
            (place / "facts.json").write_text("{}")
            (place / "facts.json").chmod(0o400)
    finally:
        os.umask(umask)
    found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert found == {"export": 0o750, "copied": 0o750, "facts.json": 0o640}


def test_a_file_is_whole_or_as_it_was(tmp_path):
    file = tmp_path / "answer.csv"
    with whole_file(file) as place:
        place.write_text("new")
    assert file.read_text() == "new"
    with pytest.raises(UnicodeEncodeError), whole_file(file) as place:
        place.write_text("half " * 100_000 + "\ud800", encoding="utf-8")
    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file]


def test_pipes_devices_and_huge_files_are_refused_unopened(tmp_path):
    (tmp_path / "small").write_bytes(b"four")
    (tmp_path / "link").symlink_to(tmp_path / "small")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("small", "link"):
        check_regular(tmp_path / name, most_bytes=4)
    with pytest.raises(OSError, match="at most 3 bytes; it has 4"):
        check_regular(tmp_path / "small", most_bytes=3)
    for name in ("pipe", "device"):
        with pytest.raises(OSError, match="must be a regular file"):
            check_regular(tmp_path / name)
    with pytest.raises(ExportError, match="device is neither"):
        check_all_regular(tmp_path)


def dead_name(path: Path) -> Path:
    """Return a temporary name that an ended process has used."""
    script = "import sys; from pathlib import Path; from trial_runner.files import unfinished; "
    command = [sys.executable, "-c", script + "print(unfinished(Path(sys.argv[1])))", str(path)]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def test_next_writer_deletes_unfinished_file_of_killed_process(tmp_path):
    half, other = dead_name(tmp_path / "export"), dead_name(tmp_path / "other")
    (half / "part").mkdir(parents=True)
    other.write_text("of another name")
    log = dead_name(tmp_path / "export")
    log.with_name(f"{log.name}-wal").write_text("of a database")
    living = unfinished(tmp_path / "export")
    living.write_text("in the making")
    assert sorted(abandoned(tmp_path)) == [other]
    assert not half.exists()
    with new_folder(tmp_path / "export"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"export", other.name, living.name}
