"""Registries: the project's own entries by name, and those of installed packages.

A package adds an entry without changing this project, by an entry point in the registry's group::

    [project.entry-points."deltaspace.samplers"]
    my_sampler = "my_package.samplers:MY_SAMPLER"
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar, cast

from search_space.errors import RegistryError

EntryT = TypeVar("EntryT")


class Registry(Mapping[str, EntryT]):
    """Objects by name in listed order: own entries first, then those of installed packages.

    An entry of a package is imported on its first access.
    """

    def __init__(self, noun: str, own: Mapping[str, EntryT], *, kind: type[Any], group: str) -> None:
        """Create a registry with the project's own entries.

        Args:
            noun: Name of an entry in errors, such as ``sampler``.
            own: Entries of the project.
            kind: Required type of every entry; a class or a runtime-checkable protocol.
            group: Entry-point group of further entries.
        """
        self._noun = noun
        self._own = dict(own)
        self._kind = kind
        self._group = group

    @cached_property
    def _added(self) -> dict[str, EntryPoint]:
        found: dict[str, EntryPoint] = {}
        for point in entry_points(group=self._group):
            if point.name in self._own or point.name in found:
                raise RegistryError(
                    f"the names of {self._noun}s must differ; got {point.name!r} a second time, from {point.value}. "
                    "Uninstall or rename one of them."
                )
            found[point.name] = point
        return found

    def __getitem__(self, name: str) -> EntryT:
        """Return the entry of a name.

        Raises:
            KeyError: If the name is unknown.
            RegistryError: If a package's entry cannot be imported or has another type.
        """
        if name in self._own:
            return self._own[name]
        point = self._added[name]
        try:
            entry = point.load()
        except Exception as error:
            raise RegistryError(
                f"the {self._noun} {point.name!r} must be importable; {point.value} raised "
                f"{type(error).__name__}: {error}. Mend or uninstall the package that adds it."
            ) from error
        if not isinstance(entry, self._kind):
            raise RegistryError(
                f"the {self._noun} {point.name!r} must be a {self._kind.__name__}; {point.value} is a "
                f"{type(entry).__name__}. Mend or uninstall the package that adds it."
            )
        return cast("EntryT", entry)

    def __iter__(self) -> Iterator[str]:
        """Yield every name without importing the entries of packages."""
        yield from self._own
        yield from self._added

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._own) + len(self._added)
