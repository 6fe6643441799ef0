"""Reader of study files. All problems are reported at once, one line each."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import yaml
from pydantic import ValidationError

from search_space.closest_name import name_hint
from studies.errors import SpecificationError
from studies.study_file.problems import problem_lines
from studies.study_file.sections import SPACES
from studies.study_file.study import Specification
from studies.study_file.yaml_text import read_yaml
from trial_runner.files import check_regular

_PATH_KEYS = ("task.folder", "fleet.artefacts")
_BACKBONES = ("backbone", "backbone.name")
_ALL_PATH_KEYS = (*_PATH_KEYS, *_BACKBONES)
_SECTIONS = ("training", "pruning", "space", "search", "fleet")
_LARGEST_BYTES = 100_000
_EXAMPLES = Path(__file__).parents[1] / "examples"
_FILES = (".yaml", ".yml", ".json")


def example_names() -> tuple[str, ...]:
    """Return the names of the shipped examples."""
    return tuple(sorted(path.stem for path in _EXAMPLES.glob("*.yaml")))


def is_name(study: str) -> bool:
    """Return whether a text is the name of a study or of a shipped example, and no file."""
    path = Path(study)
    is_file = (path.exists() and not path.is_dir()) or path.suffix in _FILES
    return path.name == study and not is_file


def study_file(name: str) -> Path:
    """Return the path of a study file, or of the shipped example of that name if there is no such file.

    A folder does not count: the data of an example may stand beside it under its name.

    Raises:
        SpecificationError: If it is a single word that is neither a file nor an example.
    """
    path = Path(name)
    stem = path.name.removesuffix(".yaml")
    if (path.exists() and not path.is_dir()) or path.name != name:
        return path
    if stem in example_names():
        return _EXAMPLES / f"{stem}.yaml"
    if path.suffix or path.exists():
        return path
    known = example_names()
    raise SpecificationError(
        f"the study must be a file or a shipped example; there is no {name!r}. "
        f"Examples: {', '.join(known)}.{name_hint(name, known)}"
    )


def read_specification(path: Path | str, overrides: Mapping[str, object] | None = None) -> Specification:
    """Read and validate a study file.

    Args:
        path: Study file. Folders in it are relative to its own folder.
        overrides: Values by key path, such as ``training.steps``, that replace those of the file. Folders in them are
            relative to the working directory.

    Raises:
        SpecificationError: If the file cannot be read or is not valid; the text has one line per problem.
    """
    path = Path(path)
    mapping = _read_mapping(path)
    _resolve_paths(mapping, path.parent, _ALL_PATH_KEYS)
    return specification_from_mapping(_overridden(mapping, overrides), origin=str(path))


def specification_of(
    study: Specification | Mapping[str, object] | Path | str, overrides: Mapping[str, object] | None = None
) -> Specification:
    """Return the specification of a study.

    Args:
        study: Study file, name of a shipped example, mapping with the keys of a study file, or specification. Folders
            in a mapping are relative to the working directory.
        overrides: Values by key path, as in `read_specification`.

    Raises:
        SpecificationError: If it cannot be read or is not valid; the text has one line per problem.
    """
    if isinstance(study, Path | str):
        return read_specification(study_file(str(study)), overrides)
    if isinstance(study, Specification):
        return specification_from_mapping(_overridden(study.as_json(), overrides)) if overrides else study
    if not isinstance(study, Mapping):
        raise SpecificationError(f"the study must be a file, a shipped example or a mapping; got {study!r}.")
    mapping = deepcopy(dict(study))
    _resolve_paths(mapping, Path.cwd(), _ALL_PATH_KEYS)
    return specification_from_mapping(_overridden(mapping, overrides))


def _overridden(mapping: dict[str, object], overrides: Mapping[str, object] | None) -> dict[str, object]:
    """Return the mapping with the values at some key paths replaced, whole sections first."""
    for key, value in sorted((overrides or {}).items(), key=lambda one: one[0].count(".")):
        _put(mapping, key, value)
        _resolve_paths(mapping, Path.cwd(), [key] if key in _ALL_PATH_KEYS else [])
    return mapping


def specification_from_mapping(mapping: Mapping[str, object], *, origin: str = "the study") -> Specification:
    """Validate a mapping with the keys of a study file; empty sections have their defaults.

    Raises:
        SpecificationError: If it is not valid; the text has one line per problem.
    """
    given = {key: value for key, value in mapping.items() if not (value is None and key in _SECTIONS)}
    problems = _missing_folders(given)
    try:
        specification = Specification.model_validate(given)
    except ValidationError as error:
        problems = [*problem_lines(error, Specification), *problems]
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise SpecificationError("\n".join([f"{origin} is not a valid study file; {count}:", *problems]))
    return specification


def parse_override(text: str) -> tuple[str, object]:
    """Return key path and value of ``KEY.PATH=VALUE``; the value is read as YAML.

    Raises:
        SpecificationError: If it has another form.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise SpecificationError(f"an override must look like training.steps=300; got {text!r}.")
    try:
        return key.strip(), read_yaml(value)
    except (yaml.YAMLError, ValueError) as error:
        raise SpecificationError(f"the value of override {key.strip()} must be YAML; {_reason(error)}.") from None


