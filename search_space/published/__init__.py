"""Published methods as named points of the space, with their citations.

A new one is a table in ``methods.toml``. An installed package adds one of its own::

    [project.entry-points."deltaspace.methods"]
    my_adapter = "my_package.methods:MY_ADAPTER"

where ``MY_ADAPTER`` is a `PublishedMethod` of that name. ``tests/contracts/test_methods.py`` is the contract of every
entry.
"""

from search_space.closest_name import name_hint
from search_space.errors import UnknownMethodError
from search_space.published.builtin import BUILTIN_METHODS
from search_space.published.builtin import COMPARED as COMPARED
from search_space.published.builtin import HEAD_ONLY as HEAD_ONLY
from search_space.published.builtin import is_lora_method as is_lora_method
from search_space.published.method import HyperParameter as HyperParameter
from search_space.published.method import HyperParameterValues as HyperParameterValues
from search_space.published.method import PublishedMethod as PublishedMethod
from search_space.published.method import edits_from_tables as edits_from_tables
from search_space.registry import Registry

METHODS: Registry[PublishedMethod] = Registry(
    "published method", BUILTIN_METHODS, kind=PublishedMethod, group="deltaspace.methods"
)
"""Published methods by name."""


def published_method(name: str) -> PublishedMethod:
    """Return the published method of a name.

    Example:
        >>> method = deltaspace.published_method("mam_adapter")
        >>> method.configuration(deltaspace.shape_of("roberta-base"), {"r": 512})

    Raises:
        UnknownMethodError: If there is none; the error lists the names and the closest one.
    """
    if name in METHODS:
        return METHODS[name]
    hint = name_hint(name, METHODS, cutoff=0.5)
    raise UnknownMethodError(f"no published method {name!r}.{hint} Known: {', '.join(METHODS)}.")
