"""The study files that ship with the package."""

from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "examples"


def example_names() -> tuple[str, ...]:
    """Names of the shipped examples."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def study_file(name: str) -> Path:
    """The study file that a user means: a path, or the name of a shipped example when there is no such file."""
    path = Path(name)
    stem = path.name.removesuffix(".yaml")
    is_bare = path.name == name and stem in example_names()
    return _FOLDER / f"{stem}.yaml" if is_bare and not path.is_file() else path
