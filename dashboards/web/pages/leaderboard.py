"""All trials in a table and in plots, with filters and the data of the overview."""

from dashboards.web.pages.page import Page

PAGE = Page(name="leaderboard", title="Leaderboard", answers={}, of_confirmation=False)
