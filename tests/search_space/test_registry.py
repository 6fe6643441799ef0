"""Registries hold the project's own entries and those that installed packages add."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from search_space.errors import RegistryError
from search_space.registry import Registry

GROUP = "deltaspace.tests"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install a distribution with one module and its entry points, as pip would."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(source: str, *points: str) -> None:
        (tmp_path / "foreign_module.py").write_text(source)
        info = tmp_path / "somebodys-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *points]))

    yield put
    sys.modules.pop("foreign_module", None)


def numbers(**own: int) -> Registry[int]:
    return Registry("number", own, kind=int, group=GROUP)


def test_own_entries_come_in_their_order():
    registry = numbers(two=2, one=1)
    assert list(registry.items()) == [("two", 2), ("one", 1)]
    assert "three" not in registry
    with pytest.raises(KeyError):
        registry["three"]


def test_installed_entry_point_is_imported_on_demand(install):
    install("SEVEN = 7", "seven = foreign_module:SEVEN")
    registry = numbers(one=1)
    assert list(registry) == ["one", "seven"]
    assert len(registry) == 2
    assert "foreign_module" not in sys.modules
    assert registry["seven"] == 7


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("SEVEN = 'seven'", "the number 'seven' must be a int; foreign_module:SEVEN is a str"),
        ("raise OSError('no disk')", r"foreign_module:SEVEN raised OSError: no disk\. Mend or uninstall"),
    ],
)
def test_unusable_entry_of_a_package_is_refused_in_a_line(install, source, reason):
    install(source, "seven = foreign_module:SEVEN")
    with pytest.raises(RegistryError, match=reason):
        numbers()["seven"]


def test_a_name_is_taken_once(install):
    install("ONE = 1", "one = foreign_module:ONE")
    with pytest.raises(RegistryError, match="the names of numbers must differ; got 'one' a second time"):
        list(numbers(one=1))
