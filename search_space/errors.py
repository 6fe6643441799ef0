"""Errors of the search space.

::

    SearchSpaceError
    ├── InvalidEditError        an edit or a combination of edits breaks a validity rule (carries the rule)
    ├── BudgetError             a budget cannot be read, or no configuration fits it
    ├── UnsupportedBackboneError a backbone config of an unknown family, or one that lacks a needed entry
    ├── SettingError            a hyper-parameter of a method, or an option of a space, with a value that cannot be
    ├── UnknownMethodError      no published method of that name
    ├── RegistryError           an entry that an installed package adds cannot be used
    └── CodecError              a stored configuration cannot be read
"""


class SearchSpaceError(Exception):
    """Root of all errors of the package; its text is one line for the user."""

    __str__ = Exception.__str__  # of a KeyError it would be a quotation


class InvalidEditError(SearchSpaceError, ValueError):
    """An edit, or a combination of edits, that breaks a validity rule.

    Attributes:
        rule: Name of the broken rule, such as ``"V10"``.
    """

    def __init__(self, message: str, *, rule: str) -> None:
        """Keep the rule beside the text."""
        super().__init__(f"{message} [{rule}]")
        self.rule = rule


class BudgetError(SearchSpaceError, ValueError):
    """A budget that cannot be read, or that no configuration fits."""


class UnsupportedBackboneError(SearchSpaceError, ValueError):
    """A backbone of a family that is not supported, or whose config lacks a needed entry."""


class SettingError(SearchSpaceError, ValueError):
    """A hyper-parameter of a published method, or an option of a space, with a value that cannot be."""


class UnknownMethodError(SearchSpaceError, KeyError):
    """A name that is no published method, or a hyper-parameter that it does not have."""


class RegistryError(SearchSpaceError):
    """An entry of a registry that an installed package adds and that cannot be used."""


class CodecError(SearchSpaceError, ValueError):
    """A stored configuration that cannot be read."""
