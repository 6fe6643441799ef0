"""What two study files disagree about."""

import json
from collections.abc import Iterator, Mapping

_ABSENT = object()


def difference(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """One line per key that differs, such as ``training.steps: 200 -> 300``, in the order of the keys."""
    before, after = dict(_leaves(old)), dict(_leaves(new))
    return [
        f"{key}: {_text(before.get(key, _ABSENT))} -> {_text(after.get(key, _ABSENT))}"
        for key in {**before, **after}
        if before.get(key, _ABSENT) != after.get(key, _ABSENT)
    ]


def _leaves(mapping: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in mapping.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", list(value) if isinstance(value, tuple) else value


def _text(value: object) -> str:
    return "(absent)" if value is _ABSENT else json.dumps(value, default=str, ensure_ascii=False)
