"""Pages of the dashboard: one file each, listed in `PAGES`."""

from dashboards.web.pages import (
    compare,
    confirmations,
    discover,
    leaderboard,
    live,
    query,
    studies,
    task,
    timeline,
    trial,
)
from dashboards.web.pages.page import Page

PAGES: tuple[Page, ...] = (
    studies.PAGE,
    task.PAGE,
    live.PAGE,
    leaderboard.PAGE,
    trial.PAGE,
    compare.PAGE,
    timeline.PAGE,
    discover.PAGE,
    confirmations.PAGE,
    query.PAGE,
    query.OF_STUDY,
)
"""All pages, in the order of the navigation."""
