"""The study files that ship with the package."""

from pathlib import Path

from search_space.nearest import nearest
from studies.errors import SpecificationError

_FOLDER = Path(__file__).parents[1] / "examples"


def example_names() -> tuple[str, ...]:
    """Names of the shipped examples."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def study_file(name: str) -> Path:
    """The study file that a user means: a path, or the name of a shipped example when there is no such file.

    Raises:
        SpecificationError: If it is one word, and neither a file nor an example.
    """
    path = Path(name)
    stem = path.name.removesuffix(".yaml")
    if path.exists() or path.name != name:
        return path
    if stem in example_names():
        return _FOLDER / f"{stem}.yaml"
    if path.suffix:
        return path
    known = example_names()
    raise SpecificationError(
        f"the study must be a file or a shipped example; there is no {name!r}. "
        f"Examples: {', '.join(known)}.{nearest(name, known)}"
    )
