"""Training of trials on a frozen backbone, and their measurement. Imports torch; independent of studies and SQL."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trial_runner.export import load_delta

__all__ = ["load_delta"]


def __getattr__(name: str) -> object:
    """Import `load_delta` on first access: it needs torch, which most of the package does without."""
    if name == "load_delta":
        from trial_runner.silence import quiet_quantizers

        with quiet_quantizers():
            from trial_runner.export import load_delta

        return load_delta
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
