"""All trials, filtered, in a table and in plots; it asks what the overview asks."""

from dashboards.web.pages.page import Page

PAGE = Page(name="leaderboard", title="Leaderboard", answers={})