def _read_mapping(path: Path) -> dict[str, object]:
    try:
        check_regular(path)
        with path.open("rb") as file:
            content = file.read(_LARGEST_BYTES + 1)
        if len(content) > _LARGEST_BYTES:
            raise SpecificationError(f"a study file must be at most 100 kB; {path} is larger.")
        text = content.decode()
    except FileNotFoundError:
        raise SpecificationError(f"the study file must exist; there is no {path}.") from None
    except UnicodeDecodeError:
        raise SpecificationError(f"the study file must be UTF-8 text; {path} is not.") from None
    except OSError as error:
        raise SpecificationError(f"the study file must be readable; {path}: {error.strerror}.") from None
    try:
        loaded = read_yaml(text)
    except (yaml.YAMLError, ValueError) as error:
        raise SpecificationError(f"{path} must be YAML; {_reason(error)}.") from None
    if not isinstance(loaded, dict):
        got = "nothing" if loaded is None else f"a {type(loaded).__name__}"
        raise SpecificationError(f"{path} must be a mapping of keys to values, such as 'name: my-study'; got {got}.")
    return loaded


def _reason(error: Exception) -> str:
    """Return the problem of the YAML reader on one line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {' '.join((error.problem or 'not readable').split())}"
    return " ".join(str(error).split())


def _put(mapping: dict[str, object], key: str, value: object) -> None:
    """Set a key path and create its sections; a value in place of a section is left to the validation."""
    *sections, last = key.split(".")
    if sections == ["backbone"] and isinstance(mapping.get("backbone"), str):
        mapping["backbone"] = {"name": mapping["backbone"]}
    target = mapping
    for section in sections:
        inner = target.get(section)
        inner = SPACES.get(inner) if section == "space" and isinstance(inner, str) else inner
        inner = dict(inner) if isinstance(inner, Mapping) else {}
        target[section] = inner
        target = inner
    target[last] = value


def _resolve_paths(mapping: dict[str, object], base: Path, keys: Iterable[str]) -> None:
    """Make the folders at some key paths absolute; a backbone only if it is a folder or written as a path."""
    for key in keys:
        *sections, last = key.split(".")
        target: object = mapping
        for section in sections:
            target = target.get(section) if isinstance(target, dict) else None
        value = target.get(last) if isinstance(target, dict) else None
        if not isinstance(target, dict) or not isinstance(value, str) or not value:
            continue
        # what can be no path is left as it is, and refused as one that is not there
        with suppress(OSError, ValueError, RuntimeError):
            folder = base.absolute() / Path(value).expanduser()
            is_path = value.startswith((".", "/", "~")) or (value != "embedded" and _is_folder(folder))
            if key not in _BACKBONES or is_path:
                target[last] = str(folder.resolve())


def _is_folder(path: Path) -> bool:
    """Return whether there is a folder; never raises, whatever the path is."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _missing_folders(mapping: Mapping[str, object]) -> list[str]:
    task = mapping.get("task")
    folder = task.get("folder") if isinstance(task, dict) else None
    if isinstance(folder, str) and folder and not _is_folder(Path(folder)):
        return [f"task.folder: must be an existing folder; got {folder!r}. Give one with --set task.folder=PATH"]
    return []
