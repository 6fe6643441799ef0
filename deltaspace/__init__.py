"""Design-space search for parameter-efficient fine-tuning: the public Python interface.

Example:
    >>> import deltaspace
    >>> study = deltaspace.launch("docstrings")
    >>> study.leaderboard(top=5)
    >>> study.export("winner")
    >>> deltaspace.predict("winner", ["Return the mean of an array."])

Each name is imported at its first use, so importing the package is fast and loads no torch.
"""

with open(f"{__file__}i") as _stub:  # noqa: PTH123 - nothing is imported before `entry_point` is ready for Ctrl-C
    _MODULES = {line.split()[-1]: line.split()[1] for line in _stub if line.startswith("from")}
"""Modules of the public names, from the stub that type checkers read."""

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    """Return a public name, imported from its module."""
    import importlib

    if name == "errors":
        return importlib.import_module("deltaspace.errors")
    if name in _MODULES:
        from trial_runner.silence import quiet_quantizers

        with quiet_quantizers():
            value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
        return value
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}. It has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*globals(), *__all__})
