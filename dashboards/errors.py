"""Errors of the dashboards package.

::

    DashboardError    a dashboard that cannot be served or written
"""


class DashboardError(Exception):
    """Root of all errors of the package; its text is for the user."""
