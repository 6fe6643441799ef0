"""Errors of the dashboards package.

::

    DashboardError            a dashboard that cannot be served or written
    └── DashboardRequestError   invalid options: an address without a token, a folder that is not new
"""


class DashboardError(Exception):
    """Root of all errors of the package; the message is for the user."""


class DashboardRequestError(DashboardError, ValueError):
    """Invalid options: an address without a token, a short token, a folder that is not new."""
