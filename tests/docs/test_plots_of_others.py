"""The plots of Optuna that the dashboard has or lacks are all listed, each that it lacks with a reason."""

from pathlib import Path

import optuna

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "dashboard.md"


def test_every_plot_of_optuna_is_listed_with_where_it_is_or_why_it_is_not() -> None:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines()]
    listed = {row[0].strip("`"): (row[1], row[2]) for row in cells if len(row) == 3}
    plots = {name for name in optuna.visualization.__all__ if name.startswith("plot_")}
    assert len(plots) >= 12
    assert plots <= listed.keys()
    assert all(where and (why or where != "not") for where, why in (listed[name] for name in plots))
