"""Pages of the dashboard: one file each, listed in `PAGES`."""

from dashboards.web.pages import compare, confirmations, discover, live, query, studies, task, timeline, trial
from dashboards.web.pages.page import Page

LEADERBOARD = Page(name="leaderboard", title="Leaderboard", answers={}, of_confirmation=False)
"""All trials in a table and in plots, with filters and the data of the overview."""

_OF_STUDY = (live.PAGE, LEADERBOARD, trial.PAGE, compare.PAGE, timeline.PAGE, discover.PAGE, confirmations.PAGE)
PAGES: tuple[Page, ...] = (studies.PAGE, task.PAGE, *_OF_STUDY, query.PAGE, query.OF_STUDY)
"""All pages, in the order of the navigation."""
