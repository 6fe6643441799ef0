"""Runners of tiny backbones, whose packs compute in float64."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def runner(tiny_backbone: Callable[..., Path]) -> Iterator[Any]:
    from support.packing_cases import runner_of

    runner = runner_of(tiny_backbone("roberta"))
    yield runner
    runner.close()


@pytest.fixture
def even_runner(tiny_backbone: Callable[..., Path]) -> Iterator[Any]:
    """Yield a runner over examples of one length, so that another trial in a slot changes no shape."""
    from support.packing_cases import EVEN_TASK, runner_of

    runner = runner_of(tiny_backbone("roberta"), task=EVEN_TASK)
    yield runner
    runner.close()
