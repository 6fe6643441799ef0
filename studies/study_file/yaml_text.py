"""Reads the YAML of study files, which may be anybody's: nothing in it may take long, or much memory."""

import yaml

MOST_LEVELS = 50
"""Of mappings and lists within each other."""

MOST_VALUES = 20_000
"""Mappings, lists and scalars, with what aliases stand for written out."""

MOST_DIGITS = 100
"""Of a whole number."""


def read_yaml(text: str) -> object:
    """What a YAML text holds: plain values, none of them large.

    Raises:
        YAMLError: If it is no YAML, a key stands twice in a mapping, or there is too much of something.
        ValueError: If a value is none of its tag.
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


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses a key that stands twice, where YAML would silently keep the last."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._levels = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        """Compose a node, unless it lies too deep."""
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

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        if len(node.value) > MOST_DIGITS:
            problem = f"a number of more than {MOST_DIGITS} digits"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return super().construct_yaml_int(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def _check_size(root: yaml.Node) -> None:
    """Refuse what its aliases make large or endless.

    Raises:
        MarkedYAMLError: If it is.
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
