"""Errors of the dashboards package.

::

    DashboardError            a dashboard that cannot be served or written
    └── DashboardWishError      what was asked for cannot be: an address without a token, a folder that is not new
"""


class DashboardError(Exception):
    """Root of all errors of the package; its text is for the user."""


class DashboardWishError(DashboardError, ValueError):
    """An address without a token, a token that is short, a folder that is not new."""
