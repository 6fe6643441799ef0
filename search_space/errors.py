"""Errors of the search space.

::

    SearchSpaceError
    ├── InvalidEditError        an edit or a combination of edits that breaks a validity rule
    ├── BudgetError             a budget that is malformed, or too small for every configuration
    ├── UnsupportedBackboneError a backbone config of an unknown family, or without a required entry
    ├── SettingError            an invalid value of a method's hyper-parameter or of a space option
    ├── UnknownMethodError      a name that no published method has
    ├── RegistryError           an unusable entry from an installed package
    └── CodecError              a malformed stored configuration
"""


class SearchSpaceError(Exception):
    """Root of all errors of the package; its text is one line for the user."""

    __str__ = Exception.__str__  # KeyError would show the repr of its message


class InvalidEditError(SearchSpaceError, ValueError):
    """An edit, or a combination of edits, that breaks a validity rule.

    Attributes:
        rule: Name of the broken rule, such as ``"V10"``.
    """

    def __init__(self, message: str, *, rule: str) -> None:
        """Append the rule to the message."""
        super().__init__(f"{message} [{rule}]")
        self.rule = rule


class BudgetError(SearchSpaceError, ValueError):
    """A budget that is malformed, or too small for every configuration."""


class UnsupportedBackboneError(SearchSpaceError, ValueError):
    """A backbone of an unsupported family, or a backbone config without a required entry."""


class SettingError(SearchSpaceError, ValueError):
    """An invalid value of a published method's hyper-parameter or of a space option."""


class UnknownMethodError(SearchSpaceError, KeyError):
    """A name that no published method has, or a hyper-parameter that the method lacks."""


class RegistryError(SearchSpaceError):
    """An unusable registry entry from an installed package."""


class CodecError(SearchSpaceError, ValueError):
    """A malformed stored configuration."""
