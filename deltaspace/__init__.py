"""Design-space search for parameter-efficient fine-tuning: the public Python interface.

Example:
    >>> import deltaspace
    >>> study = deltaspace.launch("docstrings")
    >>> study.leaderboard(top=5)
    >>> study.export("winner")
    >>> deltaspace.predict("winner", ["Return the mean of an array."])

Each name is imported at its first use, so importing the package is fast and loads no torch.
"""

TYPE_CHECKING = False  # as type checkers read it; nothing is imported before `entry_point` is ready for Ctrl-C
if TYPE_CHECKING:
    from deltaspace import errors as errors
    from deltaspace.descriptions import count as count
    from deltaspace.descriptions import describe as describe
    from deltaspace.descriptions import methods as methods
    from deltaspace.descriptions import shape_of as shape_of
    from deltaspace.launch_options import launch as launch
    from deltaspace.launch_options import open_study as open_study
    from deltaspace.launch_options import studies as studies
    from deltaspace.search import Search as Search
    from deltaspace.startup import check as check
    from deltaspace.startup import init as init
    from deltaspace.startup import plan as plan
    from deltaspace.training import predict as predict
    from deltaspace.training import train as train
    from search_space.configuration import Configuration as Configuration
    from search_space.edit import Edit as Edit
    from search_space.published import published_method as published_method
    from search_space.space.space import SearchSpace as SearchSpace
    from studies.observer import Observer as Observer
    from studies.study import Study as Study
    from studies.study_file import Specification as Specification
    from studies.trial import Trial as Trial
    from trial_runner.export import load_delta as load_delta
    from trial_runner.export import open_delta as open_delta

_MODULES = {
    "search_space.configuration": ("Configuration",),
    "search_space.edit": ("Edit",),
    "search_space.published": ("published_method",),
    "search_space.space.space": ("SearchSpace",),
    "studies.observer": ("Observer",),
    "studies.study": ("Study",),
    "studies.study_file": ("Specification",),
    "studies.trial": ("Trial",),
    "trial_runner.export": ("load_delta", "open_delta"),
    "deltaspace.descriptions": ("count", "describe", "methods", "shape_of"),
    "deltaspace.launch_options": ("launch", "open_study", "studies"),
    "deltaspace.search": ("Search",),
    "deltaspace.startup": ("check", "init", "plan"),
    "deltaspace.training": ("predict", "train"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(("errors", *_PLACES))


def __getattr__(name: str) -> object:
    """Return a public name, imported from its module."""
    import importlib

    if name == "errors":
        return importlib.import_module("deltaspace.errors")
    if name in _PLACES:
        from trial_runner.silence import quiet_quantizers

        with quiet_quantizers():
            value = globals()[name] = getattr(importlib.import_module(_PLACES[name]), name)
        return value
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}. It has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*globals(), *__all__})
