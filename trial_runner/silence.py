"""Context managers that silence the loggers of libraries. Imports none of the libraries."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def at_least(logger_name: str, level: int) -> Iterator[None]:
    """Let only messages of at least ``level`` through a library's logger."""
    logger = logging.getLogger(logger_name)
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def quiet_quantizers() -> Iterator[None]:
    """Import bitsandbytes and torchao without warnings of kernels for some processors, which nothing here calls.

    Transformers imports torchao where that is installed, whatever is loaded.
    """
    with ExitStack() as quiet:
        for name in ("bitsandbytes", "torchao", "torch.utils._pytree"):  # the last says what torchao does as of old
            quiet.enter_context(at_least(name, logging.ERROR))
        yield
