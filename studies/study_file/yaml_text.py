"""Reader of YAML for study files of any origin: with bounds on time and memory."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

MOST_LEVELS = 50
"""Largest depth of nested mappings and lists."""

MOST_VALUES = 20_000
"""Largest number of mappings, lists and scalars, with aliases expanded."""

MOST_DIGITS = 100
"""Most digits of a number."""

_SHOWN = 60


_TAG = "tag:yaml.org,2002:"
_CORE = {
    "null": ("~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": ("true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": ("[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    "merge": ("<<", ["<"]),
}
"""Plain scalars that are no text, with their first characters: the core schema of YAML 1.2, and merge keys.

YAML 1.1 also read 1:30 as 90, 010 as 8, 1_000 as 1000, and no as false.
"""
_PATTERNS = {f"{_TAG}{kind}": re.compile(rf"(?:{pattern})\Z") for kind, (pattern, _) in _CORE.items()}


def read_yaml(text: str) -> object:
    """Return the plain values of a YAML text by the core schema of YAML 1.2.

    Raises:
        YAMLError: If it is not YAML, has a duplicate key, or exceeds a bound.
        ValueError: If a value does not fit its tag.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_size(node)
        try:
            return loader.construct_document(node)
        except (AttributeError, LookupError, TypeError, OverflowError) as error:
            raise ValueError("a value must be one of its tag, such as !!timestamp 2026-01-31; it is not") from error
    finally:
        loader.dispose()


def dump_yaml(keys: Mapping[str, Any], *, is_ascii: bool) -> str:
    """Return a mapping as YAML, one line per key, that YAML 1.1 and 1.2 read alike."""
    return str(yaml.dump(keys, Dumper=_Dumper, sort_keys=False, allow_unicode=not is_ascii, width=float("inf")))


class _Dumper(yaml.SafeDumper):
    """Safe dumper that quotes every text that YAML 1.1 or 1.2 would not read as text."""


class _Loader(yaml.SafeLoader):
    """Safe loader that refuses duplicate keys, of which YAML would silently keep the last."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._levels = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        """Compose a node, unless it is nested too deeply."""
        self._levels += 1
        if self._levels > MOST_LEVELS:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, f"more than {MOST_LEVELS} levels within each other", mark)
        try:
            return super().compose_node(parent, index)  # type: ignore[arg-type]
        finally:
            self._levels -= 1

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key != "<<" and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)

    def construct_core(self, node: yaml.ScalarNode) -> bool | int | float:
        """Construct a scalar that is not text, also one with an explicit tag."""
        kind, text = node.tag.removeprefix(_TAG), str(node.value)
        problem = f"{text[:_SHOWN]!r} is no {kind}"
        if len(text) > MOST_DIGITS:
            problem = f"a number of more than {MOST_DIGITS} digits"
        elif _PATTERNS[node.tag].match(text) or (kind == "float" and _PATTERNS[f"{_TAG}int"].match(text)):
            if kind == "bool":
                return text.lower() == "true"
            if kind == "float":
                return float(text.replace(".", "") if text[-1].isalpha() else text)
            return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


for _kind, (_, _first) in _CORE.items():
    _Loader.add_implicit_resolver(f"{_TAG}{_kind}", _PATTERNS[f"{_TAG}{_kind}"], _first)
    _Dumper.add_implicit_resolver(f"{_TAG}{_kind}", _PATTERNS[f"{_TAG}{_kind}"], _first)
    if _kind in ("bool", "int", "float"):
        _Loader.add_constructor(f"{_TAG}{_kind}", _Loader.construct_core)


def _check_size(root: yaml.Node) -> None:
    """Refuse aliases that expand to a large or infinite value.

    Raises:
        MarkedYAMLError: If one does.
    """
    sizes: dict[int, int | None] = {}  # None while a node's own are counted

    def size(node: yaml.Node) -> int:
        if not isinstance(node, yaml.CollectionNode):
            return 1
        known = sizes.get(id(node), 0)
        if known is None:
            raise yaml.composer.ComposerError(None, None, "an alias that holds itself", node.start_mark)
        if known:
            return known
        sizes[id(node)] = None
        total = 1
        for one in node.value:
            total += sum(map(size, one)) if isinstance(one, tuple) else size(one)
            if total > MOST_VALUES:
                problem = f"more than {MOST_VALUES:,} values, with its aliases written out"
                raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
        sizes[id(node)] = total
        return total

    size(root)
