"""Runs trials on a frozen backbone and measures them. Knows torch; knows no study and no SQL."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trial_runner.export import load_delta

__all__ = ["load_delta"]


def __getattr__(name: str) -> object:
    """`load_delta`, imported when it is asked for: it needs torch, and most of the package must not wait for that."""
    if name == "load_delta":
        from trial_runner.silence import quiet_quantizers

        with quiet_quantizers():
            from trial_runner.export import load_delta

        return load_delta
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
