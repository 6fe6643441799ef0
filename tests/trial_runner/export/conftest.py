"""Backbones as packs have them, made once for a module of tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def rig_named(tiny_backbone: Callable[[str], Path]) -> Iterator[Callable[..., Any]]:
    """Build the rig of a family in float64, or in another precision."""
    from support.export_cases import rig_in_training

    made: dict[tuple[str, str], Any] = {}

    def make(name: str, precision: str = "float64") -> Any:
        if (name, precision) not in made:
            made[name, precision] = rig_in_training(tiny_backbone(name), precision)
        return made[name, precision]

    yield make
    for rig in made.values():
        rig.attachment.detach()
